"""Signals as alarms: areas, rates at a threshold, intervals and who beats whom."""

import tracemalloc

import numpy as np
import pytest

from analysis.correlation import detect, drift_pairs
from tests.analysis.made_traces import ENTROPY, following, made_trace, pairs_of
from tests.analysis.test_ranks import autoregression


def test_roc_of_a_perfect_and_of_a_reversed_detector() -> None:
    pairs = drift_pairs([made_trace(ENTROPY, following(ENTROPY))])
    perfect = detect(pairs)
    assert perfect.area == pytest.approx(1)
    assert (perfect.true_rate[0], perfect.true_rate[-1]) == (0, 1)
    reversed_ = detect(drift_pairs([made_trace(ENTROPY, following(1 - ENTROPY))]))
    assert reversed_.area == pytest.approx(0)
    with pytest.raises(ValueError, match="top_share"):
        detect(pairs, top_share=0)


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


def test_few_steps_to_find_have_an_area_and_no_interval() -> None:
    """Resamples of a handful are all alike, and made a signal of most that had nothing to do with it."""
    rng = np.random.default_rng(4)
    for steps, sure in ((60, False), (120, True)):
        found = detect(pairs_of(*rng.normal(size=(2, steps))))
        assert 0 < found.area < 1
        assert (found.low == found.low) == sure
        assert (len(found.drawn) > 0) == sure


def test_of_unrelated_signals_hardly_one_differs_from_chance() -> None:
    """Four at a time, 110 steps that resemble their neighbours: bounds allow for the choice among them."""
    rng, told = np.random.default_rng(5), 0
    for _ in range(40):
        drift = autoregression(0.5, 110, rng)
        found = [detect(pairs_of(autoregression(0.5, 110, rng), drift)) for _ in range(4)]
        bounds = [one.bounds(len(found)) for one in found]
        told += any(low > 0.5 or high < 0.5 for low, high in bounds)
    assert told <= 8
