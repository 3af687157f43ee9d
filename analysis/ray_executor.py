"""Measure on a Ray cluster: workers that load the model once and hand back outcomes as they finish.

Ray is an optional requirement. Every node needs this project on its Python path and, unless the model is
the embedded one, the same model reference.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.executors import Task, work
from analysis.measure import Outcome, Unit


class Worker:
    """One actor's life: `work` keeps the loaded model between units."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def measure(self, unit: Unit) -> Outcome:
        return work(self.task, unit)


class OnRay:
    """Measure in `workers` actors of the cluster at `address`, or of one started here for the occasion.

    Each actor holds `task.threads` CPUs, and one GPU where the model is on one, until `close`. A lost actor
    takes only the unit it was on with it, which is measured again by a new one. Raises ValueError where Ray
    is not installed, RuntimeError when actors die more than `max_failures` times in a row without an
    outcome.
    """

    def __init__(self, task: Task, workers: int, address: str | None = None, max_failures: int = 3) -> None:
        try:
            import ray  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise ValueError("executor ray needs the package ray; pip install ray") from None
        self.task, self.workers, self.max_failures = task, workers, max_failures
        cores = workers * task.threads
        local: dict[str, Any] = {"num_cpus": cores, "include_dashboard": False} if address is None else {}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **local)
        self._ray = ray
        gpus = 1 if task.device.startswith("cuda") else 0
        self._actor = ray.remote(num_cpus=task.threads, num_gpus=gpus)(Worker)
        self._idle: list[Any] = []
        self._started = 0

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        """Keep every actor busy with one unit."""
        waiting = list(units)
        running: dict[Any, tuple[Any, Unit]] = {}
        failures = 0
        while waiting or running:
            while waiting and (self._idle or self._started < self.workers):
                actor, unit = self._free_actor(), waiting.pop(0)
                running[actor.measure.remote(unit)] = (actor, unit)
            (done, *_), _ = self._ray.wait(list(running), num_returns=1)
            actor, unit = running.pop(done)
            try:
                outcome = self._ray.get(done)
            except self._ray.exceptions.RayActorError as error:
                failures += 1
                if failures > self.max_failures:
                    raise RuntimeError(f"actors died {failures} times in a row") from error
                waiting.insert(0, unit)
                self._started -= 1
                continue
            failures = 0
            self._idle.append(actor)
            yield outcome

    def close(self) -> None:
        """End the actors, and the cluster where it was started here."""
        self._ray.shutdown()

    def _free_actor(self) -> Any:
        if self._idle:
            return self._idle.pop()
        self._started += 1
        return self._actor.remote(self.task)
