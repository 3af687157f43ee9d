"""Pictures: files of the kind and size asked for, where kaleido and a browser are; else one sentence."""

import re
import sys
from pathlib import Path

import plotly.graph_objects as go
import pytest

from analysis.__main__ import main
from analysis.pictures import save_pictures
from tests.chrome import needed_chrome

STARTS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg"}
FIGURE = go.Figure(go.Scatter(x=[1, 2], y=[3, 1]), {"title": "as measured", "width": 400, "height": 300})


def test_every_format_is_drawn_in_the_size_of_the_figure(tmp_path: Path) -> None:
    pytest.importorskip("kaleido")
    needed_chrome()
    figures = {"graph": FIGURE, "plain": FIGURE.to_plotly_json()}
    files = save_pictures(figures, tmp_path / "new", tuple(STARTS))
    assert sorted(files) == sorted((tmp_path / "new").iterdir())
    assert {file.stem for file in files} == set(figures)
    for file in files:
        assert file.read_bytes().startswith(STARTS[file.suffix[1:]])
    png = (tmp_path / "new" / "graph.png").read_bytes()
    assert [int.from_bytes(png[at : at + 4], "big") for at in (16, 20)] == [800, 600]
    assert "as measured" in (tmp_path / "new" / "graph.svg").read_text()


def test_missing_package_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(ValueError, match=r"pip install kaleido.*is not installed"):
        save_pictures({"graph": FIGURE}, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [("ChromeNotFoundError", "no Chrome or Chromium was found"), ("RuntimeError", "could not be drawn: why")],
)
def test_browser_that_is_missing_or_fails_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, sentence: str
) -> None:
    kaleido = pytest.importorskip("kaleido")
    from kaleido.errors import ChromeNotFoundError

    def fail(figures: list) -> None:
        raise {"ChromeNotFoundError": ChromeNotFoundError, "RuntimeError": RuntimeError}[error]("why\nnot")

    monkeypatch.setattr(kaleido, "write_fig_from_object_sync", fail)
    with pytest.raises(ValueError, match=sentence) as caught:
        save_pictures({"graph": FIGURE}, tmp_path)
    assert "\n" not in str(caught.value)


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="picture format is 'bmp'; allowed: png, pdf, svg"):
        save_pictures({"graph": FIGURE}, tmp_path, ("bmp",))


RECORDED = Path(__file__).parents[2] / "assets" / "traces" / "entropy.json"


def test_a_report_gives_its_figures_as_pictures_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, go.Figure] = {}

    def draw(figures: dict[str, go.Figure], folder: Path) -> list[Path]:
        asked.update(figures)
        return [folder / f"{name}.png" for name in figures]

    monkeypatch.setattr("analysis.cli.report.save_pictures", draw)
    out, folder = tmp_path / "report.html", tmp_path / "pictures"
    assert main(["report", str(RECORDED), "--out", str(out), "--pictures", str(folder)]) == 0
    assert f"wrote {len(asked)} pictures to {folder}" in capsys.readouterr().out
    assert len(asked) == out.read_text(encoding="utf-8").count("Plotly.newPlot(")
    for name, figure in asked.items():
        assert re.fullmatch(r"\d\d-[a-z0-9-]{1,40}-\d+", name)
        assert "Runs of entropy" in figure.layout.title.text


def test_pictures_that_cant_be_drawn_leave_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kaleido", None)
    out = tmp_path / "report.html"
    assert main(["report", str(RECORDED), "--out", str(out), "--pictures", str(tmp_path / "new")]) == 2
    assert "kaleido is not installed" in capsys.readouterr().err
    assert out.is_file()
