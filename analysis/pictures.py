"""save_pictures: plotly figures as PNG, PDF or SVG files, drawn by kaleido in a Chrome of this machine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

FORMATS = ("png", "pdf", "svg")
NEEDED = "pictures are drawn by the package kaleido (pip install kaleido) in a Chrome or Chromium"


def save_pictures(
    figures: Mapping[str, go.Figure | dict[str, Any]], folder: Path, formats: Sequence[str] = ("png", "pdf")
) -> list[Path]:
    """Write FOLDER/NAME.FORMAT for each figure and format, all in one start of the browser.

    Raises ValueError in one sentence where kaleido or a browser is missing, and where the browser fails.
    """
    for name in formats:
        if name not in FORMATS:
            raise ValueError(f"picture format is {name!r}; allowed: {', '.join(FORMATS)}")
    try:
        import kaleido
    except ImportError:
        raise ValueError(f"{NEEDED}; kaleido is not installed") from None
    from kaleido.errors import ChromeNotFoundError

    folder.mkdir(parents=True, exist_ok=True)
    wanted = [
        (folder / f"{name}.{kind}", kind, figure) for name, figure in figures.items() for kind in formats
    ]
    asked = [
        {
            "fig": figure.to_plotly_json() if isinstance(figure, go.Figure) else figure,
            "path": path,
            "opts": {"format": kind, "scale": 2 if kind == "png" else 1, **_size(figure)},
        }
        for path, kind, figure in wanted
    ]
    try:
        kaleido.write_fig_from_object_sync(asked)
    except ChromeNotFoundError:
        raise ValueError(f"{NEEDED}; no Chrome or Chromium was found") from None
    except (RuntimeError, OSError, ValueError, TimeoutError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"pictures could not be drawn: {reason}") from error
    return [path for path, _, _ in wanted]


def _size(figure: go.Figure | dict[str, Any]) -> dict[str, int]:
    layout = figure.layout.to_plotly_json() if isinstance(figure, go.Figure) else figure["layout"]
    return {"width": int(layout.get("width") or 1000), "height": int(layout.get("height") or 500)}
