"""`d2cache`: certain masks, nucleus of rollout importance, inflation, and the two forms of the rollout."""

import math
import random

import numpy as np
import pytest
import torch
from torch import Tensor

from core import GenerationConfig, LanguageModel, StepEvent, create_policy, stream
from core.denoiser import Denoiser
from core.policies.base import Outcome
from core.policies.d2_cache import D2Cache, matrix_rollout, vector_rollout
from core.rows import to_rows
from tests.core.states import SPEC, Story, proposal
from tests.tiny import PROMPTS


def told(prompts: tuple[int, ...] = (3,), **settings: object) -> Story:
    """Canvas 3 + 12, blocks of 4."""
    return Story(create_policy("d2cache", **settings), list(prompts), gen_length=12, block_length=4)


def watch(story: Story, seed: int = 0) -> None:
    """What the engine does between plan and observe: hand every layer's attention over."""
    plan, generator = story.plan(), torch.Generator().manual_seed(seed)
    assert plan.on_attention is not None
    rows = to_rows(story.rows(), int(story.rows().sum(dim=1).max()))
    for layer in range(SPEC.num_layers):
        plan.on_attention(layer, random_weights(rows, story.state.valid, 2, generator), rows)


def random_weights(rows: Tensor, valid: Tensor, heads: int, generator: torch.Generator) -> Tensor:
    """Attention [B, H, R, L] of the rows: 0 on padding keys and on surplus rows."""
    length = valid.shape[1]
    scores = torch.randn(*rows.shape, heads, length, generator=generator).movedim(2, 1)
    weights = scores.masked_fill(~valid[:, None, None], -math.inf).softmax(dim=-1)
    return weights * (rows < length)[:, None, :, None]


def density(decoded: list[bool], at: int, sigma: float) -> float:
    """Gaussian share of decoded positions around `at`; left of the generation all are, right as the last."""
    radius = math.ceil(4 * sigma)
    total = hit = 0.0
    for offset in range(-radius, radius + 1):
        weight = math.exp(-0.5 * (offset / sigma) ** 2)
        other = at + offset
        total += weight
        hit += weight * (True if other < 0 else decoded[min(other, len(decoded) - 1)])
    return hit / total


def certain(confidence: list[float], decoded: list[bool], k: int, sigma: float) -> list[int]:
    """The k chosen masks of one sequence in plain Python, positions of the generation, blocks of 4."""
    masks = [at for at in range(12) if not decoded[at]]
    block = masks[0] // 4
    last = masks[k - 1] if len(masks) >= k else 11
    search = [at for at in masks if at < 4 * (last // 4 + 1)]
    # Rounded, because equal scores must tie here as they do in float32.
    score = {at: round(confidence[at] * density(decoded, at, sigma), 6) for at in search}
    return sorted(sorted(search, key=lambda at: (at // 4 != block, -score[at], at))[:k])


@pytest.mark.parametrize("k", [1, 3, 5, 12, 100])
def test_certain_masks_follow_the_rule_in_plain_python(k: int) -> None:
    dice = random.Random(k)
    for _ in range(12):
        story = told(current_k=k, sigma=2.0)
        committed = dice.sample(range(12), dice.randint(0, 9))
        watch(story)
        story.step(dict.fromkeys(committed, 0.1))
        confidence = [dice.choice([0.0, 0.25, 0.5]) for _ in range(12)]
        story.policy.confidence = torch.tensor([[0.0] * 3 + confidence])
        chosen = story.policy.certain_masks(story.state)[0].nonzero().flatten().tolist()
        decoded = [at in committed for at in range(12)]
        assert chosen == [3 + at for at in certain(confidence, decoded, k, 2.0)]


def test_ties_never_choose_more_masks_than_current_k() -> None:
    story = told(current_k=3)
    watch(story)
    story.step({0: 0.1})
    story.policy.confidence.fill_(0.5)
    story.policy.config = type(story.policy.config)(current_k=3, sigma=1e4)
    assert story.policy.certain_masks(story.state)[0].nonzero().flatten().tolist() == [4, 5, 6]


def nucleus(importance: list[float], rest: list[int], p: float) -> list[int]:
    policy = create_policy("d2cache", rollout_p=p)
    assert isinstance(policy, D2Cache)
    policy.importance = torch.tensor([importance])
    mask = torch.zeros(1, len(importance), dtype=torch.bool)
    mask[0, rest] = True
    return policy.nucleus(mask)[0].nonzero().flatten().tolist()


def test_the_nucleus_holds_at_most_its_share_and_one_position_at_least() -> None:
    importance = [8.0, 1.0, 4.0, 2.0, 1.0]
    rest = [1, 2, 3, 4]
    assert nucleus(importance, rest, 0.0) == [2]
    assert nucleus(importance, rest, 0.4) == [2]
    assert nucleus(importance, rest, 0.5) == [2]
    assert nucleus(importance, rest, 0.75) == [2, 3]
    assert nucleus(importance, rest, 0.9) == [1, 2, 3]
    assert nucleus(importance, rest, 1.0) == rest
    assert nucleus(importance, [], 1.0) == []


def test_a_tie_in_the_nucleus_goes_to_the_earlier_position() -> None:
    assert nucleus([1.0, 1.0, 1.0, 1.0], [1, 2, 3], 0.0) == [1]
    assert nucleus([1.0, 1.0, 1.0, 1.0], [0, 1, 2, 3], 0.5) == [0, 1]


def test_a_share_of_one_is_everything_in_any_rounding() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        importance = torch.rand(3000, generator=generator).tolist()
        assert len(nucleus(importance, list(range(3000)), 1.0)) == 3000


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (0, [2, 5, 10]),
        (2, [2, 5, 10]),
        (3, [2, 3, 4, 5, 10]),
        (5, list(range(2, 11))),
        (1000, list(range(2, 11))),
    ],
)
def test_inflation_fills_gaps_between_chosen_positions_only(width: int, expected: list[int]) -> None:
    policy = create_policy("d2cache", inflate=width)
    chosen = torch.zeros(1, 14, dtype=torch.bool)
    chosen[0, [2, 5, 10]] = True
    assert policy.inflated(chosen)[0].nonzero().flatten().tolist() == expected
    nothing = torch.zeros(1, 14, dtype=torch.bool)
    assert not policy.inflated(nothing).any()


def test_rows_are_bounded_by_masks_commits_and_nucleus() -> None:
    """Random histories without inflation: current_k masks, what was committed, and the nucleus."""
    dice = random.Random(5)
    story = told(prompts=(3, 1), current_k=2, rollout_p=0.2, inflate=0)
    left = [set(range(12)), set(range(12))]
    while all(left):
        watch(story, len(left[0]))
        chosen = [dict.fromkeys(dice.sample(sorted(one), 1), 0.1) for one in left]
        story.step(*chosen)
        left = [one - set(new) for one, new in zip(left, chosen, strict=True)]
        plan = story.plan()
        importance = story.policy.importance
        for slot, new in enumerate(chosen):
            rows = plan.refresh[slot]
            base = story.policy.certain_masks(story.state)[slot] | story.state.just_decoded[slot]
            assert base.sum() <= 2 + len(new)
            extra, rest = rows & ~base, story.state.valid[slot] & ~base
            share = importance[slot, extra].sum() / importance[slot, rest].sum()
            assert extra.sum() == 1 or share <= 0.2 + 1e-6
            assert not (rows & ~story.state.valid[slot]).any()


def test_asking_twice_changes_nothing_even_after_attention_was_seen() -> None:
    once, twice = told(), told()
    watch(once)
    watch(twice)
    twice.plan()
    for story in (once, twice):
        story.policy.observe(story.state, outcome(story))
    assert torch.equal(once.policy.importance, twice.policy.importance)
    assert not torch.equal(once.policy.importance[0], torch.zeros(15))


def outcome(story: Story) -> Outcome:
    """An outcome that commits nothing."""
    nothing = torch.zeros_like(story.state.masked)
    given = proposal(torch.zeros(nothing.shape), nothing.shape[1])
    return Outcome(nothing, given, nothing.any(dim=1), nothing.long())


def test_a_new_sequence_in_a_slot_forgets_its_predecessor() -> None:
    story = told(prompts=(3, 3))
    watch(story)
    story.step({0: 0.1}, {0: 0.1})
    assert (story.policy.importance > 0).all()
    story.policy.reset(story.state, torch.tensor([True, False]))
    assert not story.policy.importance[0].any()
    assert not story.policy.confidence[0].any()
    assert story.policy.importance[1].all()


# The rollout.


def layers_of_attention(seed: int, batch: int, length: int, layers: int) -> list[tuple[Tensor, Tensor]]:
    """Head-mean weights and rows of several layers; the sequences have different row counts and padding."""
    generator = torch.Generator().manual_seed(seed)
    valid = torch.ones(batch, length, dtype=torch.bool)
    valid[-1, :2] = False
    asked = (torch.rand(batch, length, generator=generator) < 0.4) & valid
    asked[:, -1] = True
    rows = to_rows(asked, int(asked.sum(dim=1).max()) + 1)
    return [(random_weights(rows, valid, 2, generator).mean(dim=1), rows) for _ in range(layers)]


@pytest.mark.parametrize("layers", [1, 2, 6])
@pytest.mark.parametrize("batch", [1, 3])
def test_both_forms_of_the_rollout_agree(batch: int, layers: int) -> None:
    attention = layers_of_attention(layers, batch, 20, layers)
    cheap, released = vector_rollout(attention, 20), matrix_rollout(attention, 20)
    assert torch.allclose(cheap, released, atol=1e-5)
    # Every row of a rollout is a distribution, so the importances sum to the canvas length.
    assert torch.allclose(cheap.sum(dim=1), torch.full((batch,), 20.0), atol=1e-4)


def test_the_rollout_of_one_layer_by_hand() -> None:
    weights = torch.tensor([[[0.5, 0.25, 0.25], [0.0, 0.0, 0.0]]])
    rows = torch.tensor([[1, 3]])
    # Row 1 of A + I is (0.5, 1.25, 0.25), half of it after normalising; rows 0 and 2 are the identity.
    expected = torch.tensor([[1.25, 0.625, 1.125]])
    assert torch.allclose(vector_rollout([(weights, rows)], 3), expected)
    assert torch.allclose(matrix_rollout([(weights, rows)], 3), expected)


# On real runs of the engine.

CONFIG = GenerationConfig(gen_length=24, block_length=8, threshold=0.35)


def test_both_rollouts_decode_the_same(model: LanguageModel) -> None:
    runs = []
    for rollout in ("vector", "matrix"):
        policy = create_policy("d2cache", current_k=4, rollout=rollout)
        events = [e for e in stream(model, PROMPTS, CONFIG, policy) if isinstance(e, StepEvent)]
        runs.append([(event.tokens.tolist(), event.refreshed.tolist()) for event in events])
    assert runs[0] == runs[1]


def test_the_confidence_of_every_target_is_remembered(model: LanguageModel) -> None:
    policy = create_policy("d2cache", current_k=3)
    prompts = [model.encode(prompt) for prompt in PROMPTS]
    denoiser = Denoiser(model, CONFIG, policy, len(prompts), max(map(len, prompts)))
    with torch.inference_mode():
        denoiser.admit(dict(enumerate(prompts)))
        known = np.zeros((len(prompts), denoiser.length + 1), dtype=np.float32)
        while denoiser.state.active.any():
            copy = denoiser.step()
            np.put_along_axis(known, copy.positions, copy.confidence, axis=1)
            np.testing.assert_allclose(policy.confidence.numpy(), known[:, :-1])
            rows = np.pad(copy.refreshed, ((0, 0), (0, 1)), constant_values=1)
            assert (np.take_along_axis(rows, copy.positions, axis=1) > 0).all()
