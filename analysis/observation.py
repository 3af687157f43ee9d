"""Observation: both of the paper's observations on one group of no-cache traces, taken together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.correlation import Correlation, correlate, detect, drift_pairs
from analysis.roc import Detection
from analysis.trace import Trace
from analysis.volatility import Volatility, volatility

# Without a cache every step is a full one, so the steps since the last of them never vary.
SIGNALS = ("max_entropy", "mean_entropy", "max_doubt", "num_committed", "step")


@dataclass(frozen=True, eq=False)
class Observation:
    """What a group of prompts showed under one commit rule.

    rule: the traces' commit rule; pace: tokens committed a step; pairs: (signal, drift) pairs behind the
    coefficients; detections: by signal, of the top decile of drift, each as a threshold on the signal.
    """

    group: str
    rule: str
    prompts: int
    pace: float
    pairs: int
    correlation: Correlation
    detections: dict[str, Detection]
    volatility: Volatility

    def to_frame(self) -> pd.DataFrame:
        """One row a signal: the columns of Correlation, what they are of, the area under the ROC."""
        frame = self.correlation.to_frame()
        frame.insert(0, "group", self.group)
        frame.insert(1, "rule", self.rule)
        found = [self.detections[signal] for signal in frame["signal"]]
        frame["area"] = [one.area for one in found]
        frame["area_low"], frame["area_high"] = [one.low for one in found], [one.high for one in found]
        return frame


def summarise_drift(traces: Sequence[Trace], group: str = "prompts", seed: int = 0) -> Observation:
    """Both observations of traces that a ValueDriftProbe watched. Raises ValueError where none did."""
    pairs = drift_pairs(traces)
    return Observation(
        group=group,
        rule=str(traces[0].generation["unmask"]),
        prompts=len(traces),
        pace=float(np.mean([trace.num_committed.mean() for trace in traces])),
        pairs=len(pairs.drift),
        correlation=correlate(pairs, SIGNALS, seed),
        detections={signal: detect(pairs, signal, seed=seed) for signal in SIGNALS},
        volatility=volatility(traces, seed=seed),
    )
