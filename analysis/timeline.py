"""Timeline: what was recomputed when and why, step by step and position by position."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.trace import Trace


@dataclass(frozen=True, eq=False)
class Timeline:
    """A run's refreshes. S steps, L canvas positions (prompt, then generation).

    full: bool [S]; reason: [S]; num_refreshed: float [S] rows; num_committed: int [S]; max_entropy: float
    [S] nats; threshold: tau, where the policy compares it with that entropy. share: float [S, L], layers
    that recomputed a position over all layers. age: int [S, L], steps since a position was last
    recomputed in every layer, 0 where it just was. decoded_at: int [Y]. block_starts: steps at which a new
    block began, empty with a sliding window.
    """

    full: np.ndarray
    reason: tuple[str, ...]
    num_refreshed: np.ndarray
    num_committed: np.ndarray
    max_entropy: np.ndarray
    threshold: float | None
    share: np.ndarray
    age: np.ndarray
    decoded_at: np.ndarray
    block_starts: tuple[int, ...]
    prompt_length: int

    @property
    def canvas_length(self) -> int:
        return int(self.share.shape[1])

    def to_frame(self) -> pd.DataFrame:
        """One row a step."""
        return pd.DataFrame(
            {
                "step": np.arange(len(self.full)),
                "full": self.full,
                "reason": self.reason,
                "num_refreshed": self.num_refreshed,
                "num_committed": self.num_committed,
                "max_entropy": self.max_entropy,
            }
        )


def timeline(trace: Trace) -> Timeline:
    """Read a trace's timeline; the trace may be of a run still going on."""
    refreshed = trace.refreshed
    threshold = trace.policy["config"].get("entropy_threshold")
    return Timeline(
        full=np.array([step.full for step in trace.steps], dtype=bool),
        reason=tuple(step.reason for step in trace.steps),
        num_refreshed=np.array([step.num_refreshed for step in trace.steps], dtype=float),
        num_committed=trace.num_committed,
        max_entropy=trace.max_entropy,
        threshold=None if threshold is None else float(threshold),
        share=refreshed / trace.num_layers,
        age=_age(refreshed == trace.num_layers),
        decoded_at=trace.decoded_at,
        block_starts=_block_starts(trace),
        prompt_length=len(trace.prompt_ids),
    )


def _age(whole: np.ndarray) -> np.ndarray:
    """Steps since bool [S, L] was last True, int [S, L]."""
    steps = np.arange(len(whole))[:, None]
    last = np.maximum.accumulate(np.where(whole, steps, 0), axis=0)
    return steps - last


def _block_starts(trace: Trace) -> tuple[int, ...]:
    """Steps whose window is another block than the step before's; the window is the first masked block."""
    if trace.generation.get("window", "block") != "block":
        return ()
    length = int(trace.generation["block_length"])
    decoded = trace.decoded_at
    blocks = []
    for step in trace.steps:
        masked = np.flatnonzero((decoded < 0) | (decoded >= step.step))
        blocks.append(int(masked[0]) // length if len(masked) else -1)
    return tuple(at for at, block in enumerate(blocks) if at == 0 or block != blocks[at - 1])
