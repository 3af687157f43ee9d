"""Drift, correlation, timeline and cost on traces whose answers are known."""

from dataclasses import replace

import numpy as np
import pytest

from analysis import Trace
from analysis.correlation import correlate, detect, drift_pairs
from analysis.cost import cost, num_targets, step_flops
from analysis.drift import drift, measured
from analysis.observation import mismatched, summarise_drift
from analysis.timeline import timeline
from tests.analysis.made_traces import ENTROPY, FACTS, GEN, LAYERS, following, made_trace, pairs_of


def test_entropy_is_paired_with_the_drift_that_follows_it() -> None:
    pairs = drift_pairs([made_trace(ENTROPY, following(ENTROPY))])
    assert len(pairs.drift) == GEN - 1
    assert pairs.every_position
    assert pairs.drift == pytest.approx(ENTROPY[:-1], abs=1e-6)
    assert correlate(pairs, ["max_entropy"]).plain["max_entropy"].rho == pytest.approx(1)
    late = drift_pairs([made_trace(ENTROPY, ENTROPY)])
    assert correlate(late, ["max_entropy"]).plain["max_entropy"].rho < 0.9


def test_token_identity_changes_are_kept_out_of_the_drift_of_others() -> None:
    trace = made_trace(ENTROPY, np.full(GEN, 0.01))
    moved = drift(trace)
    assert moved.by_step("cached")[1:] == pytest.approx(0.01)
    assert moved.by_step("changed")[1:] == pytest.approx(0.9)
    assert np.isnan(moved.by_step("cached")[0])
    assert set(moved.to_frame()["step"]) == set(range(1, GEN))


def test_unobserved_is_not_zero() -> None:
    trace = made_trace(ENTROPY, following(ENTROPY))
    blind = {**trace.steps[5].measurements, "value_drift_count": np.zeros((LAYERS, 5), int)}
    steps = list(trace.steps)
    steps[5] = replace(steps[5], measurements=blind)
    partial = replace(trace, steps=tuple(steps))
    moved = drift(partial)
    assert not moved.every_position
    assert np.isnan(moved.by_step("cached")[5])
    assert len(drift_pairs([partial]).drift) == GEN - 2


def test_pooling_keeps_prompts_apart() -> None:
    other = ENTROPY[::-1].copy()
    pairs = drift_pairs([made_trace(ENTROPY, following(ENTROPY)), made_trace(other, -following(other))])
    assert pairs.num_prompts == 2
    result = correlate(pairs, ["max_entropy"])
    assert result.per_prompt["max_entropy"] == pytest.approx(0, abs=1e-9)
    assert not result.count_varies
    assert len(result.to_frame()) == 1


def test_a_contrast_with_what_follows_the_answer_is_no_relation_within_it() -> None:
    """Certain and still after the end of the text, either at random before it."""
    rng, traces = np.random.default_rng(0), []
    for _ in range(12):
        entropy, moved = rng.uniform(1, 2, GEN), rng.uniform(1, 2, GEN)
        entropy[12:], moved[13:] = rng.uniform(0, 0.1, GEN - 12), rng.uniform(0, 0.1, GEN - 13)
        trace = made_trace(entropy, moved)
        traces.append(replace(trace, tokens=(*trace.tokens[:12], *([1] * (GEN - 12)))))
    pairs = drift_pairs(traces)
    assert pairs.num_behind == 12 * (GEN - 1 - 12)
    result = correlate(pairs, ["max_entropy"])
    assert result.plain["max_entropy"].rho > 0.6
    assert abs(result.answer.plain["max_entropy"].rho) < 0.2
    assert result.answer.plain["max_entropy"].n == 12 * 12
    seen = summarise_drift(traces)
    assert seen.share_behind == pytest.approx(11 / 23)
    assert seen.to_frame()["span"].unique().tolist() == ["answer", "all"]
    # What tells answer from filler in one prompt does so in another, too.
    assert seen.mismatched["all"].correlation.plain["max_entropy"].rho > 0.6


def test_a_step_counts_for_the_answer_if_it_commits_any_of_it() -> None:
    trace = made_trace(ENTROPY, following(ENTROPY))
    committed = [(0,), (20, 1), (21,), (2, 22)]
    steps = tuple(replace(step, committed=at) for step, at in zip(trace.steps, committed, strict=False))
    trace = replace(trace, tokens=(*trace.tokens[:3], *([1] * (GEN - 3))), steps=(*steps, trace.steps[4]))
    assert drift_pairs([trace]).in_answer.tolist() == [True, True, False, True]
    assert trace.answer_length == 3
    without = replace(trace, model={**trace.model, "eos_token_ids": ()})
    assert drift_pairs([without]).in_answer.all()
    assert correlate(drift_pairs([without])).answer.without_tail is None


def test_mismatched_prompts_share_their_steps_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(5, GEN, 11)
    prompt = np.repeat(np.arange(11), lengths)
    own, step = rng.normal(size=len(prompt)), np.concatenate([np.arange(n) for n in lengths])
    alone = replace(pairs_of(own, own, prompt), step=step)
    beside = mismatched(alone)
    assert beside is not None
    assert len(beside.drift) == np.minimum(lengths, np.roll(lengths, -1)).sum()
    for index in range(11):
        found, mine = beside.of_prompt(index), alone.of_prompt(index)
        assert (found.drift == alone.of_prompt((index + 1) % 11).drift[: len(found.drift)]).all()
        assert (found.signals["max_entropy"] == mine.signals["max_entropy"][found.step]).all()
    assert mismatched(alone.at(np.flatnonzero(prompt < 9))) is None


def test_an_early_step_is_an_alarm_whose_way_is_fixed_beforehand() -> None:
    falling = np.linspace(1, 0, GEN)
    pairs = drift_pairs([made_trace(ENTROPY, falling)])
    assert detect(pairs, "earliness").area == pytest.approx(1)
    assert detect(pairs, "step").area == pytest.approx(0)
    assert not correlate(pairs).given_step["earliness"].known


def test_a_trace_without_a_probe_is_refused_by_name(trace: Trace) -> None:
    with pytest.raises(ValueError, match="'value_drift' is not in the trace; it holds drift"):
        measured(trace, "value_drift")


def test_timeline_knows_ages_and_blocks(trace: Trace) -> None:
    line = timeline(trace)
    assert line.full.tolist() == [True, False, False, False]
    assert line.threshold == np.inf
    assert line.age[3].tolist() == [3] * 7, "two of three layers do not make a position fresh"
    assert line.block_starts == (0,)
    assert timeline(made_trace(ENTROPY, ENTROPY)).block_starts == (0, 8, 16)
    assert len(line.to_frame()) == 4


def test_cost_counts_operations_by_the_formula() -> None:
    trace = made_trace(ENTROPY, ENTROPY)
    assert num_targets(trace)[:10].tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 8, 7]
    rows = 27
    layer = 2 * rows * (2 * 8 * 8 + 2 * 8 * 4 + 3 * 8 * 16) + 4 * rows * 27 * 8
    assert step_flops(trace, np.array([27.0]), np.array([8.0]))[0] == LAYERS * layer + 2 * 8 * 8 * 192
    result = cost(trace)
    assert result.flops_ratio == 1
    assert result.full_step_ratio == 1
    assert len(result.to_frame()) > 5
    with pytest.raises(ValueError, match="hidden_size"):
        cost(replace(trace, model={k: v for k, v in FACTS.items() if k != "hidden_size"}))
