"""Drift, correlation, volatility, timeline and cost on traces whose answers are known."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from analysis import Step, Trace
from analysis.correlation import DriftPairs, correlate, detect, drift_pairs
from analysis.cost import cost, num_targets, step_flops
from analysis.drift import POSITION_CLASSES, drift, measured
from analysis.observation import mismatched, summarise_drift
from analysis.timeline import timeline
from analysis.volatility import by_age, volatility
from tests.analysis.test_ranks import autoregression

GEN, LAYERS = 24, 2
FACTS = {
    "ref": "made",
    "family": "llada",
    "dtype": "float32",
    "device": "cpu",
    "num_layers": LAYERS,
    "mask_token_id": 190,
    "eos_token_ids": (1,),
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_heads": 2,
    "num_kv_heads": 1,
    "head_dim": 4,
    "vocab_size": 192,
}


def made_trace(
    entropy: np.ndarray,
    cached_drift: np.ndarray,
    age_drift: Callable[[int], float] = lambda age: 0.5**age,
    block_length: int = 8,
) -> Trace:
    """One token a step from left to right; drift as given, nothing else moves."""
    steps = []
    for t in range(GEN):
        values = np.full((LAYERS, len(POSITION_CLASSES)), np.nan, np.float32)
        count = np.zeros((LAYERS, len(POSITION_CLASSES)), int)
        token = np.full(GEN, np.nan, np.float32)
        if t:
            # prompt, decoded, changed, window, later: the four beside `changed` share the canvas.
            count[:] = (3, t - 1, 1, 8 - t % 8, GEN - t - (8 - t % 8))
            values[:] = cached_drift[t]
            values[:, 2] = 0.9
            token[:t] = [age_drift(t - 1 - position) for position in range(t)]
        steps.append(
            Step(
                step=t,
                full=True,
                reason="first step" if t == 0 else "no cache",
                committed=(t,),
                tokens=(20 + t,),
                confidence=(1 - float(entropy[t]) / 10,),
                entropy=(float(entropy[t]),),
                refreshed=np.full(3 + GEN, LAYERS),
                num_layers=LAYERS,
                seconds={"plan": 0.0, "forward": 1.0, "decode": 0.0},
                measurements={
                    "value_drift": values,
                    "value_drift_count": count,
                    "token_drift": token,
                    "token_changed": np.arange(GEN) == t - 1,
                },
            )
        )
    return Trace(
        model=FACTS,
        policy={"name": "none", "config": {}},
        generation={
            "gen_length": GEN,
            "block_length": block_length,
            "window": "block",
            "unmask": "quota",
        },
        prompt=None,
        prompt_ids=(5, 6, 7),
        tokens=tuple(20 + t for t in range(GEN)),
        text=None,
        steps=tuple(steps),
    )


def following(entropy: np.ndarray) -> np.ndarray:
    """Drift that repeats the entropy of the step before."""
    return np.concatenate(([0.0], entropy[:-1]))


ENTROPY = np.random.default_rng(0).permutation(GEN) / GEN


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


def test_roc_of_a_perfect_and_of_a_reversed_detector() -> None:
    pairs = drift_pairs([made_trace(ENTROPY, following(ENTROPY))])
    perfect = detect(pairs)
    assert perfect.area == pytest.approx(1)
    assert (perfect.true_rate[0], perfect.true_rate[-1]) == (0, 1)
    reversed_ = detect(drift_pairs([made_trace(ENTROPY, following(1 - ENTROPY))]))
    assert reversed_.area == pytest.approx(0)
    with pytest.raises(ValueError, match="top_share"):
        detect(pairs, top_share=0)


def pairs_of(
    signal: np.ndarray, moved: np.ndarray, prompt: np.ndarray | None = None, **more: np.ndarray
) -> DriftPairs:
    """Pairs whose largest entropy is `signal`."""
    steps = np.arange(len(moved))
    signals = {"max_entropy": np.asarray(signal, float), **more}
    return DriftPairs(
        signals=signals,
        drift=np.asarray(moved, float),
        step=steps,
        prompt=0 * steps if prompt is None else prompt,
        in_answer=np.ones(len(moved), bool),
        positions="cached",
        every_position=True,
    )


def test_the_rates_at_a_threshold_are_those_of_the_rule() -> None:
    name, rng = "max_entropy", np.random.default_rng(0)
    pairs = pairs_of(rng.integers(0, 9, 60), rng.normal(size=60))
    found = detect(pairs, top_share=0.3)
    wanted = pairs.drift >= np.quantile(pairs.drift, 0.7)
    for threshold, hit, miss in zip(found.threshold, found.true_rate, found.false_rate, strict=True):
        above = pairs.signals[name] > threshold
        assert (hit, miss) == pytest.approx((above[wanted].mean(), above[~wanted].mean()))
    among = pairs.signals[name][wanted][:, None] - pairs.signals[name][~wanted]
    assert found.area == pytest.approx(np.mean((among > 0) + (among == 0) / 2))


def test_memory_of_a_detector_grows_with_its_pairs_and_not_with_their_square() -> None:
    rng = np.random.default_rng(1)

    def peak(n: int) -> int:
        pairs = pairs_of(*rng.normal(size=(2, n)), np.arange(n) // 100)
        tracemalloc.start()
        detect(pairs)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(24_000) < 2.5 * peak(12_000)


def test_an_area_has_an_interval_and_chance_lies_in_that_of_noise() -> None:
    outside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        moved, noise = autoregression(0.8, 127, rng), autoregression(0.8, 127, rng)
        found = detect(pairs_of(noise, moved))
        assert found.low <= found.area <= found.high
        outside += not found.low <= 0.5 <= found.high
    assert outside / 60 <= 0.15


def test_a_better_detector_beats_a_worse_one_and_an_equal_one_does_not() -> None:
    rng = np.random.default_rng(2)
    moved, noise, other, blind = rng.normal(size=(4, 300))
    pairs = pairs_of(moved + noise / 2, moved, like=moved + other / 2, blind=blind, same=np.ones(300))
    good, like, worse, same = (detect(pairs, name) for name in ("max_entropy", "like", "blind", "same"))
    assert good.beats(worse)
    assert not worse.beats(good)
    assert not good.beats(like)
    assert not like.beats(good)
    assert not good.beats(good)
    assert good.varies
    assert not same.varies


def test_a_trace_without_a_probe_is_refused_by_name(trace: Trace) -> None:
    with pytest.raises(ValueError, match="'value_drift' is not in the trace; it holds drift"):
        measured(trace, "value_drift")


def test_volatility_aligns_tokens_at_their_unmasking() -> None:
    trace = made_trace(ENTROPY, ENTROPY, age_drift=lambda age: 0.5**age)
    curve = volatility([trace])
    assert curve.mean[:6] == pytest.approx([0.5**age for age in range(6)])
    assert curve.count[0] == GEN - 1
    assert by_age(trace)[GEN - 1, 0] is not None
    assert np.isnan(by_age(trace)[GEN - 1]).all(), "the last token is never seen by a later forward"


def test_what_fills_in_after_the_answer_is_no_token_of_it() -> None:
    trace = made_trace(ENTROPY, ENTROPY)
    for step in trace.steps[1:]:
        step.measurements["token_drift"][12:] = 0
    ended = replace(trace, tokens=(*trace.tokens[:12], *([1] * (GEN - 12))))
    answer, filler, both = (volatility([ended], tokens=name) for name in ("answer", "filler", "all"))
    assert [curve.count[0] for curve in (answer, filler, both)] == [12, GEN - 13, GEN - 1]
    assert answer.mean[3] == pytest.approx(0.5**3)
    assert filler.mean[0] == 0
    assert both.mean[0] == pytest.approx(12 / (GEN - 1))
    assert "12 answer tokens" in answer.described[0]
    assert not len(volatility([trace], tokens="filler").ages)
    with pytest.raises(ValueError, match="tokens is 'some'"):
        volatility([trace], tokens="some")


def test_settled_age_is_where_a_step_shaped_curve_falls() -> None:
    rng = np.random.default_rng(7)
    traces = [
        made_trace(ENTROPY, ENTROPY, age_drift=lambda age: (0.5 if age < 4 else 0.01) + rng.uniform(0, 1e-3))
        for _ in range(6)
    ]
    curve = volatility(traces)
    assert curve.settled_age == 4
    assert curve.recent == 4
    assert curve.num_prompts == 6
    assert curve.share_within(3) > 0.8
    flat = volatility([made_trace(ENTROPY, ENTROPY, age_drift=lambda age: 0.2)])
    assert flat.settled_age == 0


def test_volatility_intervals_cover_the_mean() -> None:
    covered = 0
    for seed in range(40):
        draw = np.random.default_rng(seed).uniform
        curve = volatility([made_trace(ENTROPY, ENTROPY, lambda age, draw=draw: draw(0, 2))], level=0.9)
        covered += curve.low[2] <= 1 <= curve.high[2]
    assert 0.7 <= covered / 40 <= 1


@pytest.mark.parametrize("prompts", [1, 4])
def test_volatility_intervals_know_that_tokens_of_one_time_move_alike(prompts: int) -> None:
    wide, narrow = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        alike, alone = [], []
        for _ in range(prompts):
            # What moves a step moves every token at that step, and the steps beside it.
            weather = np.exp(autoregression(0.9, 2 * GEN, rng))
            moves = iter([weather[t] for t in range(1, GEN) for _ in range(t)])
            alike.append(made_trace(ENTROPY, ENTROPY, lambda age, moves=moves: next(moves)))
            shuffled = iter(rng.permutation([weather[t] for t in range(1, GEN) for _ in range(t)]))
            alone.append(made_trace(ENTROPY, ENTROPY, lambda age, moves=shuffled: next(moves)))
        for traces, widths in ((alike, wide), (alone, narrow)):
            curve = volatility(traces)
            widths.append(np.mean((curve.high - curve.low)[: GEN // 2]))
    assert np.mean(wide) > 1.2 * np.mean(narrow)


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
