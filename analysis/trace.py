"""Trace: everything one request's run has told, as plain data that analyses, plots and files share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SECONDS = ("plan", "forward", "decode")


@dataclass(frozen=True, eq=False)
class Step:
    """One denoising step of one request.

    committed: positions counted from the start of the generation; tokens, confidence (probability) and
    entropy (nats) are aligned with it. refreshed: int [L], the number of layers that recomputed each
    canvas position; the canvas is the prompt and the generation, without padding. seconds: plan, forward
    and decode, of the whole batch the request ran in. measurements: what probes saw, name to array.
    """

    step: int
    full: bool
    reason: str
    committed: tuple[int, ...]
    tokens: tuple[int, ...]
    confidence: tuple[float, ...]
    entropy: tuple[float, ...]
    refreshed: np.ndarray
    num_layers: int
    seconds: Mapping[str, float]
    measurements: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def max_entropy(self) -> float:
        """Largest entropy of the tokens committed here, nats: EntropyCache's signal. NaN where none was."""
        return max(self.entropy, default=float("nan"))

    @property
    def num_refreshed(self) -> float:
        """Rows recomputed: positions, counted in the share of the layers that recomputed them."""
        return float(self.refreshed.sum()) / self.num_layers


@dataclass(frozen=True, eq=False)
class Trace:
    """One request's run, complete or cut short.

    model, policy ({"name", "config"}) and generation are the run's settings. tokens: gen_length ids, the
    mask token where nothing was decoded. text: None without a tokenizer. batch_size: slots that were
    denoised together; each step's seconds are those of the whole batch, so speeds of a larger batch are
    per request as it was experienced, not the batch's throughput.
    """

    model: Mapping[str, Any]
    policy: Mapping[str, Any]
    generation: Mapping[str, Any]
    prompt: str | None
    prompt_ids: tuple[int, ...]
    tokens: tuple[int, ...]
    text: str | None
    steps: tuple[Step, ...]
    batch_size: int = 1

    @property
    def gen_length(self) -> int:
        return len(self.tokens)

    @property
    def canvas_length(self) -> int:
        return len(self.prompt_ids) + len(self.tokens)

    @property
    def num_layers(self) -> int:
        return int(self.model["num_layers"])

    @property
    def complete(self) -> bool:
        """False where masks are left in the tokens: the run was cut short."""
        return self.model["mask_token_id"] not in self.tokens

    @property
    def max_entropy(self) -> np.ndarray:
        """Largest entropy among the tokens each step committed, nats, float [S]; NaN where none was."""
        return np.array([step.max_entropy for step in self.steps], dtype=float)

    @property
    def num_committed(self) -> np.ndarray:
        """Tokens committed by each step, int [S]."""
        return np.array([len(step.committed) for step in self.steps], dtype=int)

    @property
    def refreshed(self) -> np.ndarray:
        """Layers that recomputed each canvas position at each step, int [S, L]."""
        rows = [step.refreshed for step in self.steps]
        return np.stack(rows) if rows else np.zeros((0, self.canvas_length), dtype=int)

    @property
    def decoded_at(self) -> np.ndarray:
        """Step at which each generated position was committed, int [Y]; -1 where it was not."""
        decoded = np.full(self.gen_length, -1)
        for step in self.steps:
            decoded[list(step.committed)] = step.step
        return decoded

    @property
    def answer_length(self) -> int:
        """Positions before the first end-of-text; gen_length where there is none."""
        # Not core's end_of_text: a trace is read without torch.
        ends = np.isin(self.tokens, list(self.model["eos_token_ids"]))
        return int(np.argmax(ends)) if ends.any() else self.gen_length

    @property
    def num_useful_tokens(self) -> int:
        """Decoded tokens up to and including the first end-of-text."""
        return int((self.decoded_at >= 0)[: self.answer_length + 1].sum())

    @property
    def totals(self) -> dict[str, float | int | None]:
        """The file format's totals; None where there is nothing to divide by.

        recompute_ratio: rows refreshed / (steps x canvas length). tokens_per_step: committed positions,
        those after the end-of-text among them, over steps. tokens_per_second: num_useful_tokens over
        `seconds`, the sum of plan, forward and decode. decision_overhead: plan / that sum.
        """
        steps = len(self.steps)
        parts = {name: sum(step.seconds[name] for step in self.steps) for name in SECONDS}
        seconds = sum(parts.values())
        rows = sum(step.num_refreshed for step in self.steps)
        return {
            "steps": steps,
            "full_steps": sum(step.full for step in self.steps),
            "recompute_ratio": rows / (steps * self.canvas_length) if steps else None,
            "tokens_per_step": float(self.num_committed.sum()) / steps if steps else None,
            "tokens_per_second": self.num_useful_tokens / seconds if seconds > 0 else None,
            "decision_overhead": parts["plan"] / seconds if seconds > 0 else None,
            "seconds": seconds,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a step."""
        return pd.DataFrame(
            {
                "step": [step.step for step in self.steps],
                "full": [step.full for step in self.steps],
                "reason": [step.reason for step in self.steps],
                "num_committed": self.num_committed,
                "num_refreshed": [step.num_refreshed for step in self.steps],
                "max_entropy": self.max_entropy,
                **{f"{name}_seconds": [step.seconds[name] for step in self.steps] for name in SECONDS},
            }
        )

    def tokens_frame(self) -> pd.DataFrame:
        """One row a generated position; confidence and entropy are those of its commit, NaN before."""
        confidence, entropy = np.full((2, self.gen_length), np.nan)
        for step in self.steps:
            confidence[list(step.committed)] = step.confidence
            entropy[list(step.committed)] = step.entropy
        return pd.DataFrame(
            {
                "position": np.arange(self.gen_length),
                "token": self.tokens,
                "decoded_at": self.decoded_at,
                "confidence": confidence,
                "entropy": entropy,
            }
        )

    def to_json(self) -> dict[str, Any]:
        """The trace file's content (schema 1): plain lists, numbers and strings."""
        from analysis.trace_file import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, data: Any) -> "Trace":
        """Read `to_json`'s content. Raises ValueError, naming the field, for anything else."""
        from analysis.trace_file import from_json

        return from_json(data)

    def save(self, path: str | Path) -> None:
        """Write the trace file."""
        from analysis.trace_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read a trace file. Raises ValueError for a file that is not one, OSError for none at all."""
        from analysis.trace_file import load

        return load(path)


def plain_array(values: Any) -> np.ndarray:
    """A measurement in one of the three types a file keeps: bool, int64 or float32."""
    array = np.asarray(values)
    if array.dtype == bool:
        return array
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float32)
