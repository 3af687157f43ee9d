"""Resampling: what is drawn together, how many steps a block holds, and what a shift keeps."""

import numpy as np
import pytest

from analysis.resampling import (
    MIN_GROUPS,
    MIN_ROWS,
    NUM_RESAMPLES,
    block_length,
    drawn_of,
    interval,
    resamples,
    shifted_sums,
    shifts,
)
from tests.analysis.test_ranks import autoregression


def drawn(group: np.ndarray, series: np.ndarray) -> np.ndarray:
    none = np.zeros((0, len(group)))
    return np.concatenate([none, *resamples(group, series, np.random.default_rng(0))])


@pytest.mark.parametrize("groups", [1, 3, MIN_GROUPS - 1, MIN_GROUPS, 40])
def test_every_resample_is_as_large_as_the_sample_and_favours_nobody(groups: int) -> None:
    group = np.repeat(np.arange(groups), 12)
    weights = drawn(group, np.random.default_rng(1).normal(size=len(group)))
    assert weights.shape == (NUM_RESAMPLES, len(group))
    assert (weights.sum(axis=1) == len(group)).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(len(group)), abs=0.2)
    per_prompt = weights.reshape(NUM_RESAMPLES, groups, 12)
    whole = (per_prompt == per_prompt[:, :, :1]).all()
    assert whole == (groups >= MIN_GROUPS), "whole prompts are drawn where there are enough, and only there"
    assert (per_prompt.sum(axis=2) == 12).all() == (groups < MIN_GROUPS)


def test_neighbours_are_drawn_together_where_they_resemble_each_other() -> None:
    rng = np.random.default_rng(2)
    group = np.zeros(200, int)
    alone, alike = (drawn(group, autoregression(phi, 200, rng)) for phi in (0.0, 0.9))

    def together(weights: np.ndarray) -> float:
        return float(np.mean([np.corrcoef(row, np.roll(row, 1))[0, 1] for row in weights[:100]]))

    assert together(alike) > together(alone) > 0.5


def test_blocks_grow_with_what_a_series_remembers() -> None:
    rng = np.random.default_rng(3)
    lengths = [
        np.median([block_length(autoregression(phi, 400, rng)) for _ in range(15)]) for phi in (0, 0.5, 0.8)
    ]
    assert lengths == sorted(lengths)
    # The best length for an AR(1) series, (6 phi^2 n / (1 - phi^2)^2)^(1/3): 10.2 and 22.8 steps.
    assert lengths[1] == pytest.approx(10.2, rel=0.35)
    assert lengths[2] == pytest.approx(22.8, rel=0.35)


def test_several_series_share_a_block_between_those_of_each() -> None:
    rng = np.random.default_rng(6)
    short, long = autoregression(0.2, 300, rng), autoregression(0.9, 300, rng)
    alone = block_length(short), block_length(long)
    assert block_length(np.stack((long, long), axis=1)) == alone[1]
    assert alone[0] < block_length(np.stack((short / short.std(), long / long.std()), axis=1)) < alone[1]


@pytest.mark.parametrize("n", range(1, 30))
def test_a_block_fits_into_any_series(n: int) -> None:
    rng = np.random.default_rng(n)
    for series in (np.zeros(n), np.arange(float(n)), rng.normal(size=n), np.arange(n) % 2.0):
        assert 1 <= block_length(series) <= max(n, 1)
        assert drawn(np.zeros(n, int), series).sum() == (n * NUM_RESAMPLES if n >= MIN_ROWS else 0)


@pytest.mark.parametrize(("groups", "rows"), [(1, MIN_ROWS - 1), (MIN_GROUPS - 1, 1), (9, 2), (0, 0)])
def test_nothing_is_drawn_where_nothing_could_vary(groups: int, rows: int) -> None:
    group = np.repeat(np.arange(groups), rows)
    assert not len(drawn(group, np.random.default_rng(7).normal(size=len(group))))
    assert np.isnan(interval(np.full(3, np.nan), 0.95)).all()


def test_shifted_sums_are_those_of_rolled_series() -> None:
    rng = np.random.default_rng(4)
    x, y, group = *rng.normal(size=(2, 9)), np.array([0, 1, 0, 1, 1, 0, 0, 1, 1])
    for index, sums in enumerate(shifted_sums(x, y, group)):
        a, b = x[group == index], y[group == index]
        assert sums == pytest.approx([a @ np.roll(b, -shift) for shift in range(len(b))])


def test_every_shift_of_a_lone_prompt_is_tried_once_and_several_prompts_move_apart() -> None:
    rng = np.random.default_rng(5)
    assert shifts([7], rng)[:, 0].tolist() == list(range(7))
    several = shifts([7, 3], rng)
    assert len(several) == NUM_RESAMPLES + 1
    assert several[0].tolist() == [0, 0]
    assert {tuple(pair) for pair in several.tolist()} == {(a, b) for a in range(7) for b in range(3)}


def test_what_an_interval_is_over_is_said() -> None:
    assert [drawn_of(groups) for groups in (1, 2, MIN_GROUPS)] == [
        "the steps of this run",
        "the steps of these runs",
        "prompts",
    ]
