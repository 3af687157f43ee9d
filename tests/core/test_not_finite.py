"""Logits that are no finite numbers end a run in a sentence, and take nothing that was finished with them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from analysis.__main__ import main
from core import (
    POLICIES,
    Event,
    GenerationConfig,
    LanguageModel,
    NotFiniteError,
    StepEvent,
    load_model,
    stream,
)
from tests import tiny
from tests.invariants.runs import eager_policy

SICK = tiny.VOCAB - 1
PROMPTS = [tiny.PROMPTS[0], [SICK, 5]]
SMALL = GenerationConfig(gen_length=8, block_length=4)
SIZE = ["--gen-length", "8", "--block-length", "4", "--dtype", "float32", "--device", "cpu"]


@pytest.fixture
def folder(checkpoint: Callable[..., Path]) -> Path:
    """A checkpoint that computes NaN as soon as it reads one certain token, and never chooses that."""
    written = checkpoint("llada")
    weights = load_file(written / "model.safetensors")
    weights["model.transformer.wte.weight"][SICK] = torch.nan
    weights["model.transformer.ff_out.weight"][SICK] = 0
    save_file(weights, written / "model.safetensors", metadata={"format": "pt"})
    return written


@pytest.fixture
def sick(folder: Path) -> LanguageModel:
    return load_model(str(folder), device="cpu", dtype="float32")


@pytest.fixture
def arguments(folder: Path, tmp_path: Path) -> list[str]:
    """Options of a command that reaches the second prompt, and fails there."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("\n".join(json.dumps({"prompt_ids": ids}) for ids in PROMPTS))
    return ["--model", str(folder), *SIZE, "--prompts", str(prompts)]


@pytest.mark.parametrize("name", POLICIES)
def test_a_run_ends_at_the_step_and_has_told_of_the_prompts_before(sick: LanguageModel, name: str) -> None:
    events: list[Event] = []
    with pytest.raises(NotFiniteError, match=r"prompt 1: .* no finite numbers at step 1, in float32 on cpu"):
        events.extend(stream(sick, PROMPTS, SMALL, eager_policy(name), slots=1))
    assert [
        one.request.index for event in events if isinstance(event, StepEvent) for one in event.finished
    ] == [0]


def test_a_command_keeps_the_traces_of_the_prompts_before(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["run", *arguments, "--policy", "entropy", "--json", str(out)]) == 1
    assert len(out.read_text().splitlines()) == 1
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "prompt 1: the model's logits are no finite numbers at step 1" in said


def test_a_journal_keeps_the_runs_before(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "journal.jsonl"
    assert main(["compare", *arguments, "--policies", "entropy", "--journal", str(journal)]) == 1
    assert "prompt 1: the model's logits" in capsys.readouterr().err
    assert journal.read_text().count('"prompt": 0') == 3


@pytest.mark.parametrize(
    "command",
    [["compare", "--policies", "entropy", "--repeats", "1"], ["tune", "--grid", "recent=4"], ["observe"]],
)
def test_a_result_file_holds_what_was_measured_before(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """As after Ctrl-C, and marked as incomplete."""
    out = tmp_path / "out.json"
    name, *options = command
    assert main([name, *arguments, *options, "--json", str(out)]) == 1
    assert json.loads(out.read_text())["complete"] is False
    said = capsys.readouterr()
    assert "interrupted" in said.out
    assert "error: prompt 1: the model's logits are no finite numbers" in said.err
