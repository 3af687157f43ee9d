"""No policy computes more rows than its definition allows, on real runs; and none breaks at the edges."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import pytest

from core import POLICIES, GenerationConfig, LanguageModel, create_policy
from tests.invariants.runs import Run, decode
from tests.tiny import EOS, LAYERS, PROMPTS

BLOCK, GENERATED = 8, 24
Positions = set[int]


@dataclass(frozen=True)
class Moment:
    """One step as its policy saw it. Canvas positions: all; masks of the sequence; the block; what the
    step before committed; `predicting`, the rows that the targets' logits come from.
    """

    everything: Positions
    masks: Positions
    block: Positions
    last: Positions
    targets: Positions
    predicting: Positions
    block_step: int
    full: bool
    reason: str
    rows: Positions


def moments(run: Run, shift: int) -> Iterator[Moment]:
    """The steps of a run of blocks of eight, with what was known before each."""
    start = len(run.prompt_ids)
    masks, last = set(range(start, start + GENERATED)), set()
    begun, block_step = -1, 0
    for step in run.steps:
        begin = start + (min(masks) - start) // BLOCK * BLOCK
        block_step = block_step + 1 if begin == begun else 0
        begun = begin
        targets = set(step.targets.nonzero()[0].tolist())
        yield Moment(
            everything=set(range(start + GENERATED)),
            masks=set(masks),
            block=set(range(begin, begin + BLOCK)),
            last=last,
            targets=targets,
            predicting={at - shift for at in targets},
            block_step=block_step,
            full=step.full,
            reason=step.reason,
            rows=set(step.refreshed.nonzero()[0].tolist()),
        )
        last = set(step.committed.nonzero()[0].tolist())
        masks -= last


def prefix(now: Moment) -> Positions:
    return {at for at in now.everything if at >= min(now.block)}


# Settings, the rows of a partial step apart from the predicting ones, and the reasons of full steps.
EXACT: dict[str, tuple[dict, Callable[[Moment], Positions], set[str]]] = {
    "none": ({}, lambda now: now.everything, {"no cache"}),
    "prefix": ({}, prefix, {"block start"}),
    "dual": ({}, lambda now: now.block, {"block start"}),
    "sparse": ({}, lambda now: now.block, {"block start"}),
    "dkv": ({"interval": 4}, lambda now: now.masks | now.last, {"block start", "interval"}),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("threshold", [0.35, 1.0])
def test_partial_steps_recompute_exactly_what_the_method_says(
    model: LanguageModel, name: str, threshold: float
) -> None:
    settings, partial, full_reasons = EXACT[name]
    config = GenerationConfig(gen_length=GENERATED, block_length=BLOCK, threshold=threshold)
    for run in decode(model, PROMPTS[:2], config, create_policy(name, **settings)):
        for now in moments(run, model.spec.logit_shift):
            if now.reason in full_reasons | {"first step"}:
                assert now.full
            else:
                assert now.rows == partial(now) | now.predicting


@pytest.mark.parametrize(("name", "due"), [("prefix", 1), ("dual", 1), ("sparse", 2), ("dkv", 2)])
def test_full_steps_are_those_of_the_schedule(model: LanguageModel, name: str, due: int) -> None:
    config = GenerationConfig(gen_length=GENERATED, block_length=BLOCK, unmask="quota")
    run = decode(model, PROMPTS[:1], config, create_policy(name, **EXACT[name][0]))[0]
    for now in moments(run, model.spec.logit_shift):
        assert now.full == (now.block_step < due or (name == "dkv" and now.block_step % 4 == 0))


@pytest.mark.parametrize("center", ["next", "last"])
@pytest.mark.parametrize(("tokens", "window"), [(1, 0), (1, 4), (2, 3)])
def test_greedy_rows_are_last_next_and_windows(
    model: LanguageModel, tokens: int, window: int, center: str
) -> None:
    policy = create_policy("dkv-greedy", interval=3, tokens=tokens, neighbours=window, center=center)
    config = GenerationConfig(gen_length=GENERATED, block_length=BLOCK, threshold=0.35)
    for run in decode(model, PROMPTS[:2], config, policy):
        for now in moments(run, model.spec.logit_shift):
            assert now.full == (now.block_step % 3 == 0)
            assert 1 <= len(now.targets) <= tokens
            if not now.full:
                centers = len(now.targets if center == "next" else now.last)
                own = now.rows - now.predicting - now.last - now.targets
                assert len(own) <= centers * window
                assert own <= now.masks
                assert now.last | now.targets | now.predicting <= now.rows


@pytest.mark.parametrize("current_k", [1, 5])
def test_d2cache_rows_are_masks_commits_one_of_the_nucleus_and_sources(
    model: LanguageModel, current_k: int
) -> None:
    policy = create_policy("d2cache", current_k=current_k, rollout_p=0.0, inflate=0)
    config = GenerationConfig(gen_length=GENERATED, block_length=BLOCK, threshold=0.35)
    for run in decode(model, PROMPTS[:2], config, policy):
        for number, now in enumerate(moments(run, model.spec.logit_shift)):
            assert now.full == (number == 0)
            if number:
                assert len(now.targets) <= current_k + 1
                assert now.targets <= now.rows & now.block
                assert len(now.rows - now.predicting - now.last) <= current_k + 1


# Settings far from the defaults, and shapes at the edge of what is allowed.

EXTREMES: dict[str, list[dict]] = {
    "dkv": [{"interval": 10**6, "delay": 0}, {"delay": 10**6}, {"shift": "un"}, {"shift": "un_right"}],
    "dkv-greedy": [
        {"tokens": 10**4, "neighbours": 10**4},
        {"neighbours": 0},
        {"center": "last", "random_order": False},
    ],
    "dllm-cache": [{"kp": 10**6, "kr": 10**6, "ratio": 0.0}, {"kr": 1, "ratio": 1.0}],
    "d2cache": [
        {"current_k": 1, "rollout_p": 0.0, "inflate": 0},
        {"current_k": 10**6, "rollout_p": 1.0, "inflate": 10**6},
        {"sigma": 1e-3},
        {"sigma": 50.0},
    ],
    "elastic": [{"gamma": 0.0}, {"gamma": 1.0}],
    "sparse": [{"keep_ratio": 1e-6}, {"keep_ratio": 1.0, "kernel": 101}],
    "entropy": [{"recent": 10**6, "scope": "global"}, {"recent": 0}, {"entropy_threshold": float("inf")}],
}
SHAPES = {
    "one block": {"gen_length": 8, "block_length": 8},
    "blocks of one": {"gen_length": 6, "block_length": 1},
    "one token": {"gen_length": 1, "block_length": 1},
    "a block a step": {"gen_length": 12, "block_length": 4, "threshold": 0.0},
}


@pytest.mark.parametrize("family", ["llada", "dream"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", POLICIES)
def test_edges_are_decoded_to_the_end(model: LanguageModel, name: str, shape: str) -> None:
    """One-token prompts beside longer ones, every setting of EXTREMES: all is decoded, by finite numbers."""
    config = GenerationConfig(**SHAPES[shape])  # type: ignore[arg-type]
    prompts = [[7], [9, 12, 30]]
    for settings in [{}, *EXTREMES.get(name, [])]:
        policy = create_policy(name, **settings)
        for run in decode(model, prompts, config, policy, slots=1 if shape == "one block" else 2):
            assert sorted(run.order) == list(range(config.gen_length))
            for step in run.steps:
                assert (step.confidence[step.targets] > 0).all()
                assert step.refreshed.max() <= LAYERS
            assert all(token != model.spec.mask_token_id for token in run.tokens)


@pytest.mark.parametrize("name", POLICIES)
def test_a_huge_number_is_refused_or_decoded(models: dict[str, LanguageModel], name: str) -> None:
    """Never taken and then failed on, nor worked at for ever."""
    config = GenerationConfig(gen_length=8, block_length=4)
    numbers = [one.name for one in fields(POLICIES[name].Config) if one.type in (int, float, int | None)]
    assert numbers or name in ("none", "prefix", "dual")
    for setting, value in itertools.product(numbers, (2**31, 2**63 - 1, 2**64, 1e300)):
        try:
            policy = create_policy(name, **{setting: value})
        except ValueError:
            continue
        [run] = decode(models["llada"], PROMPTS[:1], config, policy)
        assert sorted(run.order) == list(range(8))


def test_a_one_token_prompt_decodes_as_without_padding(model: LanguageModel) -> None:
    """The row that predicts a shifted model's first token is the prompt's only one."""
    config = GenerationConfig(gen_length=8, block_length=4, threshold=0.35)
    for name in POLICIES:
        alone = decode(model, [[EOS + 6]], config, create_policy(name))[0]
        padded = decode(model, [[EOS + 6], PROMPTS[0]], config, create_policy(name))[0]
        assert (alone.tokens, alone.committed, alone.computed) == (
            padded.tokens,
            padded.committed,
            padded.computed,
        )
