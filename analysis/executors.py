"""Where units are measured: in this process, or in worker processes that each load the model once."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache

import torch

from analysis.measure import Outcome, Unit, measure, warm_up
from analysis.observe import run_trace
from analysis.prompts import Prompt
from core import GenerationConfig, LanguageModel, create_policy, load_model

# Gives the outcomes of units, in any order, as they are finished.
Executor = Callable[[Sequence[Unit]], Iterator[Outcome]]


@dataclass(frozen=True)
class Task:
    """What every worker needs: a model to load, prompts and decoding."""

    model: str
    device: str
    dtype: str
    prompts: tuple[Prompt, ...]
    base: GenerationConfig


def in_process(model: LanguageModel, task: Task) -> Executor:
    """Measure one unit after the other here."""

    def execute(units: Sequence[Unit]) -> Iterator[Outcome]:
        if units:
            warm_up(model, task.prompts, task.base, [units[0].setting])
        for unit in units:
            yield measure(model, task.prompts, task.base, unit)

    return execute


def in_processes(task: Task, workers: int, max_failures: int = 3) -> Executor:
    """Measure in `workers` processes of one thread each.

    A worker that dies takes only its unfinished units with it: they are measured again by new workers.
    Raises RuntimeError when workers die more than `max_failures` times in a row without an outcome.
    """

    def execute(units: Sequence[Unit]) -> Iterator[Outcome]:
        waiting = {unit.key: unit for unit in units}
        failures = 0
        while waiting:
            try:
                for outcome in _in_one_pool(task, list(waiting.values()), workers):
                    del waiting[outcome.key]
                    failures = 0
                    yield outcome
            except BrokenProcessPool as error:
                failures += 1
                if failures > max_failures:
                    raise RuntimeError(f"workers died {failures} times in a row") from error

    return execute


def _in_one_pool(task: Task, units: Sequence[Unit], workers: int) -> Iterator[Outcome]:
    # Spawned, not forked: torch's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(units)), mp_context=context)
    try:
        futures: list[Future[Outcome]] = [pool.submit(work, task, unit) for unit in units]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def work(task: Task, unit: Unit) -> Outcome:
    """One unit in a worker; its model is loaded and warmed up with the first one."""
    return measure(_model(task.model, task.device, task.dtype), task.prompts, task.base, unit)


@cache
def _model(ref: str, device: str, dtype: str) -> LanguageModel:
    torch.set_num_threads(1)
    model = load_model(ref, device=device, dtype=dtype)
    # The first passes of a process are slower than the rest.
    token = next(token for token in (0, 1) if token != model.spec.mask_token_id)
    run_trace(model, [token], GenerationConfig(gen_length=8, block_length=8), create_policy("none"))
    return model
