"""Cost: what a run computed and how long it took, measured in seconds and counted in operations."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.trace import SECONDS, Trace


@dataclass(frozen=True)
class Cost:
    """One run's totals (see Trace.totals for their definitions) and its arithmetic.

    full_step_ratio: full steps / steps. seconds_by_part: plan, forward and decode. flops: floating-point
    operations of the method by the formula of `step_flops`, not what this engine spares of them;
    flops_ratio: the same over those of full passes at every one of its steps. Ratios are None where there
    is nothing to divide by.
    """

    steps: int
    full_step_ratio: float | None
    recompute_ratio: float | None
    tokens_per_step: float | None
    tokens_per_second: float | None
    decision_overhead: float | None
    seconds: float
    seconds_by_part: dict[str, float]
    flops: float
    flops_ratio: float | None
    num_tokens: int

    def to_frame(self) -> pd.DataFrame:
        """One row a quantity."""
        values = {name: value for name, value in vars(self).items() if name != "seconds_by_part"}
        values |= {f"{part}_seconds": value for part, value in self.seconds_by_part.items()}
        return pd.DataFrame({"quantity": list(values), "value": list(values.values())})


def cost(trace: Trace) -> Cost:
    """Add up a trace. Raises ValueError where its model facts lack a size the arithmetic needs."""
    totals = trace.totals
    steps = len(trace.steps)
    rows = np.array([step.num_refreshed for step in trace.steps], dtype=float)
    logit_rows = num_targets(trace)
    flops = float(step_flops(trace, rows, logit_rows).sum())
    whole = np.full(steps, float(trace.canvas_length))
    reference = float(step_flops(trace, whole, logit_rows).sum())
    return Cost(
        steps=steps,
        full_step_ratio=sum(step.full for step in trace.steps) / steps if steps else None,
        recompute_ratio=totals["recompute_ratio"],
        tokens_per_step=totals["tokens_per_step"],
        tokens_per_second=totals["tokens_per_second"],
        decision_overhead=totals["decision_overhead"],
        seconds=float(totals["seconds"] or 0.0),
        seconds_by_part={part: sum(step.seconds[part] for step in trace.steps) for part in SECONDS},
        flops=flops,
        flops_ratio=flops / reference if reference else None,
        num_tokens=trace.num_useful_tokens,
    )


def step_flops(trace: Trace, rows: np.ndarray, logit_rows: np.ndarray) -> np.ndarray:
    """Operations of steps that recompute `rows` float [S] and read `logit_rows` float [S] predictions.

    Per layer and n rows: projections 2n(2 d H D + 2 d G D), the gated MLP 6 n d f, attention over the
    canvas 4 n L H D; then 2 r d V for the head. A multiply and an add are two operations. Every layer is
    counted in full for each row, as the method has it. In the last layer this engine makes only q, K and V of
    rows that predict nothing, which `bench_roofline.ModelCost.flops` counts: up to a part in N fewer.
    """
    names = ("hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim", "vocab_size")
    missing = [name for name in names if not isinstance(trace.model.get(name), int)]
    if missing:
        raise ValueError(f"model of the trace lacks {', '.join(missing)}; its cost can't be counted")
    d, f, heads, kv_heads, head, vocab = (int(trace.model[name]) for name in names)
    per_row = 4 * d * heads * head + 4 * d * kv_heads * head + 6 * d * f
    attention = 4 * trace.canvas_length * heads * head
    return rows * trace.num_layers * (per_row + attention) + 2.0 * logit_rows * d * vocab


def num_targets(trace: Trace) -> np.ndarray:
    """Masked positions of the window at each step, int [S]: the predictions a step reads at most."""
    length = int(trace.generation["block_length"])
    sliding = trace.generation.get("window", "block") != "block"
    decoded = trace.decoded_at
    counts = []
    for step in trace.steps:
        masked = np.flatnonzero((decoded < 0) | (decoded >= step.step))
        if not sliding and len(masked):
            masked = masked[masked // length == masked[0] // length]
        counts.append(min(len(masked), length))
    return np.array(counts, dtype=int)
