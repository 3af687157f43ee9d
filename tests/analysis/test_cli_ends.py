"""How commands end: Ctrl-C, faults of ours, and files that are not ours to delete."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.cli import bench as bench_module
from analysis.cli import compare as compare_module
from analysis.cli import run as run_module
from analysis.cli.files import write_whole
from analysis.journal import Journal
from analysis.results import read_results
from core.files import check_writable
from tests import tiny

SIZE = ["--gen-length", "16", "--block-length", "8", "--dtype", "float32", "--device", "cpu"]
PROMPT = ["--prompt-ids", ",".join(map(str, tiny.PROMPTS[0]))]


@pytest.fixture
def model(checkpoint: Callable[..., Path]) -> list[str]:
    return ["--model", str(checkpoint("llada"))]


def start(*arguments: str) -> "subprocess.Popen[str]":
    """A command of its own process that hears Ctrl-C, also where this one was started not to."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_ctrl_c_while_torch_is_loading_is_one_line() -> None:
    with start("-X", "importtime", "-m", "analysis", "run", "--prompt", "a") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        said = []
        for line in running.stderr:
            said.append(line)
            if line.split()[-1] == "numpy":
                running.send_signal(signal.SIGINT)
        assert running.wait() == 1
        assert running.stdout.read() == ""
    assert [line for line in said if not line.startswith("import time:")] == ["interrupted\n"]
    assert not any(line.split()[-1] == "torch" for line in said)


def test_ctrl_c_in_the_middle_leaves_results_that_can_be_read_and_gone_on_with(
    model: list[str], tmp_path: Path
) -> None:
    journal, out = tmp_path / "journal.jsonl", tmp_path / "out.json"
    files = ["--journal", str(journal), "--json", str(out)]
    command = [*model, *PROMPT, *SIZE, "--policies", "entropy", *files, "--repeats"]
    running = start("-m", "analysis", "compare", *command, "2000")
    deadline = time.monotonic() + 120
    while running.poll() is None and time.monotonic() < deadline:
        if journal.exists() and journal.read_bytes().count(b"\n") > 5:
            break
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    said, complained = running.communicate(timeout=60)
    assert running.returncode == 1
    assert complained == ""
    assert "interrupted" in said
    kept = json.loads(out.read_text())
    assert not kept["complete"]
    assert len(kept["outcomes"]) == journal.read_bytes().count(b"\n") - 1 >= 5
    assert len(read_results([journal, out]).comparisons) == 2
    assert main(["compare", *command, "1"]) == 0
    assert len(json.loads(out.read_text())["outcomes"]) == 3


@pytest.mark.parametrize("command", [["analysis", "policies"], ["core.training", "data", "--n", "400"]])
def test_a_reader_that_leaves_is_no_fault(command: list[str]) -> None:
    with start("-m", *command) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.wait(timeout=120) == 1
        assert running.stderr.read() == ""


def test_a_fault_of_ours_is_no_usage_error(
    model: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("shapes differ")

    monkeypatch.setattr(run_module, "observe", broken)
    monkeypatch.setattr(compare_module, "measure", broken)
    for command in ("run", "compare"):
        with pytest.raises(ValueError, match="shapes differ"):
            main([command, *model, *PROMPT, *SIZE])


def breaks_late(whole: Callable[..., object]) -> Callable[..., object]:
    """The same function, out of memory from its third call on."""
    calls = []

    def breaking(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        if len(calls) > 2:
            raise RuntimeError("out of memory")
        return whole(*arguments, **named)

    return breaking


def test_a_failure_keeps_what_was_finished(
    model: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal.jsonl"
    monkeypatch.setattr(compare_module, "measure", breaks_late(compare_module.measure))
    with pytest.raises(RuntimeError):
        main(["compare", *model, *PROMPT, *SIZE, "--journal", str(journal)])
    with Journal(journal, json.loads(journal.read_text().splitlines()[0])) as found:
        assert len(found.done) == 2


def test_a_run_that_fails_keeps_the_prompts_it_finished(
    model: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, out = tmp_path / "p.jsonl", tmp_path / "out.jsonl"
    prompts.write_text("\n".join(json.dumps({"prompt_ids": list(ids)}) for ids in tiny.PROMPTS))
    monkeypatch.setattr(run_module, "observe", breaks_late(run_module.observe))
    with pytest.raises(RuntimeError):
        main(["run", *model, "--prompts", str(prompts), *SIZE, "--json", str(out)])
    assert len(out.read_text().splitlines()) == 2


def test_a_bench_that_fails_keeps_the_sizes_it_finished(
    model: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    command = ["bench", *SIZE, "--repeats", "1", "--prompt-lengths", "2,3,4", "--json", str(out)]
    out.write_text("kept")
    assert main([*command, "--model", str(tmp_path / "missing")]) == 2
    assert out.read_text() == "kept"
    monkeypatch.setattr(bench_module, "bench", breaks_late(bench_module.bench))
    with pytest.raises(RuntimeError):
        main([*command, *model])
    kept = json.loads(out.read_text())
    assert [point["prompt_length"] for point in kept["points"]] == [2] * 3 + [3] * 3
    assert not kept["complete"]
    assert len(read_results([out]).benches) == 1


def test_looking_whether_a_file_can_be_written_leaves_everything_as_it_was(tmp_path: Path) -> None:
    missing, link, loop = tmp_path / "missing.json", tmp_path / "link.json", tmp_path / "loop.json"
    link.symlink_to(missing)
    loop.symlink_to(loop)
    full, linked = tmp_path / "full.json", tmp_path / "linked.json"
    full.write_text("kept")
    linked.symlink_to(full)
    for path in (missing, link, full, linked, Path(os.devnull)):
        check_writable(path)
    with pytest.raises(ValueError, match="loop"):
        check_writable(loop)
    assert link.is_symlink()
    assert not missing.exists()
    assert full.read_text() == linked.read_text() == "kept"


def test_a_result_that_cannot_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, link, fresh = tmp_path / "out.json", tmp_path / "link.json", tmp_path / "fresh.json"
    out.write_text("before")
    out.chmod(0o640)
    link.symlink_to(out)
    write_whole(link, "after")
    write_whole(Path(os.devnull), "after")
    write_whole(fresh, "after")
    assert link.is_symlink()
    assert out.read_text() == fresh.read_text() == "after"
    assert out.stat().st_mode & 0o777 == 0o640
    assert Path(os.devnull).is_char_device()
    whole = Path.write_text

    def full(path: Path, text: str, encoding: str) -> None:
        whole(path, text[:2])
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        write_whole(link, "later")
    assert out.read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh.json", "link.json", "out.json"]


def test_a_size_that_does_not_fit_is_refused_before_others_are_measured(
    model: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(*_: object) -> None:
        raise AssertionError("nothing may be measured")

    monkeypatch.setattr(bench_module, "bench", measured)
    assert main(["bench", *model, "--prompt-lengths", "8,4000", "--dtype", "float32"]) == 2
    assert "--prompt-lengths 4000" in capsys.readouterr().err
    assert main(["bench", "--shapes", "small", "--prompt-lengths", "8,9999999"]) == 2


def test_threads_of_workers_fit_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    from analysis import executors

    monkeypatch.setattr(executors, "available_cores", lambda: 8)
    monkeypatch.setattr(executors.torch, "get_num_threads", lambda: 8)
    assert [executors.threads_each(workers) for workers in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    # OMP_NUM_THREADS=1 holds for every process.
    monkeypatch.setattr(executors.torch, "get_num_threads", lambda: 1)
    assert executors.threads_each(2) == 1
