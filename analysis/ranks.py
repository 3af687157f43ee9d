"""Rank correlation with what belongs beside it: ties, an interval, a p-value, a confounder taken out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

NUM_RESAMPLES = 1000
MAX_CELLS = 4_000_000
MIN_GROUPS = 10


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's coefficient of two variables over n pairs.

    rho: NaN below three pairs or where either variable is constant. low, high: percentile bootstrap
    interval at `level`. p: two-sided permutation p-value. ties: pairs that share their value of the first
    variable with another pair. groups: prompts the pairs come from. From MIN_GROUPS prompts up, whole
    prompts are resampled, since steps of one prompt resemble each other; fewer are taken as given, and
    the interval, of pairs resampled within them, speaks of these prompts only. Permutations stay within
    prompts.
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

    group: [n], the prompt of each pair. Pairs with a NaN are left out. Where `given` is constant there is
    nothing to take out and the plain coefficient is returned.
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
    drawn = np.concatenate([coefficients(columns, weights) for weights in _resamples(of, groups, rng)])
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    p = _permutation_p(columns, of, abs(rho), rng)
    return RankCorrelation(rho, float(low), float(high), p, n, ties, groups, level)


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
    return np.divide(xy - xz * yz, left, out=np.full_like(xy, np.nan), where=left > 1e-9)


def _weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mid-ranks of values [n] in the sample that holds each as often as weights [M, n] says, [M, n]."""
    dense = rankdata(values, method="dense") - 1
    order = np.argsort(dense, kind="stable")
    starts = np.searchsorted(dense[order], np.arange(dense.max() + 1))
    held = np.add.reduceat(weights[:, order], starts, axis=1)
    return (held.cumsum(axis=1) - held + (held + 1) / 2)[:, dense]


def _resamples(of: np.ndarray, groups: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each pair is drawn, [M, n] at a time: whole prompts, or pairs within each prompt."""
    for size in _sizes(len(of)):
        if groups >= MIN_GROUPS:
            yield rng.multinomial(groups, np.full(groups, 1 / groups), size=size).astype(float)[:, of]
            continue
        weights = np.zeros((size, len(of)))
        for group in range(groups):
            members = np.flatnonzero(of == group)
            share = np.full(len(members), 1 / len(members))
            weights[:, members] = rng.multinomial(len(members), share, size=size)
        yield weights


def _permutation_p(columns: list[np.ndarray], of: np.ndarray, rho: float, rng: np.random.Generator) -> float:
    """Share of permutations within prompts that reach rho; of rank residuals where a column is given."""
    x, y, *given = (rankdata(column) for column in columns)
    x, y = x - x.mean(), y - y.mean()
    for z in given:
        z = (z - z.mean()) / np.sqrt(((z - z.mean()) ** 2).sum())
        x, y = x - (x @ z) * z, y - (y @ z) * z
    x, y = x / np.sqrt(x @ x), y / np.sqrt(y @ y)
    reached = 0
    for size in _sizes(len(x)):
        # Sorting by prompt, then by chance, permutes within prompts; y waits in the order of `of`.
        chance = np.lexsort((rng.random((size, len(x))), np.broadcast_to(of, (size, len(x)))), axis=1)
        shuffled = np.empty((size, len(x)))
        np.put_along_axis(
            shuffled, np.broadcast_to(np.argsort(of, kind="stable"), chance.shape), y[chance], 1
        )
        reached += int((np.abs(shuffled @ x) >= rho - 1e-12).sum())
    return (1 + reached) / (1 + NUM_RESAMPLES)


def _sizes(n: int) -> list[int]:
    """NUM_RESAMPLES in parts small enough to hold n columns in memory."""
    size = max(1, min(NUM_RESAMPLES, MAX_CELLS // max(n, 1)))
    whole, rest = divmod(NUM_RESAMPLES, size)
    return [size] * whole + [rest] * (rest > 0)
