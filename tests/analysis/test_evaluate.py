"""`evaluate` on a local task file; what needs lm-eval is skipped without it."""

import json
import sys
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.benchmarks import PRESETS, Preset, preset_named
from core import GenerationConfig, create_policy, generate, load_model

SIZE = ["--gen-length", "32", "--block-length", "32", "--dtype", "float32", "--device", "cpu"]
TASK = """
task: own_task
dataset_path: json
dataset_kwargs:
  data_files:
    test: {docs}
test_split: test
output_type: {output_type}
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: ["STOP"]
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    regexes_to_ignore: ["^\\\\s+", "\\\\s+$"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task of two prompts: the first answer is what the model says, the second is not."""
    problems = Path(__file__).parents[2] / "assets" / "model" / "problems.jsonl"
    prompts = [json.loads(line)["prompt"] for line in problems.read_text().splitlines()[:2]]
    config = GenerationConfig(gen_length=32, block_length=32)
    model = load_model("embedded", device="cpu", dtype="float32")
    said = [answer.text for answer in generate(model, prompts, config, create_policy("none"))]
    docs = [{"prompt": prompts[0], "answer": said[0]}, {"prompt": prompts[1], "answer": f"not {said[1]}"}]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, docs)))
    task = TASK.format(docs=tmp_path / "docs.jsonl", output_type="generate_until")
    (tmp_path / "own.yaml").write_text(task)
    return tmp_path


def test_a_task_file_is_scored_and_timed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lm_eval", reason="lm-eval is optional: pip install lm-eval")
    out = folder / "out.json"
    where = ["--task-path", str(folder), "--tasks", "own_task", "--batch", "2", "--json", str(out)]
    assert main(["evaluate", "--policy", "none", *where, *SIZE]) == 0
    (result,) = json.loads(out.read_text())["tasks"]
    assert result["scores"]["own_task/exact_match,none"] == 0.5
    assert result["requests"] == 2
    assert result["recompute_ratio"] == 1
    assert result["tokens_per_second"] > 0
    assert "own_task/exact_match" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (["--tasks", "no_such_task"], "no_such_task"),
        (["--tasks", "gsm8k", "--task-path", "/no/such/place"], "--task-path"),
        (["--tasks", "arc_easy", "--preset"], "--preset"),
        (["--tasks", "gsm8k", "--batch", "0"], "--batch"),
        (["--tasks", "gsm8k", "--policy", "guess"], "guess"),
    ],
)
def test_bad_evaluations_are_usage_errors(
    extra: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("lm_eval", reason="lm-eval is optional: pip install lm-eval")
    assert main(["evaluate", *extra]) == 2
    assert named in capsys.readouterr().err


def test_a_task_that_scores_likelihoods_is_a_usage_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("lm_eval", reason="lm-eval is optional: pip install lm-eval")
    task = TASK.format(docs=folder / "docs.jsonl", output_type="loglikelihood")
    task = task[: task.index("generation_kwargs")] + "metric_list:\n  - metric: acc\n"
    (folder / "own.yaml").write_text(task)
    assert main(["evaluate", "--task-path", str(folder), "--tasks", "own_task", *SIZE]) == 2
    assert "log-likelihoods" in capsys.readouterr().err


def test_every_preset_is_a_task_of_lm_eval_that_generates() -> None:
    lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is optional: pip install lm-eval")
    from lm_eval.tasks import TaskManager

    assert lm_eval
    known = TaskManager()
    assert {"gsm8k", "math500", "mbpp", "humaneval", "mmlu_pro", "bbh", "gpqa"} <= set(PRESETS)
    for preset in PRESETS.values():
        assert known.match_tasks([preset.task]) == [preset.task]
        assert preset_named(preset.task) == preset


def test_a_preset_gives_shots_and_length_unless_options_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lm_eval", reason="lm-eval is optional: pip install lm-eval")
    monkeypatch.setitem(PRESETS, "own", Preset("own_task", 0, 32, "here"))
    out = folder / "out.json"
    where = ["--task-path", str(folder), "--tasks", "own", "--preset", "--limit", "1", "--json", str(out)]
    rest = ["--policy", "none", "--block-length", "16", "--dtype", "float32", "--device", "cpu"]
    for length, extra in ((32, []), (16, ["--gen-length", "16"])):
        assert main(["evaluate", *where, *rest, *extra]) == 0
        found = json.loads(out.read_text())
        (result,) = found["tasks"]
        assert found["complete"]
        assert (result["task"], result["shots"], result["generation"]["gen_length"]) == (
            "own_task",
            0,
            length,
        )


def test_a_task_that_fails_leaves_the_finished_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is optional: pip install lm-eval")
    whole, done = lm_eval.simple_evaluate, []

    def fails_late(**named: object) -> object:
        if done:
            raise OSError("no network")
        done.append(named)
        return whole(**named)

    monkeypatch.setattr(lm_eval, "simple_evaluate", fails_late)
    (folder / "late.yaml").write_text((folder / "own.yaml").read_text().replace("own_task", "late_task"))
    out = folder / "out.json"
    where = ["--task-path", str(folder), "--tasks", "own_task,late_task", "--limit", "1", "--json", str(out)]
    assert main(["evaluate", *where, *SIZE]) == 1
    found = json.loads(out.read_text())
    assert len(found["tasks"]) == 1
    assert not found["complete"]


def test_stop_texts_cut_at_the_first() -> None:
    pytest.importorskip("lm_eval", reason="lm-eval is optional: pip install lm-eval")
    from analysis.lm_eval_model import cut

    assert cut("one\ntwo STOP three", ["STOP", "\n"]) == "one"
    assert cut("one two", "STOP") == "one two"
    assert cut("one two", ["", "STOP"]) == "one two"


def test_without_lm_eval_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    assert main(["evaluate", "--tasks", "gsm8k"]) == 2
    assert "pip install lm-eval" in capsys.readouterr().err
