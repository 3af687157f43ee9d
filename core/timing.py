"""Stopwatch: exclusive seconds by part of a step, on kernels that may run asynchronously."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

# Where other programs share the processor, its own seconds are those that they do not lengthen.
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
_clock: ContextVar[Callable[[], float]] = ContextVar("clock", default=time.perf_counter)


@contextmanager
def reading(clock: str) -> Iterator[None]:
    """Stopwatches that are made meanwhile read that one of CLOCKS; on CUDA they read events all the same."""
    token = _clock.set(CLOCKS[clock])
    try:
        yield
    finally:
        _clock.reset(token)


def settle() -> None:
    """Exempt all objects loaded so far from garbage collection.

    Looking through those of the libraries alone stops a process for 0.2 s, longer than a short run takes. For
    commands and workers: what a server holds for a while at the time would never be freed.
    """
    gc.collect()
    gc.freeze()


class Stopwatch:
    """`lap(part)` charges the time since the last lap to a part; `read` sums and restarts.

    On CUDA, laps are events read after the step's one host copy, so timing adds no synchronisation.
    """

    def __init__(self, device: torch.device) -> None:
        self.cuda, self._clock = device.type == "cuda", _clock.get()
        # Seconds on a CPU, CUDA events on a GPU.
        self.laps: list[tuple[str, Any]] = []
        self.start()

    def start(self) -> None:
        """Time from here on belongs to the next lap; anything since the last one is dropped."""
        self.laps.append(("", self._now()))

    def lap(self, part: str) -> None:
        self.laps.append((part, self._now()))

    def read(self) -> dict[str, float]:
        """Seconds by part since the last read; call after the device is known to be done."""
        seconds: dict[str, float] = {}
        for (_, begin), (part, end) in zip(self.laps, self.laps[1:], strict=False):
            if part:
                seconds[part] = seconds.get(part, 0.0) + self._between(begin, end)
        self.laps = self.laps[-1:]
        return seconds

    def _now(self) -> Any:
        if not self.cuda:
            return self._clock()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _between(self, begin: Any, end: Any) -> float:
        if not self.cuda:
            return float(end - begin)
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000
