"""Memory: what a generation takes above the weights, against its K/V and one layer's activations."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from analysis.bench_floor import FixedRows, make_denoiser
from core import LanguageModel, ModelSpec


@dataclass(frozen=True)
class MemoryPoint:
    """Bytes of a full and some partial steps at canvas `length`: peak above the weights, and what is needed.

    kv_bytes: the K/V buffers. layer_bytes: what one layer of a full pass holds, see `layer_bytes`.
    """

    model: str
    dtype: str
    length: int
    peak_bytes: int
    kv_bytes: int
    layer_bytes: int

    @property
    def ratio(self) -> float:
        """Peak over K/V and one layer."""
        return self.peak_bytes / (self.kv_bytes + self.layer_bytes)

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        return pd.DataFrame([{**vars(self), "ratio": self.ratio}])


def layer_bytes(spec: ModelSpec, length: int, width: int) -> int:
    """Residual stream, its norm, fused q, k, v, attention, gate and up, their product, the output."""
    q, kv = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
    values = 3 * spec.hidden_size + 2 * q + 2 * kv + 3 * spec.intermediate_size
    return width * length * values


@torch.inference_mode()
def measure_memory(model: LanguageModel, length: int, steps: int = 4) -> MemoryPoint:
    """Peak of a run's first, full step and `steps - 1` partial ones of 96 rows.

    On a CPU it is the resident memory of this process (Linux), so run it before anything else has
    grown the heap. Raises ValueError where the system doesn't tell.
    """

    def run() -> None:
        denoiser = make_denoiser(model, length, FixedRows(96), batch=1, gen_length=min(256, length // 2))
        for _ in range(steps - 1):
            denoiser.step()

    spec, width = model.spec, model.dtype.itemsize
    return MemoryPoint(
        model=model.ref,
        dtype=str(model.dtype).removeprefix("torch."),
        length=length,
        peak_bytes=_growth(run, model.device),
        kv_bytes=spec.kv_bytes_per_position(width) * length,
        layer_bytes=layer_bytes(spec, length, width),
    )


def _growth(work: Callable[[], None], device: torch.device) -> int:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    # Writing 5 makes the kernel forget the peak so far.
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():
        raise ValueError("this system does not tell a process its peak memory; allowed: Linux or CUDA")
    reset.write_text("5")
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"/proc/self/status has no {field}")
    return 1024 * int(found[1])
