"""Measure on a Ray cluster: workers that load the model once and hand back outcomes as they finish.

Ray is an optional requirement. Every node needs this project on its Python path and, unless the model is
the embedded one, the same model reference.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.executors import Executor, Task, work
from analysis.measure import Outcome, Unit


class Worker:
    """One actor's life: `work` keeps the loaded model between units."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def measure(self, unit: Unit) -> Outcome:
        return work(self.task, unit)


def on_ray(task: Task, workers: int, address: str | None = None, max_failures: int = 3) -> Executor:
    """Measure in `workers` actors of the cluster at `address`, or of one started here for the occasion.

    Each actor holds one CPU, and one GPU where the model is on one. A lost actor takes only the unit it
    was on with it, which is measured again by a new one. Raises ValueError where Ray is not installed,
    RuntimeError when actors die more than `max_failures` times in a row without an outcome.
    """
    try:
        import ray  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ValueError("executor ray needs the package ray; pip install ray") from None

    def execute(units: Sequence[Unit]) -> Iterator[Outcome]:
        local: dict[str, Any] = {"num_cpus": workers} if address is None else {}
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(address=address, include_dashboard=False if local else None, **quiet, **local)
        try:
            yield from _distribute(ray, task, list(units), workers, max_failures)
        finally:
            ray.shutdown()

    return execute


def _distribute(
    ray: Any, task: Task, waiting: list[Unit], workers: int, max_failures: int
) -> Iterator[Outcome]:
    """Keep every actor busy with one unit; `waiting` is worked off from its front."""
    gpus = 1 if task.device.startswith("cuda") else 0
    actor = ray.remote(num_cpus=1, num_gpus=gpus)(Worker)
    idle = [actor.remote(task) for _ in range(min(workers, len(waiting)))]
    running: dict[Any, tuple[Any, Unit]] = {}
    failures = 0
    while waiting or running:
        while waiting and idle:
            free, unit = idle.pop(), waiting.pop(0)
            running[free.measure.remote(unit)] = (free, unit)
        (done, *_), _ = ray.wait(list(running), num_returns=1)
        worker, unit = running.pop(done)
        try:
            outcome = ray.get(done)
        except ray.exceptions.RayActorError as error:
            failures += 1
            if failures > max_failures:
                raise RuntimeError(f"actors died {failures} times in a row") from error
            waiting.insert(0, unit)
            idle.append(actor.remote(task))
            continue
        failures = 0
        idle.append(worker)
        yield outcome
