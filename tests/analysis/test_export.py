"""Outcomes as tables: Parquet and CSV hold what the line-by-line file holds."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.journal import Journal
from analysis.measure import to_frame
from analysis.results import read_outcomes, read_results
from tests.analysis.test_comparison import ENTROPY, outcome

WHAT = {
    "model": {"ref": "made"},
    "generation": {"gen_length": 8, "block_length": 8, "threshold": float("inf"), "steps": None},
}
MODEL = {
    "ref": "made",
    "family": "llada",
    "dtype": "float32",
    "device": "cpu",
    "num_parameters": 9,
    "eos_token_ids": [1],
}
MACHINE = {
    "threads": 2,
    "python": "3",
    "torch": "2",
    "platform": "p",
    "processor": "p",
    "command": "c",
    "model": MODEL,
}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.jsonl"
    generation = {"gen_length": 8, "block_length": 8}
    with Journal(path, {**WHAT, "generation": generation}, MACHINE) as opened:
        for prompt in range(3):
            opened.add(outcome(ENTROPY, prompt, 0, 1.0 + prompt))
    return path


def test_parquet_holds_the_outcomes_and_what_they_hold_for(journal: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is optional: pip install pyarrow")
    out = tmp_path / "out.parquet"
    assert main(["export", str(journal), "--out", str(out)]) == 0
    assert read_outcomes(out) == read_outcomes(journal)
    assert read_results([out]).comparisons == read_results([journal]).comparisons
    assert list(pd.read_parquet(out)["seconds"]) == [1.0, 2.0, 3.0]
    (tmp_path / "odd.parquet").write_text("hello")
    with pytest.raises(ValueError, match=r"odd\.parquet"):
        read_results([tmp_path / "odd.parquet"])


def test_csv_holds_a_row_an_outcome(journal: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert main(["export", str(journal), "--out", str(out)]) == 0
    _, outcomes = read_outcomes(journal)
    assert list(pd.read_csv(out)["seconds"]) == [one.seconds for one in outcomes]
    assert list(pd.read_csv(out).columns) == list(to_frame(outcomes).columns) == list(to_frame([]).columns)


def test_without_pyarrow_one_sentence_says_how_to_get_it(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = tmp_path / "out.parquet"
    assert main(["export", str(journal), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "pip install pyarrow" in said
    assert said.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    "content", ["", "[]", "5", '{"kind": "tuning"}', json.dumps({"kind": "journal"}) + "\n{}\n"]
)
def test_a_file_without_outcomes_is_refused_by_name(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text(content)
    assert main(["export", str(odd), "--out", str(tmp_path / "o.csv")]) == 2
    assert "odd.json" in capsys.readouterr().err
    assert main(["export", str(odd), "--out", str(tmp_path / "o.xls")]) == 2
    assert main(["sweep", "--prompt", "a", "--grid", "recent=1,2", "--out", "o.parquet"]) == 2
    assert "export" in capsys.readouterr().err
