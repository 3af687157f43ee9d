"""ROC: how well "signal > tau" finds the steps to find at every tau, and how sure its area is."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.resampling import interval

# Resamples of fewer steps to find are too much alike: of unrelated signals at 95 % one in six to one in two
# was taken for related with 7 and fewer, one in ten to twenty from here on. Ours.
MIN_FOUND = 10


@dataclass(frozen=True, eq=False)
class Detection:
    """How well "signal > tau" finds the steps whose drift is in the top `top_share` of the pairs.

    threshold, true_rate, false_rate: float [K], falling thresholds, shares of the steps to find and of the
    others that exceed them. area: under the ROC curve, 0.5 is chance; NaN without both kinds of step.
    low, high: percentile bootstrap interval of the area at `level`, see `resamples`, NaN where nothing can be
    drawn, or with fewer than MIN_FOUND steps of either kind; it is this signal's own, and the best of several
    areas is somewhat too good. drawn: float [M], the area in each resample, which is the same one for every
    signal of the same pairs.
    """

    signal: str
    threshold: np.ndarray
    true_rate: np.ndarray
    false_rate: np.ndarray
    area: float
    low: float
    high: float
    drawn: np.ndarray
    top_share: float
    n: int
    level: float

    @property
    def varies(self) -> bool:
        """Whether the signal takes more than one value: one that doesn't can't find anything."""
        return len(self.threshold) > 3

    def beats(self, other: "Detection") -> bool:
        """Whether the interval of this area less the other's, of the same pairs, lies above 0."""
        return interval(self.drawn - other.drawn, self.level)[0] > 0

    def bounds(self, signals: int) -> tuple[float, float]:
        """The interval widened for a choice among so many signals (Bonferroni)."""
        return interval(self.drawn, 1 - (1 - self.level) / signals)

    def to_frame(self) -> pd.DataFrame:
        """One row a threshold."""
        return pd.DataFrame(
            {"threshold": self.threshold, "true_rate": self.true_rate, "false_rate": self.false_rate}
        )


def roc(
    signal: str,
    values: np.ndarray,
    wanted: np.ndarray,
    chance: Iterable[np.ndarray],
    top_share: float,
    level: float,
) -> Detection:
    """ROC of values, float [n], for the steps `wanted`, bool [n]; chance: resamples as weights [M, n]."""
    held, dense = np.unique(values, return_inverse=True)
    hits, others = (np.bincount(dense[kind], minlength=len(held)) for kind in (wanted, ~wanted))
    area, drawn = np.nan, np.zeros(0)
    fewest = min(hits.sum(), others.sum())
    if fewest:
        area = float(_areas(dense, wanted, np.ones((1, len(values))))[0])
    if fewest >= MIN_FOUND:
        drawn = np.concatenate([drawn, *(_areas(dense, wanted, weights) for weights in chance)])
    low, high = interval(drawn, level)
    return Detection(
        signal=signal,
        threshold=np.concatenate(([np.inf], held[::-1], [-np.inf])),
        true_rate=_exceeding(hits),
        false_rate=_exceeding(others),
        area=area,
        low=low,
        high=high,
        drawn=drawn,
        top_share=top_share,
        n=len(values),
        level=level,
    )


def _exceeding(count: np.ndarray) -> np.ndarray:
    """Share above infinity, above each value from the largest down, and above minus infinity.

    count: int [V], steps at each value, smallest value first. Nothing exceeds the first two.
    """
    return np.concatenate(([0, 0], count[::-1].cumsum())) / max(count.sum(), 1)


def _areas(dense: np.ndarray, wanted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Area under the ROC of values of these dense ranks [n] for each weighting [M, n], float [M].

    NaN where a weighting holds one kind of step only.
    """
    order = np.argsort(dense, kind="stable")
    starts = np.searchsorted(dense[order], np.arange(dense.max() + 1))
    hits, others = (np.add.reduceat((weights * kind)[:, order], starts, axis=1) for kind in (wanted, ~wanted))
    # Of two steps of equal value either comes first half of the time.
    found = (hits * (others.cumsum(axis=1) - others / 2)).sum(axis=1)
    total = hits.sum(axis=1) * others.sum(axis=1)
    return np.divide(found, total, out=np.full_like(found, np.nan), where=total > 0)
