"""Sweeps and tuning from the command line: kept in a file, resumed after a kill, workers that die."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch

from analysis.__main__ import main
from analysis.executors import InProcesses, Task
from analysis.journal import Journal, fingerprint, purpose
from analysis.measure import Outcome, interleaved
from analysis.prompts import Prompt
from analysis.settings import Setting
from analysis.shapes import random_model
from core import GenerationConfig
from core.models.packing import PackedLinear
from core.training.problems import Problem
from tests import tiny
from tests.analysis.test_comparison import ENTROPY, outcome
from tests.refusals import refusal

GRID = ["--grid", "entropy_threshold=0,1,inf", "recent=2,8"]
WHAT = {"model": "made", "generation": {"threshold": float("inf")}}


@pytest.fixture
def arguments(checkpoint: Callable[..., Path], tmp_path: Path) -> list[str]:
    prompts = tmp_path / "p.jsonl"
    records = [{"prompt_ids": list(ids), "answer": "7"} for ids in tiny.PROMPTS]
    prompts.write_text("\n".join(map(json.dumps, records)))
    decoding = ["--gen-length", "16", "--block-length", "8", "--threshold", "0.3"]
    device = ["--dtype", "float32", "--device", "cpu"]
    return ["--model", str(checkpoint("llada")), "--prompts", str(prompts), *decoding, *device]


def keys(path: Path) -> list[str]:
    return [Outcome.from_json(json.loads(line)).key for line in path.read_text().splitlines()[1:]]


def test_two_measurements_do_not_write_one_file(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    command = ["sweep", *arguments, "--grid", "recent=2", "--out", str(out)]
    assert main(command) == 0
    before = out.read_bytes()
    with Journal(out, json.loads(before.splitlines()[0])):
        for other in (command, ["compare", *arguments, "--journal", str(out)]):
            assert "out.jsonl is being written by another process" in refusal(main, other, capsys)
    assert out.read_bytes() == before
    # A refused file is let go of.
    with pytest.raises(ValueError, match="begun with another"), Journal(out, {"model": "other"}):
        pass
    assert main(command) == 0


def test_a_sweep_whose_outcomes_nobody_wants_is_measured(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sweep", *arguments, "--grid", "recent=2", "--limit", "1", "--out", os.devnull]
    assert main(command) == 0
    assert "entropy:recent=2" in capsys.readouterr().out


def test_a_sweep_measures_each_unit_once_and_goes_on(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["sweep", *arguments, *GRID, "--out", str(out)]) == 0
    every = keys(out)
    assert len(every) == len(set(every)) == (6 + 1) * 3
    whole = out.read_bytes()
    # A writer killed in the middle of a line leaves half of it.
    out.write_bytes(whole[: whole.find(b"\n", len(whole) // 2) + 30])
    assert main(["sweep", *arguments, *GRID, "--out", str(out)]) == 0
    assert sorted(keys(out)) == sorted(every)
    assert "entropy:entropy_threshold=inf,recent=8" in capsys.readouterr().out


def test_a_sweep_killed_in_mid_run_goes_on(arguments: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    command = ["sweep", *arguments, *GRID, "--repeats", "30", "--out", str(out)]
    running = subprocess.Popen([sys.executable, "-m", "analysis", *command], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < deadline:
        if out.exists() and out.read_bytes().count(b"\n") > 5:
            break
        time.sleep(0.02)
    running.kill()
    assert running.wait() == -signal.SIGKILL
    before = out.read_bytes().count(b"\n")
    assert before > 5
    shorter = [*command[:-3], "2", *command[-2:]]
    assert main(shorter) == 0
    found = keys(out)
    assert len(found) == len(set(found))
    assert {f"none|{prompt}|{repeat}" for prompt in range(3) for repeat in range(2)} <= set(found)


def test_a_journal_of_another_measurement_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Journal(path, WHAT) as journal:
        journal.add(outcome(ENTROPY, 0, 0, 1.0))
    with Journal(path, WHAT) as journal:
        assert list(journal.done) == [f"{ENTROPY.label}|0|0"]
    with pytest.raises(ValueError, match="another model"), Journal(path, {**WHAT, "model": "other"}):
        pass
    for foreign in ("hello\n", "hello"):
        path.write_text(foreign)
        with pytest.raises(ValueError, match="no journal"), Journal(path, WHAT):
            pass
        assert path.read_text() == foreign
    for cut in ("", '{"sche', '{"schema": 1, "kind": "journal", "mod'):
        path.write_text(cut)
        with Journal(path, WHAT) as journal:
            assert not journal.done


def test_other_weights_of_the_same_name_and_size_are_another_measurement(tmp_path: Path) -> None:
    shape, prompts, base = "small:hidden_size=64,num_layers=2", [Prompt((5, 6))], GenerationConfig()
    one, same, other = (random_model(shape, torch.device("cpu"), torch.float32, seed) for seed in (0, 0, 1))
    assert one.facts() == other.facts()
    path = tmp_path / "out.jsonl"
    for model in (one, same):
        with Journal(path, purpose(model, prompts, base)):
            pass
    with pytest.raises(ValueError, match="another model"), Journal(path, purpose(other, prompts, base)):
        pass


def test_a_change_of_any_one_tensor_is_seen() -> None:
    shape = "small:hidden_size=64,num_layers=2,vocab_size=64"
    for dtype in (torch.float32, torch.bfloat16):
        model = random_model(shape, torch.device("cpu"), dtype)
        before = fingerprint(model)
        parameters = list(model.backbone.parameters())
        for tensor in parameters:
            kept = tensor.detach().clone()
            tensor.data.add_(1.0)
            assert fingerprint(model) != before
            tensor.data.copy_(kept)
        assert fingerprint(model) == before
        packs = [module for module in model.backbone.modules() if isinstance(module, PackedLinear)]
        for plain in packs:
            packed, plain.packed = plain.packed, (1.5 * plain.weight).to_mkldnn()
            assert fingerprint(model) != before
            plain.packed = packed


def test_another_grader_of_the_same_prompts_is_another_measurement() -> None:
    model = random_model("small:hidden_size=64,num_layers=2", torch.device("cpu"), torch.float32)
    base = GenerationConfig()
    graded = Problem(family="", prompt="1+1", example_response="", answer="2", function=None, tests=())
    graders = [
        None,
        graded,
        replace(graded, answer="3"),
        replace(graded, answer=None, function="f", tests=(((1,), 2),)),
    ]
    hashes = {purpose(model, [Prompt((5, 6), grader)], base)["prompts_sha256"] for grader in graders}
    assert len(hashes) == len(graders)


def test_a_worker_that_dies_loses_nothing(arguments: list[str]) -> None:
    base = GenerationConfig(gen_length=16, block_length=8, threshold=0.3)
    prompts = tuple(Prompt(tuple(ids)) for ids in tiny.PROMPTS)
    task = Task(arguments[1], "cpu", "float32", prompts, base)
    units = list(interleaved([Setting("none"), ENTROPY], 3, 4))
    found = []
    with closing(InProcesses(task, workers=1)) as execute:
        for made in execute(units):
            found.append(made.key)
            if len(found) == 1:
                for child in active_children():
                    os.kill(child.pid or 0, signal.SIGKILL)
    assert sorted(found) == sorted(unit.key for unit in units)


def test_workers_do_not_outlive_a_killed_sweep(arguments: list[str], tmp_path: Path) -> None:
    """They hold their parent's output: it ends when the last of them has."""
    out = tmp_path / "out.jsonl"
    command = ["sweep", *arguments, *GRID, "--repeats", "90", "--out", str(out), "--workers", "2"]
    running = subprocess.Popen([sys.executable, "-m", "analysis", *command], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (out.exists() and out.read_bytes().count(b"\n") > 2):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.kill()
    assert running.wait() == -signal.SIGKILL
    assert running.communicate(timeout=60)[0] == b""


def test_tune_gives_a_line_to_paste_that_run_accepts(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, journal = tmp_path / "out.json", tmp_path / "journal.jsonl"
    grid = ["--grid", "entropy_threshold=-1,inf", "recent=1,8"]
    files = ["--json", str(out), "--journal", str(journal)]
    goal = ["--keep", "agreement", "--budget", "0.0", "--objective", "flops"]
    assert main(["tune", *arguments, *grid, *goal, *files]) == 0
    found = json.loads(out.read_text())
    assert found["best"].startswith("entropy:entropy_threshold=")
    said = capsys.readouterr().out
    for wanted in ("float32 on cpu", "gen_length=16", "n = 3 prompts", "on the front", "warning: 3 prompts"):
        assert wanted in said
    assert all(text in said for text in found["settings"].values())
    pasted = said.splitlines()[-1].split()
    best = next(row for row in found["candidates"] if row["best"])
    assert pasted[:2] == ["--policy", "entropy" if best["cost"] < 1 else "none"]
    assert main(["run", *arguments, *pasted]) == 0
    assert main(["tune", *arguments, *grid, *goal, *files]) == 0
    assert len(keys(journal)) == len(set(keys(journal)))


def test_a_choice_is_judged_by_a_full_grid_measured_apart(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep, out = tmp_path / "sweep.jsonl", tmp_path / "out.json"
    grid = ["--grid", "entropy_threshold=-1,inf", "recent=1,8"]
    goal = ["--keep", "agreement", "--budget", "0.9", "--objective", "flops"]
    tune = ["tune", *arguments, *grid, *goal, "--json", str(out)]
    assert (
        main(["sweep", *arguments, "--grid", "entropy_threshold=-1", "recent=1,8", "--out", str(sweep)]) == 0
    )
    assert main([*tune, "--against", str(sweep)]) == 2
    assert "of its 15 runs" in capsys.readouterr().err
    assert main(["sweep", *arguments, *grid, "--vanilla", "--out", str(sweep)]) == 0
    capsys.readouterr()
    # Only read, also where its last line is half and another process goes on with it.
    sweep.write_bytes(sweep.read_bytes() + b"{half")
    before = sweep.read_bytes()
    sweep.chmod(0o444)
    assert main([*tune, "--against", str(sweep), "--markdown"]) == 0
    said = capsys.readouterr().out
    assert sweep.read_bytes() == before
    race, full = json.loads(out.read_text())["verdict"]
    assert (full["runs"], race["setting"]) == (15, json.loads(out.read_text())["best"])
    # Operations do not depend on the clock: the race finds the grid's own choice.
    assert race["cost"] == pytest.approx(full["cost"])
    assert "its choice costs 0.0% against the grid's" in said
    assert "| entropy_threshold \\ recent | 1 | 8 |" in said
    assert main([*tune, "--against", str(tmp_path / "nowhere.jsonl")]) == 2


def test_a_baseline_that_does_not_fit_is_refused_before_anything_is_measured(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    arguments[arguments.index("--gen-length") + 1] = str(8 * tiny.CONTEXT)
    command = ["sweep", *arguments, "--grid", "gen_length=16", "--out", str(out)]
    assert str(8 * tiny.CONTEXT) in refusal(main, [*command, "--vanilla"], capsys)
    assert not out.exists()
    assert main([*command, "--limit", "1"]) == 0


def test_workers_and_their_threads_are_named(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    command = ["sweep", *arguments, "--grid", "recent=2", "--limit", "1", "--out", str(out)]
    assert main([*command, "--worker-threads", "1"]) == 2
    assert main([*command, "--workers", "1", "--worker-threads", "2"]) == 0
    assert "1 worker of 2 threads each on" in capsys.readouterr().out
    machine = json.loads(out.read_text().splitlines()[0])["environment"]
    assert (machine["workers"], machine["threads"]) == (1, 2)
    capsys.readouterr()
    assert main(command) == 0
    assert "begun with another number or kind of threads, workers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["sweep", "--grid", "recent=1..5", "--out", "o.jsonl"], "range"),
        (["sweep", "--grid", "recent=1", "--set", "recent=2", "--out", "o.jsonl"], "recent"),
        (["sweep", "--grid", "recent=-1", "--out", "o.jsonl"], "recent"),
        (["sweep", "--grid", "recent=1"], "--out"),
        (["sweep", "--grid", "recent=1", "--out", "o.jsonl", "--workers", "-1"], "--workers"),
        (["sweep", "--grid", "recent=1", "--out", "o.jsonl", "--address", "auto"], "--executor ray"),
        (["sweep", "--grid", "recent=1", "--out", "o.jsonl", "--executor", "moon"], "--executor"),
        (
            ["sweep", "--policy", "dual", "--grid", "window=block,sliding", "--out", "o.jsonl"],
            "block by block",
        ),
        (["sweep", "--grid", "gen_length=32,4096", "--out", "o.jsonl"], "over the model's context"),
        (["tune", "--policy", "dual", "--grid", "window=block,sliding"], "block by block"),
        (["tune", "--policy", "dual"], "--grid"),
        (["tune", "--budget", "2"], "budget"),
    ],
)
def test_bad_sweeps_are_usage_errors(
    arguments: list[str], command: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], *arguments, *command[1:]]) == 2
    assert named in capsys.readouterr().err


def test_accuracy_needs_answers(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    plain = list(arguments)
    at = plain.index("--prompts")
    plain[at : at + 2] = ["--prompt-ids", "5,6"]
    assert main(["tune", *plain, "--keep", "accuracy"]) == 2
    assert "no answer to grade" in capsys.readouterr().err
