"""Volatility on traces whose tokens move by a known rule."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.volatility import by_age, volatility
from tests.analysis.made_traces import ENTROPY, GEN, made_trace
from tests.analysis.test_ranks import autoregression


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
