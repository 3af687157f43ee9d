"""A local two-worker Ray: every unit once, also where a worker is killed. Skipped without Ray."""

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from analysis.executors import Task
from analysis.measure import interleaved
from analysis.prompts import Prompt
from analysis.ray_executor import OnRay
from analysis.settings import Setting
from core import GenerationConfig
from tests import tiny
from tests.analysis.test_comparison import ENTROPY

pytest.importorskip("ray", reason="Ray is optional: pip install ray")


def own_actors() -> list[int]:
    """Process ids of Ray actors that descend from this process."""
    parents, actors = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, command = (folder / "stat").read_text(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
        if command.startswith(b"ray::Worker"):
            actors.append(int(folder.name))

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return [pid for pid in actors if is_ours(pid)]


@pytest.mark.enable_socket
def test_a_killed_worker_loses_nothing_finished(checkpoint: Callable[..., Path]) -> None:
    base = GenerationConfig(gen_length=16, block_length=8, threshold=0.3)
    prompts = tuple(Prompt(tuple(ids)) for ids in tiny.PROMPTS)
    task = Task(str(checkpoint("llada")), "cpu", "float32", prompts, base)
    units = list(interleaved([Setting("none"), ENTROPY], 3, 20))
    found = []
    with closing(OnRay(task, workers=2)) as execute:
        for made in execute(units):
            found.append(made.key)
            if len(found) == 3:
                victims = own_actors()
                assert victims
                os.kill(victims[0], signal.SIGKILL)
    assert sorted(found) == sorted(unit.key for unit in units)
