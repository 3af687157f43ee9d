"""ZeroGPU: work on a model survives the fork and the pickling; without it nothing is forked."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.observe import observe_no_cache
from app.workshop import Workshop
from core import GenerationConfig, LanguageModel

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).parent / "fake_zero_gpu"


@pytest.fixture(scope="module")
def told() -> dict:
    """What `everything` did where the package `spaces` is the one beside it."""
    done = subprocess.run(
        [sys.executable, FAKE / "everything.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPACES_ZERO_GPU": "true", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_run_in_lent_processes_writes_what_it_would_here(told: dict) -> None:
    assert told["run"] == 3
    assert told["last"].startswith("done")
    assert told["tokens"] == told["here"]
    assert told["watched"] == 32


@pytest.mark.parametrize("name", ["stale", "speeds", "tuned"])
def test_measurements_and_searches_cross_over_too(told: dict, name: str) -> None:
    made, measured = told[name]
    assert made >= 2
    assert measured


def test_refusal_keeps_its_sentence(told: dict) -> None:
    assert "over the model's context" in told["refused"]


def test_closing_the_stream_ends_the_loan(told: dict) -> None:
    assert told["alive"] == [False] * 2


def test_model_to_be_lent_is_kept_as_it_can_be_moved(told: dict) -> None:
    assert told["dtype"] == "torch.bfloat16"
    assert not told["packed"]


def whereabouts(model: LanguageModel) -> Iterator[tuple[int, str]]:
    yield os.getpid(), model.ref


def test_without_it_the_work_is_done_here(workshop: Workshop) -> None:
    [(process, _)] = workshop.lender.run(whereabouts, "embedded")
    assert process == os.getpid()
    generation = GenerationConfig(gen_length=16, block_length=8)
    *_, watched = observe_no_cache(workshop, "embedded", "one two", generation, one_token=True)
    assert len(watched.steps) == 16
