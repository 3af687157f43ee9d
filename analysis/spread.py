"""Spread: how far a few measurements lie apart, in one definition for all tables."""

from collections.abc import Sequence
from statistics import quantiles

FEWEST_FOR_QUARTILES = 4


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Lower and upper quartile; of fewer than four values, between which quartiles would only be
    interpolated, the smallest and the largest.
    """
    if len(values) < FEWEST_FOR_QUARTILES:
        return min(values), max(values)
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high
