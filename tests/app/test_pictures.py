"""Pictures of a run: every figure on show, each with its title and what it is of; a zip, or one sentence."""

import zipfile
from pathlib import Path

import pytest

from app import pictures
from app.examples import recorded_example
from app.offline import FIGURES
from app.pictures import captioned, write_pictures


def test_every_figure_names_itself_and_what_it_is_of() -> None:
    drawn = dict(captioned(recorded_example().record))
    assert {name.split("-")[0] for name in drawn} == set(FIGURES) - {"staleness"}
    for figure in drawn.values():
        caption = figure["layout"]["annotations"][-1]["text"]
        assert figure["layout"]["title"]["text"]
        assert "model embedded" in caption
        assert "128 tokens" in caption
        assert figure["layout"]["margin"]["b"] > -figure["layout"]["annotations"][-1]["yshift"]


def test_zip_holds_what_was_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(figures: dict, folder: Path) -> list[Path]:
        files = [folder / f"{name}.png" for name in figures]
        for file in files:
            file.write_bytes(b"\x89PNG")
        return files

    monkeypatch.setattr(pictures, "save_pictures", draw)
    path = write_pictures(recorded_example().record, tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert "recorded/scatter.png" in archive.namelist()
        assert archive.read("recorded/scatter.png") == b"\x89PNG"
    assert list(tmp_path.iterdir()) == [path]
