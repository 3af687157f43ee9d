"""Where units are measured: in this process, or in worker processes that each load the model once."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from threading import Thread
from typing import Protocol

import torch

from analysis.measure import Outcome, Unit, measure, warm_up
from analysis.prompts import Prompt
from core import GenerationConfig, LanguageModel, load_model
from core.timing import settle


class Executor(Protocol):
    """Gives the outcomes of units, in any order, as they are finished; `close` ends its workers."""

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Task:
    """What every worker needs: a model to load, prompts, decoding, and how many threads to use."""

    model: str
    device: str
    dtype: str
    prompts: tuple[Prompt, ...]
    base: GenerationConfig
    threads: int = 1


def available_cores() -> int:
    """Processor cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def threads_each(workers: int) -> int:
    """Threads for each of so many processes, so that all of them together fit the cores.

    Never more than torch would use in one process, which is where OMP_NUM_THREADS is obeyed.
    """
    return max(1, min(available_cores() // workers, torch.get_num_threads()))


class InProcess:
    """Measure one unit after the other here."""

    def __init__(self, model: LanguageModel, task: Task) -> None:
        self.model, self.task = model, task
        self._warm: set[str] = set()

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        for unit in units:
            yield _measured(self.model, self.task, unit, self._warm)

    def close(self) -> None:
        """Nothing to end."""


class InProcesses:
    """Measure in `workers` processes of `task.threads` threads each, which stay until `close`.

    A worker that dies takes only its unfinished units with it: they are measured again by new workers.
    Raises RuntimeError when workers die more than `max_failures` times in a row without an outcome.
    """

    def __init__(self, task: Task, workers: int, max_failures: int = 3) -> None:
        self.task, self.workers, self.max_failures = task, workers, max_failures
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        waiting = {unit.key: unit for unit in units}
        failures = 0
        while waiting:
            pool = self._pool = self._pool or self._start()
            futures = [pool.submit(work, self.task, unit) for unit in waiting.values()]
            try:
                for future in as_completed(futures):
                    outcome = future.result()
                    del waiting[outcome.key]
                    failures = 0
                    yield outcome
            except BrokenProcessPool as error:
                self.close()
                failures += 1
                if failures > self.max_failures:
                    raise RuntimeError(f"workers died {failures} times in a row") from error

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _start(self) -> ProcessPoolExecutor:
        # Spawned, not forked: torch's threads do not survive a fork. A terminal sends Ctrl-C to all
        # processes; only this one may act on it, by ending the workers after the units they are on.
        return ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
        )


def _begin() -> None:
    """A worker's start: deaf to Ctrl-C, and gone as soon as its parent is, however that ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()


def work(task: Task, unit: Unit) -> Outcome:
    """One unit in a worker, which loads its model with the first one."""
    model, warm = _begun(task.model, task.device, task.dtype, task.threads)
    return _measured(model, task, unit, warm)


@cache
def _begun(ref: str, device: str, dtype: str, threads: int) -> tuple[LanguageModel, set[str]]:
    """A process's model, and the policies that it is warm for."""
    torch.set_num_threads(threads)
    return load_model(ref, device=device, dtype=dtype), set()


def _measured(model: LanguageModel, task: Task, unit: Unit, warm: set[str]) -> Outcome:
    """The unit's outcome, after a run for nothing where its policy is new: a first run is slower."""
    if unit.setting.policy not in warm:
        warm_up(model, task.prompts, task.base, [unit.setting])
        settle()
        warm.add(unit.setting.policy)
    return measure(model, task.prompts, task.base, unit)
