"""Drift: how far the value vectors of a run's positions moved, by step, layer and kind of position."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.trace import Trace

# Kinds of position in one forward; `changed` are masks that have become tokens since their last refresh.
POSITION_CLASSES = ("prompt", "decoded", "changed", "window", "later")
# `cached`: what a cache would reuse: not the window's masks, which EntropyCache recomputes.
POSITION_SETS = {
    "cached": ("prompt", "decoded", "later"),
    **{name: (name,) for name in POSITION_CLASSES},
}


@dataclass(frozen=True, eq=False)
class Drift:
    """Mean cosine distance of value vectors between refreshes; NaN where nothing was observed.

    values: float [S, N, C], count: int [S, N, C] positions behind each, C as in POSITION_CLASSES.
    every_position: True where each step after the first observed the whole canvas, as a run without a
    cache does: only then is this the drift between consecutive steps.
    """

    values: np.ndarray
    count: np.ndarray
    every_position: bool

    def by_step(self, positions: str = "cached") -> np.ndarray:
        """Mean over layers and positions of a set in POSITION_SETS, float [S]."""
        return self._mean(positions, axis=(1, 2))

    def by_layer(self, positions: str = "cached") -> np.ndarray:
        """Mean over steps and positions of a set, float [N]."""
        return self._mean(positions, axis=(0, 2))

    def to_frame(self) -> pd.DataFrame:
        """One row a step, layer and position class that was observed."""
        step, layer, kind = np.nonzero(self.count)
        return pd.DataFrame(
            {
                "step": step,
                "layer": layer,
                "positions": np.array(POSITION_CLASSES)[kind],
                "drift": self.values[step, layer, kind],
                "count": self.count[step, layer, kind],
            }
        )

    def _mean(self, positions: str, axis: tuple[int, int]) -> np.ndarray:
        if positions not in POSITION_SETS:
            raise ValueError(f"positions is {positions!r}; allowed: {', '.join(POSITION_SETS)}")
        kinds = [POSITION_CLASSES.index(name) for name in POSITION_SETS[positions]]
        weights = self.count[:, :, kinds].astype(float)
        total = weights.sum(axis=axis)
        weighted = np.where(weights > 0, self.values[:, :, kinds], 0) * weights
        return np.divide(weighted.sum(axis=axis), total, out=np.full(total.shape, np.nan), where=total > 0)


def drift(trace: Trace) -> Drift:
    """Read a trace's drift. Raises ValueError where the run was not watched by a ValueDriftProbe."""
    values = measured(trace, "value_drift")
    count = measured(trace, "value_drift_count")
    whole = count[1:].sum(axis=2) == trace.canvas_length
    return Drift(values, count, every_position=bool(whole.all()))


def token_drift(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Layer-mean drift of each generated position, float [S, Y], and where its token changed, bool."""
    return measured(trace, "token_drift"), measured(trace, "token_changed").astype(bool)


def measured(trace: Trace, name: str) -> np.ndarray:
    """A measurement of every step, stacked to [S, ...]. Raises ValueError where it was not taken."""
    if not trace.steps or any(name not in step.measurements for step in trace.steps):
        known = sorted(set().union(*(step.measurements for step in trace.steps)))
        raise ValueError(f"measurement {name!r} is not in the trace; it holds {', '.join(known) or 'none'}")
    return np.stack([step.measurements[name] for step in trace.steps])
