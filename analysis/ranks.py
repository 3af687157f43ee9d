"""Rank correlation with what belongs beside it: ties, an interval, a p-value, a confounder taken out."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from analysis.resampling import interval, resamples, shifted_sums, shifts


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's coefficient of two variables over n pairs.

    rho: NaN below three pairs or where either variable is constant, or follows from what is given. low, high:
    percentile bootstrap interval at `level`, see `resamples`: over prompts where there are enough of them,
    else over the steps of these prompts, NaN where nothing can be drawn; somewhat too narrow for a hundred
    steps or so that resemble each other much. p: two-sided, the share of circular shifts within prompts
    that reach rho; of one prompt all of them are taken, so it can't lie below 1 / n. It allows for steps
    that resemble their neighbours, not for a trend that both variables share: for that, take the step as
    given.
    ties: pairs that share their value of the first variable with another pair. groups: prompts the pairs
    come from.
    """

    rho: float
    low: float
    high: float
    p: float
    n: int
    ties: int
    groups: int
    level: float = 0.95

    @property
    def known(self) -> bool:
        return not np.isnan(self.rho)

    @property
    def interval_text(self) -> str:
        """The interval in brackets, or that there is none."""
        return "[no interval]" if np.isnan(self.low) else f"[{self.low:+.2f}, {self.high:+.2f}]"

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        values = {name: value for name, value in vars(self).items() if name != "groups"}
        return pd.DataFrame([{**values, "prompts": self.groups}])


def spearman(
    x: np.ndarray,
    y: np.ndarray,
    given: np.ndarray | None = None,
    group: np.ndarray | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> RankCorrelation:
    """Spearman's rho of x and y, float [n]; with `given` [n] its ranks are partialled out of both.

    group: [n], the prompt of each pair; one prompt without it. A prompt's pairs are in the order of its
    steps. Pairs with a NaN are left out. Where `given` is constant there is nothing to take out and the plain
    coefficient is returned.
    """
    columns = [x, y] if given is None else [x, y, given]
    kept = ~np.isnan(np.stack(columns)).any(axis=0)
    columns = [np.asarray(column, float)[kept] for column in columns]
    if given is not None and len(columns[2]) and np.ptp(columns[2]) == 0:
        columns = columns[:2]
    of = np.zeros(kept.sum(), int) if group is None else np.unique(group[kept], return_inverse=True)[1]
    n, groups = len(of), int(of.max(initial=-1)) + 1
    ties = int(sum(count for count in np.unique(columns[0], return_counts=True)[1] if count > 1))
    rho = float(coefficients(columns, np.ones((1, n)))[0]) if n > 2 else np.nan
    if np.isnan(rho):
        return RankCorrelation(np.nan, np.nan, np.nan, np.nan, n, ties, groups, level)
    rng = np.random.default_rng(seed)
    # Their product remembers no longer than either series does: blocks that serve both are long enough.
    chance = resamples(of, np.stack(_residuals(columns), axis=1), rng)
    drawn = np.concatenate([np.zeros(0), *(coefficients(columns, weights) for weights in chance)])
    low, high = interval(drawn, level)
    return RankCorrelation(rho, low, high, _shift_p(columns, of, rng), n, ties, groups, level)


def coefficients(columns: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Spearman's rho of columns[0] and columns[1] (given columns[2]) for each weighting [M, n], float [M].

    A weight counts how often a pair was drawn; NaN where a column is constant among the drawn.
    """
    total = weights.sum(axis=1, keepdims=True)
    centred = []
    for column in columns:
        ranks = _weighted_ranks(column, weights)
        ranks -= (ranks * weights).sum(axis=1, keepdims=True) / total
        spread = np.sqrt((ranks**2 * weights).sum(axis=1, keepdims=True))
        centred.append(np.divide(ranks, spread, out=np.full_like(ranks, np.nan), where=spread > 1e-9))

    def pearson(a: int, b: int) -> np.ndarray:
        return np.clip((centred[a] * centred[b] * weights).sum(axis=1), -1, 1)

    if len(columns) == 2:
        return pearson(0, 1)
    xy, xz, yz = pearson(0, 1), pearson(0, 2), pearson(1, 2)
    left = np.sqrt((1 - xz**2) * (1 - yz**2))
    return np.divide(xy - xz * yz, left, out=np.full_like(xy, np.nan), where=left > 1e-6)


def _weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mid-ranks of values [n] in the sample that holds each as often as weights [M, n] says, [M, n]."""
    dense = rankdata(values, method="dense") - 1
    order = np.argsort(dense, kind="stable")
    starts = np.searchsorted(dense[order], np.arange(dense.max() + 1))
    held = np.add.reduceat(weights[:, order], starts, axis=1)
    return (held.cumsum(axis=1) - held + (held + 1) / 2)[:, dense]


def _residuals(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Ranks of the first two columns, less what those of a third explain, centred and of length one."""
    given = [_unit(rankdata(column)) for column in columns[2:]]
    found = []
    for column in columns[:2]:
        ranks = rankdata(column) - (len(column) + 1) / 2
        for z in given:
            ranks = ranks - (ranks @ z) * z
        found.append(_unit(ranks))
    return found


def _unit(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean()
    return centred / np.sqrt(centred @ centred)


def _shift_p(columns: list[np.ndarray], group: np.ndarray, rng: np.random.Generator) -> float:
    """Share of circular shifts of the second column that reach the coefficient, the shift by none included.

    Where a column is given, what it leaves of the second is shifted and then held against it once more
    (Freedman and Lane 1983).
    """
    x, y = _residuals(columns)
    moved = shifts(np.unique(group, return_counts=True)[1].tolist(), rng)

    def summed(fixed: np.ndarray) -> np.ndarray:
        parts = shifted_sums(fixed, y, group)
        return np.sum([part[moved[:, index]] for index, part in enumerate(parts)], axis=0)

    reached, left = np.abs(summed(x)), np.ones(len(moved))
    for column in columns[2:]:
        left = np.sqrt(np.clip(1 - summed(_unit(rankdata(column))) ** 2, 1e-12, 1))
    return float(np.mean(reached / left >= reached[0] / left[0] - 1e-9))
