"""What commands say of the prompts they had and of runs that were in a file before."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.cli.run import _staleness_line
from analysis.journal import Journal
from analysis.prompts import Prompt, prompts_text
from analysis.report import _titled, sections
from analysis.results import read_results
from analysis.staleness import StalenessSummary
from analysis.wording import percent, signed
from core.training.problems import held_out
from tests.refusals import refusal

NAN = float("nan")
SHORT = ["--gen-length", "16", "--block-length", "8", "--dtype", "float32", "--device", "cpu"]
ALIKE = "4 prompts, 3 of different content"
COMMANDS = {
    "run": [],
    "compare": ["--policies", "dual", "--repeats", "1", "--no-vanilla"],
    "sweep": ["--grid", "recent=2"],
    "tune": ["--grid", "recent=2,8", "--objective", "flops"],
}


@pytest.fixture
def model(checkpoint: Callable[..., Path]) -> list[str]:
    return ["--model", str(checkpoint("llada")), *SHORT]


def asked(tmp_path: Path, contents: Sequence[Sequence[int]]) -> list[str]:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps({"prompt_ids": list(ids)}) for ids in contents))
    return ["--prompts", str(path)]


def test_prompts_of_one_content_are_counted_apart() -> None:
    assert prompts_text([Prompt("a")]) == "1 prompt"
    assert prompts_text([Prompt("a"), Prompt("b")]) == "2 prompts"
    assert prompts_text([Prompt("a"), Prompt("b"), Prompt("a")]) == "3 prompts, 2 of different content"
    assert prompts_text([Prompt(one.prompt, one) for one in held_out("math", 4)]) == ALIKE


@pytest.mark.parametrize("command", COMMANDS)
def test_prompts_that_repeat_one_another_are_told(
    command: str, model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stood in Wilson's interval like any other, without a word."""
    out = ["--out", str(tmp_path / "out.jsonl")] if command == "sweep" else []
    contents = [(5, 6), (7, 8), (9, 4), (5, 6)]
    for given, told in ((contents, True), (contents[:3], False)):
        assert main([command, *model, *asked(tmp_path, given), *COMMANDS[command], *out]) == 0
        said = capsys.readouterr()
        assert (f"{ALIKE}, " in said.out) == told
        assert (f"warning: {ALIKE}; intervals take the others" in said.err) == told
        assert told or "3 prompts, " in said.out
        Path(out[1]).unlink() if out else None


@pytest.mark.parametrize(
    ("command", "option"), [("sweep", "--out"), ("compare", "--journal"), ("tune", "--journal")]
)
def test_runs_that_a_file_held_before_are_told(
    command: str, option: str, model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same table again looked like a new measurement."""
    out = tmp_path / "out.jsonl"
    line = [command, *model, *asked(tmp_path, [(5, 6), (7, 8)]), *COMMANDS[command], option, str(out)]
    assert main(line) == 0
    assert "already" not in capsys.readouterr().out
    runs = len(out.read_text().splitlines()) - 1
    assert main(line) == 0
    assert f"all {runs} runs were in out.jsonl already; nothing was measured" in capsys.readouterr().out
    out.write_text("\n".join([*out.read_text().splitlines()[:-1], ""]))
    assert main(line) == 0
    assert f"{runs - 1} of {runs} runs were in out.jsonl already\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model", "another model"),
        ("generation", "other generation settings"),
        ("prompts", "another number of prompts"),
        ("prompts_sha256", "other prompts"),
    ],
)
def test_a_file_of_another_purpose_is_refused_in_plain_words(name: str, said: str, tmp_path: Path) -> None:
    path, purpose = tmp_path / "out.jsonl", {"model": 1, "generation": 1, "prompts": 1, "prompts_sha256": 1}
    with Journal(path, purpose):
        pass
    with pytest.raises(ValueError, match=f"was begun with {said}; "), Journal(path, {**purpose, name: 2}):
        pass


def test_the_fastest_row_is_defined_as_it_is_chosen(
    model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["compare", *model, *asked(tmp_path, [(5, 6)]), *COMMANDS["compare"]]
    assert main(line) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of the row of most tokens/s, over this row's." in said
    assert "prompt by prompt another may come out above 1." in said


@pytest.mark.parametrize(
    ("value", "told"), [(-0.001, "0.00"), (0.001, "0.00"), (-0.0, "0.00"), (-0.25, "-0.25"), (0.25, "+0.25")]
)
def test_what_rounds_to_zero_has_no_sign(value: float, told: str) -> None:
    assert signed(value) == told
    assert percent(-0.0004) == "0.0%"
    assert percent(-0.1) == "-10.0%"
    assert percent(1.0) == "100.0%"


@pytest.mark.parametrize(
    ("stale", "said"),
    [
        (StalenessSummary(0.1, 0.2, 0.3, 0.5, 1), "staleness over 1 partial step: K 0.1, V 0.2, hidden 0.3"),
        (StalenessSummary(0.1, 0.2, 0.3, 0.5, 2), "would change 50.0% of the choices"),
        (StalenessSummary(0.1, 0.2, NAN, NAN, 2), "V 0.2 from a full pass; what it would choose is not meas"),
        (StalenessSummary(NAN, NAN, NAN, NAN, 0), "staleness: no partial step was looked at"),
    ],
)
def test_staleness_says_of_what_it_is(stale: StalenessSummary, said: str) -> None:
    line = _staleness_line(stale)
    assert said in line
    assert "nan" not in line


def test_files_that_a_report_cannot_take_are_told_what_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`Expecting value: line 1 column 1` said nothing of what to give."""
    table = tmp_path / "sweep.csv"
    table.write_text("setting,cost\nnone,1\n")
    line = refusal(main, ["report", str(table), "--out", str(tmp_path / "out.html")], capsys)
    assert line.startswith(
        "error: sweep.csv is no JSON; allowed: files of run, compare, tune or bench --json"
    )
    assert "Expecting" not in line
    picture = tmp_path / "out.png"
    picture.write_bytes(b"\x89PNG\xff\xfe")
    assert "out.png is no JSON" in refusal(main, ["report", str(picture), "--out", "out.html"], capsys)


def test_sections_of_several_files_are_told_apart(model: list[str], tmp_path: Path) -> None:
    """Three of the same title left the reader to guess which file each was of."""
    prompts = asked(tmp_path, [(5, 6)])
    paths = [tmp_path / name for name in ("one.json", "two.json", "a/run.json", "b/run.json")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        command = "run" if path.stem == "run" else "compare"
        assert main([command, *model, *prompts, *COMMANDS[command], "--json", str(path)]) == 0
    titles = [section.title for section in sections(read_results(paths))]
    assert titles[1:] == ["Settings side by side (one.json)", "Settings side by side (two.json)"]
    assert titles[0].startswith("Runs of entropy ")
    assert titles[0].endswith(f"({paths[2]}, {paths[3]})")
    assert _titled("Runs", list("abcde")) == "Runs (a, b, c and 2 more files)"
    assert _titled("Runs", []) == "Runs"
