"""What a measurement ran on: the versions and the machine that its numbers hold for."""

import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from core import LanguageModel

_arguments: ContextVar[Sequence[str] | None] = ContextVar("arguments", default=None)


@contextmanager
def asked_by(arguments: Sequence[str] | None) -> Iterator[None]:
    """Within it, these are the command's arguments; None: those of the process."""
    token = _arguments.set(arguments)
    try:
        yield
    finally:
        _arguments.reset(token)


def environment(model: LanguageModel, workers: int = 0, threads: int | None = None) -> dict[str, Any]:
    """Versions, processor, threads and the model's facts, as plain values.

    workers: processes that measured beside each other, 0 for this one alone. threads: those of each, this
    process's own unless given.
    """
    cuda, asked = model.device.type == "cuda", _arguments.get()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "processor": torch.cuda.get_device_name(model.device) if cuda else _processor(),
        "threads": threads or torch.get_num_threads(),
        "workers": workers,
        "command": shlex.join(["python", "-m", "analysis", *(sys.argv[1:] if asked is None else asked)]),
        "model": model.facts(),
    }


def _processor() -> str:
    """The CPU's name where the system tells it, else its architecture."""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{platform.processor() or platform.machine()} ({capability})"
