"""write_pictures: a run's figures as one zip of PNG and PDF, title and source in each."""

import tempfile
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.pictures import save_pictures
from app.offline import drawn_figures
from app.runs import RunRecord

# Pixels: of a picture, of a line of its caption, of an axis with its title; letters on such a line.
WIDTH, LINE, AXIS, LETTERS = 1000, 14, 64, 150


def write_pictures(record: RunRecord, folder: Path) -> Path:
    """Write `<run>-pictures.zip` into a folder and return its path.

    Raises ValueError in one sentence where this machine can't draw pictures.
    """
    path = folder / f"{record.run_id}-pictures.zip"
    with tempfile.TemporaryDirectory() as drawn:
        files = save_pictures(dict(captioned(record)), Path(drawn))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, f"{record.run_id}/{file.name}")
    return path


def captioned(record: RunRecord) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every figure that is not empty by a file name, with a title and what it is of."""
    for name, value, variant in drawn_figures(record):
        label = ", ".join(part for part in (variant["label"], variant["view"]) if part)
        title = f"{value['title']}: {label}" if label else value["title"]
        lines = [line for line in variant["headline"] if line != variant["label"]]
        words = [*lines, value["how"], value["about"]]
        yield name, _with_words(variant["figure"], title, words, value["height"])


def _with_words(figure: dict[str, Any], title: str, words: list[str], height: int) -> dict[str, Any]:
    lines = [line for text in words for line in textwrap.wrap(str(text), LETTERS)]
    layout, below = figure["layout"], LINE * (len(lines) + 1)
    margin = {"l": 60, "r": 40, "t": 30, **layout.get("margin", {})}
    margin["b"] = max(margin.get("b", 0), AXIS)
    caption = {
        "text": "<br>".join(line.replace("&", "&amp;").replace("<", "&lt;") for line in lines),
        "showarrow": False,
        "align": "left",
        "font": {"size": 10},
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "top",
        "yshift": -margin["b"],
    }
    heading = {"text": title, "x": 0.01, "xanchor": "left", "yref": "container", "y": 0.98, "yanchor": "top"}
    return {
        "data": figure["data"],
        "layout": {
            **layout,
            "autosize": False,
            "width": WIDTH,
            "height": height + 40 + below,
            "margin": {**margin, "t": margin["t"] + 30, "b": margin["b"] + below},
            "title": heading,
            "annotations": [*layout.get("annotations", []), caption],
        },
    }
