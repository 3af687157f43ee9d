"""Projection: what EntropyCache would have recomputed with another tau or k, along a path already taken."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.trace import Trace


@dataclass(frozen=True, eq=False)
class Projection:
    """Projected refreshes of a recorded run of S steps on L canvas positions.

    It is no run: the tokens, and so every entropy, are those recorded; another cache would have changed
    them. refreshed: bool [S, L]; full: bool [S]; triggered: bool [S], full because of the entropy of the
    step before; max_entropy: float [S] nats, as recorded. recorded_full: bool [S] and recorded_rows: float
    [S], what the run did.
    """

    threshold: float
    recent: int
    refreshed: np.ndarray
    full: np.ndarray
    triggered: np.ndarray
    max_entropy: np.ndarray
    recorded_full: np.ndarray
    recorded_rows: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Rows recomputed at each step, int [S]."""
        return self.refreshed.sum(axis=1)

    @property
    def recompute_ratio(self) -> float:
        return float(self.refreshed.mean()) if self.refreshed.size else math.nan

    @property
    def recorded_ratio(self) -> float:
        return float(self.recorded_rows.sum()) / self.refreshed.size if self.refreshed.size else math.nan

    def to_frame(self) -> pd.DataFrame:
        """One row a step."""
        return pd.DataFrame(
            {
                "step": np.arange(len(self.full)),
                "max_entropy": self.max_entropy,
                "full": self.full,
                "num_refreshed": self.rows,
                "recorded_full": self.recorded_full,
                "recorded_num_refreshed": self.recorded_rows,
            }
        )


def project(trace: Trace, threshold: float, recent: int) -> Projection:
    """Apply EntropyCache's rule to a trace's entropies and order of commits.

    threshold: tau in nats; recent: k. Its other settings are the trace's own where it ran EntropyCache,
    else the defaults. Raises ValueError for a NaN threshold or a k below 0.
    """
    if math.isnan(threshold):
        raise ValueError("threshold is nan; allowed: a number, inf or -inf")
    if recent < 0:
        raise ValueError(f"recent is {recent}; allowed: an integer of at least 0")
    steps, entropies = len(trace.steps), trace.max_entropy
    path = _Path(trace)
    refreshed = np.zeros((steps, trace.canvas_length), dtype=bool)
    triggered = np.zeros(steps, dtype=bool)
    last_full, partial_run = 0, 0
    for step in range(steps):
        triggered[step] = step > 0 and bool(entropies[step - 1] > threshold)
        # What is decided, not what is computed: a small partial set may happen to be everything.
        if step == 0 or triggered[step] or path.forces(step, partial_run):
            refreshed[step] = True
            last_full, partial_run = step, 0
        else:
            refreshed[step] = path.partial(step, last_full, recent)
            partial_run += 1
    return Projection(
        threshold=threshold,
        recent=recent,
        refreshed=refreshed,
        full=np.asarray(refreshed.all(axis=1)),
        triggered=triggered,
        max_entropy=entropies,
        recorded_full=np.array([step.full for step in trace.steps], dtype=bool),
        recorded_rows=np.array([step.num_refreshed for step in trace.steps], dtype=float),
    )


class _Path:
    """A trace's order of commits, and the settings of EntropyCache that are not projected."""

    def __init__(self, trace: Trace) -> None:
        settings, generation = trace.policy["config"], trace.generation
        self.scope = settings.get("scope", "since_full")
        self.at_block_start = bool(settings.get("refresh_on_block_start", False))
        self.max_partial_run = settings.get("max_partial_run")
        self.block = int(generation["block_length"])
        self.sliding = generation.get("window", "block") == "sliding"
        self.shift = int(trace.model.get("logit_shift", 0))
        self.prompt = len(trace.prompt_ids)
        decoded = trace.decoded_at
        self.decoded = np.where(decoded < 0, np.iinfo(int).max, decoded)

    def window(self, step: int) -> np.ndarray:
        """Masked positions that step may decode, bool [Y]."""
        masked = self.decoded >= step
        if self.sliding:
            return masked & (masked.cumsum() <= self.block)
        first = int(masked.argmax()) // self.block * self.block
        columns = np.arange(len(masked))
        return masked & (columns >= first) & (columns < first + self.block)

    def forces(self, step: int, partial_run: int) -> bool:
        """Whether a setting other than tau makes the step full."""
        if self.max_partial_run is not None and partial_run >= self.max_partial_run:
            return True
        if not self.at_block_start or self.sliding:
            return False
        now, before = (int((self.decoded >= at).argmax()) // self.block for at in (step, step - 1))
        return now != before

    def partial(self, step: int, last_full: int, recent: int) -> np.ndarray:
        """Rows of a partial step, bool [L]: the window, the most recent k and all just committed."""
        window = self.window(step)
        known = self.decoded < step
        candidate = known & (self.decoded >= (last_full if self.scope == "since_full" else 0))
        chosen = window | (candidate & (self.decoded == step - 1))
        order = np.lexsort((np.arange(len(known)), -np.where(candidate, self.decoded, -1)))
        newest = order[: min(recent, int(candidate.sum()))]
        chosen[newest] = True
        rows = np.concatenate((np.zeros(self.prompt, dtype=bool), chosen))
        if self.shift:
            targets = np.concatenate((np.zeros(self.prompt, dtype=bool), window))
            rows[: -self.shift] |= targets[self.shift :]
        return rows
