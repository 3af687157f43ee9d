"""load_in_turn: load a model while telling how far it has come."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch

from app.models import GIB, Estimate, asks_hub
from app.perform import Moment, wait_for_turn
from app.turns import Ticket
from app.workshop import Workshop
from app.zero_gpu import has_zero_gpu

LOOK_SECONDS = 0.5


def load_in_turn(workshop: Workshop, ref: str, dtype: str, ticket: Ticket) -> Iterator[Moment]:
    """Put a model on the workshop's shelf; the ticket is given back however this ends.

    Raises ValueError before any weight is read where the model is not allowed, not supported or will not
    fit, and afterwards where its files are damaged.
    """
    try:
        workshop.shelf.check(ref)
        if not workshop.shelf.holds(ref, dtype):
            if asks_hub(ref):
                yield Moment("running", f"running: asking the hub for {ref}")
            expected = workshop.shelf.expect(ref, dtype)
            yield from wait_for_turn(ticket)
            if ticket.is_stopped():
                yield Moment("stopped", "stopped: the model was not loaded", last=True)
                return
            yield from _load(workshop, ref, dtype, expected)
        workshop.model(ref)
        yield Moment("done", f"done: model {ref} is ready", last=True)
    finally:
        ticket.leave()


def _load(workshop: Workshop, ref: str, dtype: str, expected: Estimate) -> Iterator[Moment]:
    failures: list[ValueError] = []

    def work() -> None:
        try:
            workshop.shelf.get(ref, dtype)
        except ValueError as error:
            failures.append(error)
        except (RuntimeError, MemoryError, OSError) as error:
            reason = (str(error).strip() or "out of memory").splitlines()[0]
            failures.append(ValueError(f"model {ref} could not be loaded: {reason}"))

    before, started, files = resident_bytes(), time.monotonic(), stored_bytes(ref)
    worker = threading.Thread(target=work, name=f"load {ref}", daemon=True)
    worker.start()
    alive = True
    while alive:
        held, fetched = max(0, resident_bytes() - before), stored_bytes(ref) - files
        share = f"{held / GIB:.2f} of about {expected.weights / GIB:.2f} GiB in memory"
        share = f"{fetched / GIB:.2f} GiB downloaded, {share}" if fetched > 0 else share
        yield Moment("running", f"running: loading {ref}, {time.monotonic() - started:.0f} s, {share}")
        worker.join(LOOK_SECONDS)
        alive = worker.is_alive()
    if failures:
        raise failures[0]


def stored_bytes(ref: str) -> int:
    """What the hub's cache holds of a model, files on their way included."""
    from huggingface_hub.constants import HF_HUB_CACHE

    blobs = Path(HF_HUB_CACHE) / f"models--{ref.replace('/', '--')}" / "blobs"
    total = 0
    for path in blobs.glob("*"):
        with suppress(OSError):  # renamed once it is complete
            total += path.stat().st_size
    return total


def resident_bytes() -> int:
    """Memory that this process holds, and of the GPU where there is one; 0 where it can't be told."""
    if torch.cuda.is_available() and not has_zero_gpu():
        return int(torch.cuda.memory_allocated())
    status = Path("/proc/self/statm")
    if not status.is_file():
        return 0
    return int(status.read_text().split()[1]) * 4096
