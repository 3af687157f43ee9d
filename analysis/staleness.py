"""Staleness: how wrong a policy's cache was, step by step, and whether it would have mattered."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.cost import num_targets
from analysis.drift import measured
from analysis.trace import Trace


@dataclass(frozen=True, eq=False)
class Staleness:
    """The live cache against a full pass over the same canvas, at the S' steps that were looked at.

    step: int [S']. key, value: float [S', N], mean cosine distance over all positions at each layer.
    hidden: float [S'], the same of the final hidden states that predict the window's masks. flipped:
    float [S'], share of these masks whose most likely token the full pass changes. masks: int [S'], how many
    they are. full: bool [S'].
    """

    step: np.ndarray
    key: np.ndarray
    value: np.ndarray
    hidden: np.ndarray
    flipped: np.ndarray
    masks: np.ndarray
    full: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """One row a step looked at, layers averaged."""
        return pd.DataFrame(
            {
                "step": self.step,
                "full": self.full,
                "key": self.key.mean(axis=1),
                "value": self.value.mean(axis=1),
                "hidden": self.hidden,
                "flipped": self.flipped,
                "masks": self.masks,
            }
        )


def staleness(trace: Trace) -> Staleness:
    """Read a trace's staleness. Raises ValueError where no StalenessProbe watched the run."""
    value = measured(trace, "value_staleness")
    looked = ~np.isnan(value).any(axis=1)
    return Staleness(
        step=np.flatnonzero(looked),
        key=measured(trace, "key_staleness")[looked],
        value=value[looked],
        hidden=measured(trace, "hidden_staleness")[looked],
        flipped=measured(trace, "flipped")[looked],
        masks=num_targets(trace)[looked],
        full=np.array([step.full for step in trace.steps])[looked],
    )


@dataclass(frozen=True)
class StalenessSummary:
    """Means over the partial steps looked at of several runs; NaN where none was observed.

    flipped: share of the window's masks whose choice a full pass would have changed; steps: partial steps
    looked at.
    """

    key: float
    value: float
    hidden: float
    flipped: float
    steps: int

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        return pd.DataFrame([vars(self)])


def summarise_staleness(traces: Sequence[Trace]) -> StalenessSummary:
    """Pool the partial steps of traces. Raises ValueError where no StalenessProbe watched."""
    frame = pd.concat([staleness(trace).to_frame() for trace in traces])
    partial = frame[~frame["full"].astype(bool)]
    names = ("key", "value", "hidden", "flipped")
    return StalenessSummary(**{name: float(partial[name].mean()) for name in names}, steps=len(partial))
