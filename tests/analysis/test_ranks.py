"""Rank statistics against scipy and on data whose answer is known."""

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from analysis.ranks import coefficients, spearman


def pair(rho: float, n: int, rng: np.random.Generator) -> np.ndarray:
    x, noise = rng.normal(size=(2, n))
    return np.stack((x, rho * x + np.sqrt(1 - rho**2) * noise))


@pytest.mark.parametrize("levels", [4, 1000])
def test_rho_is_scipys_with_and_without_ties(levels: int) -> None:
    rng = np.random.default_rng(levels)
    x = rng.integers(0, levels, 80).astype(float)
    y = x + rng.integers(0, levels, 80)
    result = spearman(x, y)
    assert result.rho == pytest.approx(spearmanr(x, y).statistic)
    assert result.n == 80
    counts = np.unique(x, return_counts=True)[1]
    assert result.ties == sum(counts[counts > 1])


def test_a_monotone_relation_is_one_and_significant() -> None:
    x = np.arange(30.0)
    result = spearman(x, np.exp(x))
    assert result.rho == pytest.approx(1)
    assert result.low == pytest.approx(1)
    assert result.p == 1 / 30, "of thirty shifts only the one by none"
    assert spearman(x, -x).rho == pytest.approx(-1)


def test_no_relation_is_not_significant_more_often_than_it_should_be() -> None:
    rng = np.random.default_rng(1)
    values = [spearman(*rng.normal(size=(2, 40)), seed=i).p for i in range(100)]
    assert 0.01 <= np.mean(np.array(values) < 0.1) <= 0.2


def test_a_common_cause_vanishes_once_it_is_partialled_out() -> None:
    rng = np.random.default_rng(2)
    cause = rng.integers(1, 9, 400).astype(float)
    x, y = cause + rng.normal(size=(2, 400))
    assert spearman(x, y).rho > 0.6
    partial = spearman(x, y, given=cause)
    assert abs(partial.rho) < 0.12
    assert partial.low < 0 < partial.high


def test_partial_is_the_correlation_of_rank_residuals() -> None:
    rng = np.random.default_rng(3)
    x, y, z = rng.normal(size=(3, 50)) + rng.normal(size=50)
    ranks = [rankdata(values) for values in (x, y, z)]
    residual = [r - np.polyval(np.polyfit(ranks[2], r, 1), ranks[2]) for r in ranks[:2]]
    assert spearman(x, y, given=z).rho == pytest.approx(np.corrcoef(*residual)[0, 1])


def test_a_weighted_rho_is_that_of_the_repeated_sample() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 6, (2, 25)).astype(float)
    weights = rng.integers(0, 4, (3, 25))
    for weight, got in zip(weights, coefficients([x, y], weights.astype(float)), strict=True):
        assert got == pytest.approx(spearmanr(np.repeat(x, weight), np.repeat(y, weight)).statistic)


def test_intervals_cover_the_true_value_at_about_their_level() -> None:
    rng, true, runs = np.random.default_rng(5), 6 / np.pi * np.arcsin(0.5 / 2), 120
    covered = 0
    for seed in range(runs):
        result = spearman(*pair(0.5, 60, rng), seed=seed, level=0.9)
        covered += result.low <= true <= result.high
    assert 0.82 <= covered / runs <= 0.97


def autoregression(phi: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """A stationary series whose neighbours correlate by phi."""
    values = rng.normal(size=n)
    values[0] /= np.sqrt(1 - phi**2)
    for step in range(1, n):
        values[step] += phi * values[step - 1]
    return values


def series(
    case: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Two series of steps that have nothing to do with each other, what is given, and their prompts."""
    prompts, steps = {"few prompts": (4, 60), "many prompts": (24, 30)}.get(case, (1, 127))
    group = np.repeat(np.arange(prompts), steps)
    x, y = (np.concatenate([autoregression(0.8, steps, rng) for _ in range(prompts)]) for _ in range(2))
    if case == "given the step":
        step = np.arange(127.0)
        return x - step / 20, y - step / 20, step, group
    return x, y, None, group


@pytest.mark.parametrize("case", ["one prompt", "given the step", "few prompts", "many prompts"])
def test_what_only_resembles_itself_is_rarely_taken_for_related(case: str) -> None:
    rng, runs = np.random.default_rng(7), 100
    small = outside = 0
    for seed in range(runs):
        x, y, given, group = series(case, rng)
        result = spearman(x, y, given, group, seed=seed)
        small += result.p < 0.05
        outside += not result.low <= 0 <= result.high
    assert small / runs <= 0.1
    # A percentile interval of so few independent blocks or prompts is somewhat too narrow.
    assert outside / runs <= 0.15


@pytest.mark.parametrize("case", ["one prompt", "given the step", "few prompts", "many prompts"])
def test_a_relation_is_found_however_much_its_steps_resemble_each_other(case: str) -> None:
    rng, runs = np.random.default_rng(8), 20
    found = 0
    for seed in range(runs):
        x, y, given, group = series(case, rng)
        result = spearman(x, y + x, given, group, seed=seed)
        found += result.p < 0.05 and result.low > 0
    assert found / runs >= 0.9


def test_a_shared_trend_is_found_by_no_shift_and_gone_once_the_step_is_given() -> None:
    rng, runs, step = np.random.default_rng(10), 40, np.arange(95.0)
    small = related = 0
    for seed in range(runs):
        x, y = rng.normal(0, 15, size=(2, 95)) - step
        small += spearman(x, y, seed=seed).p <= 0.05
        given = spearman(x, y, step, seed=seed)
        related += not given.low <= 0 <= given.high
    assert small / runs > 0.8, "p by shifts is no evidence against a trend"
    assert related / runs <= 0.2


def test_what_is_given_leaves_nothing_of_itself() -> None:
    step = np.arange(20.0)
    assert not spearman(-step, step + np.random.default_rng(0).normal(size=20), step).known


@pytest.mark.parametrize(("prompts", "pairs"), [(1, 7), (6, 1)])
def test_an_interval_of_too_little_is_not_told(prompts: int, pairs: int) -> None:
    rng = np.random.default_rng(11)
    result = spearman(*rng.normal(size=(2, prompts * pairs)), group=np.repeat(np.arange(prompts), pairs))
    assert result.known
    assert np.isnan(result.low)
    assert result.interval_text == "[no interval]"


def test_the_order_of_the_steps_counts_and_that_of_the_prompts_does_not() -> None:
    rng = np.random.default_rng(9)
    x, y, _, group = series("few prompts", rng)
    whole = spearman(x, y + x, group=group)
    backwards = np.argsort(-group, kind="stable")
    again = spearman(x[backwards], (y + x)[backwards], group=group[backwards])
    assert (again.rho, again.p) == pytest.approx((whole.rho, whole.p), abs=0.02)
    mixed = rng.permutation(len(x))
    apart = spearman(x[mixed], (y + x)[mixed], group=group[mixed])
    assert apart.rho == pytest.approx(whole.rho)
    assert apart.high - apart.low < whole.high - whole.low


def test_grouped_intervals_are_wider_where_groups_differ() -> None:
    rng = np.random.default_rng(6)
    group = np.repeat(np.arange(24), 10)
    shift = rng.normal(size=24)[group] * 3
    x, y = shift + rng.normal(size=240), shift + rng.normal(size=240)
    mixed = rng.permutation(240)
    alone, grouped = spearman(x[mixed], y[mixed]), spearman(x, y, group=group)
    assert grouped.groups == 24
    assert grouped.high - grouped.low > alone.high - alone.low
    assert grouped.p < 0.9


@pytest.mark.parametrize("x", [[], [1.0, 2.0], [3.0] * 10, [np.nan] * 10])
def test_what_has_no_coefficient_says_so(x: list[float]) -> None:
    result = spearman(np.array(x), np.arange(float(len(x))))
    assert not result.known
    assert np.isnan(result.p)


def test_pairs_with_a_gap_are_left_out() -> None:
    x, y = np.arange(10.0), np.arange(10.0)
    y[3] = np.nan
    assert spearman(x, y).n == 9
