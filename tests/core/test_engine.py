"""stream and generate: what they refuse before any work, and what their events hold."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from core import (
    POLICIES,
    UNMASK_RULES,
    CachePolicy,
    GenerationConfig,
    LanguageModel,
    RunFinished,
    RunStarted,
    StepEvent,
    create_policy,
    generate,
    stream,
)
from core.models.transformer import Rotary
from core.policies.base import Plan
from core.runner import RowRunner
from core.state import DecodeState
from core.unmask import UnmaskRule
from tests.invariants.runs import GEN, config
from tests.tiny import CONTEXT, EOS, LAYERS, MASK, PROMPTS, VOCAB

SMALL = GenerationConfig(gen_length=8, block_length=4)


@pytest.fixture
def llada(models: dict[str, LanguageModel]) -> LanguageModel:
    return models["llada"]


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        ([], "prompts"),
        ("a text that is no list", "prompts"),
        ([[]], "empty"),
        ([[5], []], "prompt 1"),
        ([[5, VOCAB]], str(VOCAB)),
        ([[-1]], "-1"),
        ([5, 9], "5; allowed"),
        ([[5, 1.5]], "1.5"),
        ([[5, MASK]], "mask"),
        ([""], "empty"),
        (["   "], "empty"),
        (["words"], "tokenizer"),
        ([[5] * (CONTEXT - 7)], str(CONTEXT)),
    ],
)
def test_prompts_that_cannot_run_are_refused_before_any_work(
    llada: LanguageModel, prompts: object, said: str
) -> None:
    with pytest.raises(ValueError) as caught:
        stream(llada, prompts, SMALL, create_policy("none"))  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_longest_prompt_that_fits_runs(llada: LanguageModel) -> None:
    [done] = generate(llada, [[5] * (CONTEXT - 8)], SMALL, create_policy("entropy"))
    assert len(done.tokens) == 8


def test_a_prompt_of_one_token_runs_in_every_family(model: LanguageModel) -> None:
    """A shifted model reads its first token's prediction off the last prompt row."""
    [done] = generate(model, [[5]], SMALL, create_policy("entropy"))
    assert MASK not in done.tokens


def test_a_policy_that_needs_blocks_refuses_a_sliding_window(llada: LanguageModel) -> None:
    sliding = dataclasses.replace(SMALL, window="sliding")
    with pytest.raises(ValueError, match="window"):
        stream(llada, PROMPTS, sliding, create_policy("dual"))


@pytest.mark.parametrize("policy", ["entropy", None, POLICIES["dual"]])
def test_what_is_no_policy_is_refused(llada: LanguageModel, policy: object) -> None:
    with pytest.raises(ValueError, match="policy is"):
        stream(llada, PROMPTS, SMALL, policy)  # type: ignore[arg-type]


def test_prompts_may_come_from_an_iterator(llada: LanguageModel) -> None:
    listed, drawn = (
        generate(llada, prompts, SMALL, POLICIES["dual"]()) for prompts in (PROMPTS, iter(PROMPTS))
    )
    assert [one.tokens for one in listed] == [one.tokens for one in drawn]


@pytest.mark.parametrize("slots", [0, -1])
def test_no_slots_are_refused(llada: LanguageModel, slots: int) -> None:
    with pytest.raises(ValueError, match="slots"):
        stream(llada, PROMPTS, SMALL, create_policy("none"), slots=slots)


@pytest.mark.parametrize("row_bucket", [0, -2])
def test_a_row_bucket_of_no_rows_is_refused(llada: LanguageModel, row_bucket: int) -> None:
    with pytest.raises(ValueError, match="row_bucket"):
        stream(llada, PROMPTS, SMALL, create_policy("none"), row_bucket=row_bucket)


@pytest.mark.parametrize("base", [CachePolicy, UnmaskRule])
def test_what_lacks_its_one_decision_is_refused_before_a_run(base: type) -> None:
    undecided = type("Undecided", (base,), {})
    with pytest.raises(TypeError, match="Undecided"):
        undecided(SMALL)


def test_few_row_counts_occur_unless_asked(llada: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled for every count that occurs."""
    seen: list[int] = []
    run = RowRunner.__call__

    def spy(self: RowRunner, tokens: Tensor, rotary: Rotary, rows: Tensor, *others: Any) -> Tensor:
        seen.append(rows.shape[1])
        return run(self, tokens, rotary, rows, *others)

    monkeypatch.setattr(RowRunner, "__call__", spy)
    length = len(PROMPTS[0]) + GEN
    generate(llada, PROMPTS[:1], config(), create_policy("entropy", recent=3))
    assert all(count % 8 == 0 or count == length for count in seen)
    seen.clear()
    generate(llada, PROMPTS[:1], config(), create_policy("entropy", recent=3), row_bucket=1)
    assert any(count % 8 and count < length for count in seen)


@pytest.mark.parametrize("name", POLICIES)
def test_one_policy_serves_two_interleaved_runs(llada: LanguageModel, name: str) -> None:
    policy = create_policy(name)
    alone = [generate(llada, [prompt], config(), create_policy(name))[0].tokens for prompt in PROMPTS[:2]]
    runs = [stream(llada, [prompt], config(), policy) for prompt in PROMPTS[:2]]
    events = [event for pair in itertools.zip_longest(*runs) for event in pair]
    last = [event for event in events if isinstance(event, RunFinished)]
    assert {event.generations[0].tokens for event in last} == set(alone)


@pytest.mark.parametrize("tokens", [[1, 2], [[]], [[1, VOCAB]], [[-1]]])
def test_full_logits_refuses_what_is_no_grid_of_ids(llada: LanguageModel, tokens: list) -> None:
    with pytest.raises(ValueError, match="tokens"):
        llada.full_logits(tokens)


def test_the_first_event_says_what_runs(model: LanguageModel, family: str) -> None:
    policy = create_policy("entropy", entropy_threshold=0.5)
    events = list(stream(model, PROMPTS, config(), policy))
    started, finished = events[0], events[-1]
    assert isinstance(started, RunStarted)
    assert isinstance(finished, RunFinished)
    assert all(isinstance(event, StepEvent) for event in events[1:-1])
    assert started.prompt_length == max(map(len, PROMPTS))
    assert started.canvas_length == started.prompt_length + GEN
    assert [list(request.prompt_ids) for request in started.requests] == list(PROMPTS)
    assert (started.policy, started.policy_config["entropy_threshold"]) == ("entropy", 0.5)
    assert started.generation == config().to_dict()
    known = {
        "family": family,
        "dtype": "float32",
        "device": "cpu",
        "mask_token_id": MASK,
        "vocab_size": VOCAB,
    }
    assert known.items() <= started.model.items()
    assert [generation.request.index for generation in finished.generations] == [0, 1, 2]


def test_events_are_frozen_and_hold_no_tensors(llada: LanguageModel) -> None:
    for event in stream(llada, PROMPTS, config(), create_policy("entropy")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            event.seconds = {}  # type: ignore[misc, union-attr]
        if isinstance(event, StepEvent):
            for field in dataclasses.fields(event):
                assert isinstance(getattr(event, field.name), np.ndarray | tuple | dict), field.name


def test_an_event_stays_as_it_was_when_the_run_goes_on(llada: LanguageModel) -> None:
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for event in stream(llada, [*PROMPTS, [9, 9]], config(), create_policy("entropy"), slots=2):
        if isinstance(event, StepEvent):
            arrays = (getattr(event, field.name) for field in dataclasses.fields(event))
            kept += [(array, array.copy()) for array in arrays if isinstance(array, np.ndarray)]
    for array, copy in kept:
        np.testing.assert_array_equal(array, copy)


def test_each_request_finishes_once_in_the_event_of_its_last_step(llada: LanguageModel) -> None:
    steps = [
        event
        for event in stream(llada, [*PROMPTS, [9, 9]], config(), create_policy("none"), slots=2)
        if isinstance(event, StepEvent)
    ]
    finished = [(g.request.index, number) for number, event in enumerate(steps) for g in event.finished]
    assert sorted(index for index, _ in finished) == [0, 1, 2, 3]
    for index, number in finished:
        busy = [number for number, event in enumerate(steps) if index in event.request]
        assert busy[-1] == number
        assert busy == list(range(busy[0], busy[0] + len(busy)))


def test_policy_and_rule_hear_of_every_admission(
    llada: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: dict[str, list[list[bool]]] = {"policy": [], "rule": []}

    class ListeningRule(UNMASK_RULES["threshold"]):  # type: ignore[misc]
        def reset(self, slots: Tensor) -> None:
            heard["rule"].append(slots.tolist())

    class ListeningPolicy(POLICIES["none"]):  # type: ignore[misc]
        def reset(self, state: DecodeState, slots: Tensor) -> None:
            heard["policy"].append(slots.tolist())

    monkeypatch.setitem(UNMASK_RULES, "threshold", ListeningRule)
    # Two equal prompts leave their slots together, the third takes the first slot.
    prompts = [PROMPTS[0], PROMPTS[0], PROMPTS[1]]
    generate(llada, prompts, config(), ListeningPolicy(POLICIES["none"].Config()), slots=2)
    assert heard == {"policy": [[True, True], [True, False]], "rule": [[True, True], [True, False]]}


def test_a_plan_that_leaves_nothing_to_decode_is_overruled(llada: LanguageModel) -> None:
    class Reluctant(POLICIES["none"]):  # type: ignore[misc]
        def plan(self, state: DecodeState) -> Plan:
            return dataclasses.replace(super().plan(state), decode=torch.zeros_like(state.window))

    plain = generate(llada, PROMPTS, config(), create_policy("none"))
    events = stream(llada, PROMPTS, config(), Reluctant(POLICIES["none"].Config()))
    # A run without targets would never end, so its steps are counted.
    [*_, last] = itertools.islice(events, GEN + 2)
    assert isinstance(last, RunFinished)
    assert [done.tokens for done in last.generations] == [done.tokens for done in plain]


def test_attention_is_handed_over_for_real_rows_and_valid_keys_only(model: LanguageModel) -> None:
    seen: list[tuple[int, Tensor, Tensor]] = []

    class Watcher(POLICIES["entropy"]):  # type: ignore[misc]
        def plan(self, state: DecodeState) -> Plan:
            valid = state.valid

            def watch(layer: int, weights: Tensor, rows: Tensor) -> None:
                seen.append((layer, weights.clone(), rows))
                assert (weights.sum(dim=1) * ~valid[:, None]).sum() == 0

            return dataclasses.replace(super().plan(state), on_attention=watch)

    policy = Watcher(POLICIES["entropy"].Config(entropy_threshold=1.5))
    generate(model, PROMPTS, config(), policy, row_bucket=4)
    surplus = 0
    for layer, weights, rows in seen:
        length = weights.shape[-1]
        real = (rows < length).float()[:, None].expand(weights.shape[:3])
        torch.testing.assert_close(weights.sum(dim=-1), real)
        surplus += int((rows == length).sum())
        assert 0 <= layer < LAYERS
    assert surplus > 0


def test_generate_gives_what_stream_ends_with(llada: LanguageModel) -> None:
    last = list(stream(llada, PROMPTS, config(), create_policy("dual")))[-1]
    assert isinstance(last, RunFinished)
    assert tuple(generate(llada, PROMPTS, config(), create_policy("dual"))) == last.generations


def test_eos_never_keeps_the_token_out(models: dict[str, LanguageModel]) -> None:
    for model in models.values():
        [done] = generate(
            model, PROMPTS[:1], config("threshold", "sampled", eos="never"), create_policy("none")
        )
        assert EOS not in done.tokens
