"""Report: every kind of result on one page that asks for nothing from outside; and its maps."""

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.grid import Axis, grid_settings
from analysis.plots import pareto_figure, scaling_figure, sweep_map_figure
from analysis.results import read_results
from analysis.surface import surface
from analysis.tuning import Candidate, Goal, Tuning, pareto_front
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
    figure = pareto_figure(tuning, dark=True)
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
    out = {name: str(tmp_path / name) for name in ("run", "drift", "compare", "tune", "bench")}
    watched = ["--json", out["run"], "--drift", "run-rule", "--drift-json", out["drift"]]
    assert main(["run", *common, *watched]) == 0
    assert main(["compare", *common, "--policies", "dual", "--repeats", "1", "--json", out["compare"]]) == 0
    grid = ["--grid", "entropy_threshold=0,inf", "recent=2,8", "--budget", "0.9"]
    assert main(["tune", *common, *grid, "--json", out["tune"]]) == 0
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
    assert text.count("Plotly.newPlot(") >= 10
    assert "opens without a network" in capsys.readouterr().out


def test_results_are_told_apart(files: list[str]) -> None:
    results = read_results([Path(name) for name in files])
    assert len(results.runs) == len(results.observed) == 1
    assert len(results.comparisons) == len(results.tunings) == len(results.benches) == 1
    assert results.tunings[0].best is not None
    assert len(results.tunings[0].candidates) == 4
    assert len(results.environments) >= 1


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
