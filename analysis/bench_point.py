"""BenchPoint: what one policy costs at one size."""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import pandas as pd

from analysis.records import record


@dataclass(frozen=True)
class BenchPoint:
    """One policy at one size: medians over `repeats` runs after a warm-up.

    Seconds and steps are of the whole batch, from its first pass to its last. full_seconds,
    partial_seconds: a step of that kind without its decision, None where no such step was taken; full where
    any sequence's is, as the first one always. plan_seconds: the decision of a step after the first.
    partial_rows: rows a partial step recomputes, mean over the sequences. decision_overhead: plan over all
    seconds of a run, as the paper defines it. *_low, *_high: their spread (see `analysis.spread`) over the
    steps and over the runs, None where there is one alone; num_plans: decisions timed. spread: (slowest -
    fastest) / median of the runs' seconds. positions_per_second: generated positions of all sequences, those
    after an end-of-text among them, since prompts are random; batch x gen_length a run unless the decoding
    stops at an end-of-text. None in files that counted up to the end of the text. peak_bytes: device memory,
    None on a CPU. clock: wall seconds or `cpu`, this process's own seconds of the processor.
    """

    setting: str
    model: str
    num_layers: int
    hidden_size: int
    prompt_length: int
    gen_length: int
    batch: int
    dtype: str
    device: str
    threads: int
    repeats: int
    steps: int
    full_seconds: float | None
    partial_seconds: float | None
    partial_rows: float | None
    plan_seconds: float | None
    decision_overhead: float
    seconds: float
    spread: float
    peak_bytes: int | None
    plan_low: float | None = None
    plan_high: float | None = None
    overhead_low: float | None = None
    overhead_high: float | None = None
    num_plans: int | None = None
    clock: str = "wall"
    positions_per_second: float | None = None

    @classmethod
    def from_json(cls, data: Any) -> "BenchPoint":
        """Read a point's fields. Raises ValueError where one without a default is missing or one is wrong."""
        known = [field.name for field in fields(cls)]
        needed = [field.name for field in fields(cls) if field.default is MISSING]
        missing = [name for name in needed if not isinstance(data, dict) or name not in data]
        if missing:
            raise ValueError(f"bench point lacks {', '.join(missing)}")
        return record(cls, {name: data[name] for name in known if name in data})


def to_frame(points: Sequence[BenchPoint]) -> pd.DataFrame:
    """One row a point."""
    return pd.DataFrame([vars(point) for point in points])
