"""The page's own panels: gr.HTML shells around the scripts in assets/js, which draw what they are sent.

A panel's value is one JSON text. Its template is constant, so nothing a model wrote is ever compiled or
parsed as markup; scripts put text into the page as text nodes only.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
import plotly

ASSETS = Path(__file__).resolve().parents[1] / "assets"
RUN_SCRIPTS = (
    *("scope", "lanes", "strips", "player", "cells", "grid", "cards"),
    *("links", "looks", "pictures", "plots"),
)
PAGE_SCRIPTS = ("line", "corner", "history", "status", "forms")
STYLES = ("app", "run", "narrow")
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def script_paths(names: tuple[str, ...] = (*RUN_SCRIPTS, *PAGE_SCRIPTS)) -> list[Path]:
    """Files the page loads, in order; to show a run, those of RUN_SCRIPTS will do."""
    return [PLOTLY, *(ASSETS / "js" / f"{name}.js" for name in names)]


def style_paths() -> list[Path]:
    """The page's style sheets, in order: a later one has the last word."""
    return [ASSETS / f"{name}.css" for name in STYLES]


@cache
def head() -> str:
    """Script tags for `script_paths`; the digest in each address makes a changed file a new one."""
    tags = []
    for path in script_paths():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        # Relative, so that it also holds behind a root path.
        tags.append(f'<script src="gradio_api/file={path.as_posix()}?v={digest}"></script>')
    return "\n".join(tags)


def panel(kind: str, value: Any = None, *, elem_id: str, spec: Any = None) -> gr.HTML:
    """A panel drawn by the script registered as `kind`.

    value: plain data, or JSON text of it; spec: plain data the panel needs and never changes. Kinds and
    what they take: `grid` app.frames, `plot` app.figures, `cards` app.cards, `status` {"text": ...},
    `settings` {"field": entry}, `policy` {"policy", "config"}, `lanes` a list of those.
    """
    # Not a subclass: Gradio writes a .pyi file beside every subclass of its components.
    return gr.HTML(
        value=value if isinstance(value, str) else json.dumps(value),
        html_template=f'<div data-panel="{kind}"></div>',
        # Part of the script, not a prop: what is unfolded later gets no props of its own from Gradio.
        js_on_load=f"Scope.mount('{kind}', element, props, watch, trigger, {json.dumps(spec)});",
        head=head(),
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["es-panel", f"es-panel-{kind}"],
    )
