"""Figures: what was measured in a line each, with n and spread."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Figure:
    """One line of the report. text: the figure with its spread; met: whether the target is, None without."""

    what: str
    text: str
    target: str = ""
    met: bool | None = None

    def row(self) -> str:
        """A row of a Markdown table."""
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        return f"| {self.what} | {self.text} | {self.target} | {verdict} |"


def spread(values: Sequence[float], unit: str, digits: int = 1) -> str:
    """Median, 90th percentile, range and n of what was measured; says so where nothing was."""
    if not values:
        return "not observed, n = 0"
    middle, ninth = np.percentile(values, [50, 90])
    return (
        f"median {middle:.{digits}f} {unit}, 90th percentile {ninth:.{digits}f}, "
        f"range {min(values):.{digits}f} to {max(values):.{digits}f}, n = {len(values)}"
    )


def growth(samples: Sequence[float], each: int) -> tuple[float, float, float]:
    """Mean growth a run with its 95 % interval, from samples taken every `each` runs.

    From the differences between neighbours, as if each were drawn on its own: memory that is taken in blocks
    makes neighbouring samples, but not their differences, look alike. At least 3 samples.
    """
    steps = np.diff(np.asarray(samples, dtype=float)) / each
    low, high = stats.t.interval(0.95, len(steps) - 1, loc=steps.mean(), scale=stats.sem(steps))
    return float(steps.mean()), float(low), float(high)
