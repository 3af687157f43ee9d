"""Report: every kind of result on one page that asks for nothing from outside; and its maps."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from analysis import Trace
from analysis.__main__ import main
from analysis.bench_point import BenchPoint
from analysis.comparison import Summary
from analysis.diagnose import diagnose
from analysis.environment import environment
from analysis.grid import Axis, grid_settings
from analysis.measure import Outcome
from analysis.plots import pareto_figure, scaling_figure, sweep_map_figure
from analysis.records import record
from analysis.report import sections
from analysis.report_tables import SETTING, defaults_notes
from analysis.results import read_results
from analysis.settings import Setting
from analysis.surface import surface
from analysis.tuning import Candidate, Goal, Tuning, pareto_front
from core import load_model
from tests import tiny


def candidates() -> list[Candidate]:
    axes = [Axis.parse("entropy_threshold=1,inf,0.5"), Axis.parse("recent=8,2")]
    settings = grid_settings("entropy", axes)
    return [Candidate(setting, 0.1 * i, 0.5 - 0.1 * i, 4 + i) for i, setting in enumerate(settings)]


def test_a_surface_arranges_candidates_by_what_varies() -> None:
    found = surface(candidates()[:-1])
    assert (found.x_name, found.x) == ("entropy_threshold", (0.5, 1, float("inf")))
    assert (found.y_name, found.y) == ("recent", (2, 8))
    assert found.cost[1, 1] == 0.0
    assert np.isnan(found.cost[0, 0])
    assert found.prompts[0, 0] == 0
    figure = sweep_map_figure(found)
    assert list(figure.data[0].x) == ["0.5", "1", "inf"]
    with pytest.raises(ValueError, match="exactly two"):
        surface(candidates()[:2])


def test_the_front_is_drawn_apart_from_the_rest() -> None:
    every = candidates()
    tuning = Tuning(tuple(every), every[-1], pareto_front(every), Goal(), 10, 40)
    figure = pareto_figure(tuning)
    assert list(figure.data[-1].x) == [candidate.cost for candidate in tuning.front]
    assert pareto_figure(Tuning((), None, (), Goal(), 0, 0)).layout.annotations[0].text


def test_a_scaling_figure_refuses_what_is_not_measured() -> None:
    with pytest.raises(ValueError, match="quantity"):
        scaling_figure([], "joy")
    assert scaling_figure([], "plan_seconds").layout.annotations[0].text == "not measured"


class Outside(HTMLParser):
    """Collects what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.headings: list[str] = []
        self._in_heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value for name, value in attrs if name in ("src", "href") and value]
        self._in_heading = tag == "h2"

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self.headings.append(data)
            self._in_heading = False


@pytest.fixture
def files(checkpoint: Callable[..., Path], tmp_path: Path) -> list[str]:
    prompts = tmp_path / "p.jsonl"
    prompts.write_text("\n".join(json.dumps({"prompt_ids": list(ids)}) for ids in tiny.PROMPTS))
    model = ["--model", str(checkpoint("llada")), "--dtype", "float32", "--device", "cpu"]
    size = ["--gen-length", "16", "--block-length", "8"]
    common = [*model, *size, "--prompts", str(prompts)]
    out = {name: str(tmp_path / name) for name in ("run", "drift", "compare", "tune", "bench", "sweep")}
    watched = ["--json", out["run"], "--drift", "run-rule", "--drift-json", out["drift"]]
    assert main(["run", *common, *watched]) == 0
    assert main(["compare", *common, "--policies", "dual", "--repeats", "1", "--json", out["compare"]]) == 0
    grid = ["--grid", "entropy_threshold=0,inf", "recent=2,8", "--budget", "0.9"]
    assert main(["tune", *common, *grid, "--json", out["tune"]]) == 0
    assert main(["sweep", *common, *grid[:2], "--repeats", "2", "--out", out["sweep"]]) == 0
    place = ["--prompt-lengths", "4,8", "--repeats", "1", "--steps", "4", "--policies", "dual"]
    assert main(["bench", *model, *size, *place, "--json", out["bench"]]) == 0
    return list(out.values())


def test_a_report_shows_every_result_and_fetches_nothing(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", *files, "--out", str(page), "--title", "<b>title</b>"]) == 0
    text = page.read_text(encoding="utf-8")
    outside = Outside()
    outside.feed(text)
    assert outside.fetched == []
    headings = " ".join(outside.headings)
    for wanted in ("Runs of entropy", "Drift without a cache", "side by side", "Tuning", "Speed", "machine"):
        assert wanted in headings
    assert "&lt;b&gt;title" in text
    every = "at their defaults: entropy entropy_threshold=1.0 recent=64 scope=since_full"
    for wanted in (
        every,
        "tokens per second, median",
        "token ids 5",
        "at least 8",
        "more runs to confirm the choice and 3 of one token a step",
        "gen_length=16 block_length=8",
    ):
        assert wanted in text
    assert not re.search(r"<th>[a-z]+_", text)
    assert text.count("Plotly.newPlot(") >= 10
    assert "opens without a network" in capsys.readouterr().out


def test_a_rows_setting_is_what_differs_and_the_rest_stands_once(files: list[str]) -> None:
    """Whole configs down a column are the same text again and again, and push the numbers off the page."""
    tables = {one.title: one for one in sections(read_results([Path(name) for name in files]))}
    tuning, bench = tables["Tuning (tune)"], tables["Speed by size (bench)"]
    assert tuning.table is not None
    assert bench.table is not None
    assert set(tuning.table[SETTING]) == {
        f"entropy entropy_threshold={tau} recent={k}" for tau in ("0", "inf") for k in (2, 8)
    }
    assert set(bench.table[SETTING]) == {"none", "dual"}
    assert tuning.notes[-1:] == tuple(defaults_notes(["entropy"]))
    assert not any("does not name" in note for note in bench.notes), "these have no settings"
    assert defaults_notes(["none", "entropy:recent=8", "entropy:recent=2"]) == defaults_notes(["entropy"])
    assert Setting("entropy").described in defaults_notes(["none", "entropy:recent=8"])[0]
    assert defaults_notes(["none", "none:steps=4,unmask=quota"]) == []


def test_results_are_told_apart(files: list[str]) -> None:
    results = read_results([Path(name) for name in files])
    assert len(results.runs) == len(results.observed) == 1
    assert [len(results.comparisons), len(results.tunings), len(results.benches)] == [2, 1, 1]
    assert [row.setting for row in results.comparisons[1].summaries] == [
        "none",
        "entropy:entropy_threshold=0",
        "entropy:entropy_threshold=inf",
    ]
    assert {row.repeats for row in results.comparisons[1].summaries} == {2}
    assert results.comparisons[1].summaries[1].repeat_spread is not None
    assert results.tunings[0].best is not None
    assert len(results.tunings[0].candidates) == 4
    assert len(results.environments) >= 1


@pytest.mark.parametrize("part", ["runs", "observed"])
@pytest.mark.parametrize(
    "change",
    [
        {"model": {"ref": "another"}},
        {"model": {"dtype": "bfloat16"}},
        {"model": {"device": "cuda:0"}},
        {"model": {"num_parameters": 8_000_000_000}},
        {"generation": {"temperature": 0.7}},
        {"generation": {"gen_length": 32}},
    ],
)
def test_runs_stand_together_only_where_model_and_decoding_are_the_same(
    part: str, change: dict[str, dict[str, object]], trace: Trace, tmp_path: Path
) -> None:
    facts = {"num_parameters": 1000, "hidden_size": 8, "intermediate_size": 16}
    facts |= {"num_heads": 2, "num_kv_heads": 2, "head_dim": 4}
    one = replace(trace, model={**trace.model, **facts}, generation={**trace.generation, "unmask": "quota"})
    if part == "observed":
        steps = [replace(s, measurements={"value_drift": np.zeros((3, 7), np.float32)}) for s in one.steps]
        one = replace(one, steps=tuple(steps), policy={"name": "none", "config": {}})
    other = replace(one, **{name: {**getattr(one, name), **new} for name, new in change.items()})
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(json.dumps(each.to_json()) for each in (one, other, one)))
    groups = getattr(read_results([path]), part).values()
    assert [len(group) for group in groups] == [2, 1]


def test_a_sweep_cut_off_in_a_line_is_shown_without_it(files: list[str], tmp_path: Path) -> None:
    whole = Path(files[-1]).read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[:-20])
    found = read_results([cut]).comparisons[0].summaries
    assert sorted(row.repeats for row in found) == [2, 2, 2]
    assert read_results([Path(files[-1])]).comparisons[0].summaries[0].prompts == 3
    lines = whole.decode().splitlines()
    cut.write_text("\n".join([json.dumps({**json.loads(lines[0]), "environment": None}), *lines[1:], ""]))
    with pytest.raises(ValueError, match="machine and model"):
        read_results([cut])
    cut.write_text("\n".join([lines[0], "half", lines[1], ""]))
    with pytest.raises(ValueError, match=r"cut\.jsonl"):
        read_results([cut])


def test_a_run_says_what_it_ran_on_and_how_to_ask_for_it_again(
    files: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = read_results([Path(files[0])])
    assert made.environments[0]["threads"] >= 1
    assert made.environments[0]["torch"]
    assert "gen_length=16 block_length=8 unmask=threshold" in made.environments[0]["decoding"]
    assert len(read_results([Path(files[0]), Path(files[0])]).environments) == 1
    # Asked for by a program, the command is what it asked, not how the program was started.
    asked = shlex.split(made.environments[0]["command"])
    assert asked[:4] == ["python", "-m", "analysis", "run"]
    assert asked[asked.index("--json") + 1] == files[0]
    folder = tmp_path / "two words"
    monkeypatch.setattr("sys.argv", ["x", "run", "--prompt", "what's 2 + 3?", "--json", str(folder)])
    command = environment(load_model(device="cpu", dtype="float32"))["command"]
    assert shlex.split(command)[3:] == ["run", "--prompt", "what's 2 + 3?", "--json", str(folder)]


def test_nothing_found_says_where_it_was_looked_for(trace: Trace) -> None:
    found = replace(diagnose([trace]), mask_rows=0, beyond_recent=0, full_share=0.5, triggered=0.5)
    [text] = replace(found, at_block_start=0.1).findings()
    assert "in 1 run of 4 steps together; looked for: " in text
    assert "more tokens just committed than k" in text
    [shorter] = replace(found, at_block_start=None, beyond_recent=None).findings()
    assert "than k" not in shorter


@pytest.mark.parametrize("lacking", ["python", "threads", "model", "model/family"])
def test_a_run_that_does_not_say_what_it_ran_on_is_refused(
    lacking: str, trace: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = environment(load_model(device="cpu", dtype="float32"))
    parent, _, name = lacking.rpartition("/")
    del (machine[parent] if parent else machine)[name]
    path, out = tmp_path / "run.json", tmp_path / "out.html"
    path.write_text(json.dumps({**trace.to_json(), "environment": machine}))
    assert main(["report", str(path), "--out", str(out)]) == 2
    assert lacking.replace("/", ".") in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("value", ["x", [None], {"a": 1}])
@pytest.mark.parametrize("kind", [Outcome, Summary, BenchPoint])
def test_a_record_with_a_wrong_field_is_refused_by_name(kind: type, value: object) -> None:
    numbers = [one.name for one in fields(kind) if "float" in str(one.type) or "int" in str(one.type)]
    whole = {one.name: "none" if one.type in ("str", str) else 1 for one in fields(kind)}
    whole |= {"tokens": [1], "solved": True} if kind is Outcome else {}
    assert record(kind, whole)
    for name in numbers:
        with pytest.raises(ValueError, match=name):
            record(kind, {**whole, name: value})


@pytest.mark.parametrize("content", ["", "hello", '{"kind": "poem"}', "[]", '{"kind": "bench"}', "{}"])
def test_a_file_that_is_no_result_is_refused_by_name(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content)
    out = tmp_path / "out.html"
    assert main(["report", str(path), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "odd.json" in said or "empty" in said
    assert not out.exists()
    assert main(["report", str(tmp_path / "none.json"), "--out", str(out)]) == 2
