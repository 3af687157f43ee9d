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
SCRIPTS = ("scope", "lanes", "player", "grid", "cards", "plots", "forms")
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def script_paths() -> list[Path]:
    """Files the page loads, in order; the panels of a page need them all."""
    return [PLOTLY, *(ASSETS / "js" / f"{name}.js" for name in SCRIPTS)]


@cache
def head() -> str:
    """Script tags for `script_paths`; the digest in each address makes a changed file a new one."""
    tags = []
    for path in script_paths():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        # Relative, so that it also holds behind a root path.
        tags.append(f'<script src="gradio_api/file={path.as_posix()}?v={digest}"></script>')
    return "\n".join(tags)

from gradio.events import Dependency

class Panel(gr.HTML):
    """A panel drawn by the script `kind`; `value` is JSON text, `spec` plain data it never changes."""

    kind = ""

    def __init__(self, value: Any = None, *, elem_id: str, spec: Any = None, **options: Any) -> None:
        super().__init__(
            value=json.dumps(value),
            html_template=f'<div data-panel="{self.kind}"></div>',
            js_on_load=f"Scope.mount('{self.kind}', element, props, watch, trigger);",
            head=head(),
            apply_default_css=False,
            elem_id=elem_id,
            elem_classes=["es-panel", f"es-panel-{self.kind}"],
            spec=spec,
            **options,
        )

    def get_block_name(self) -> str:
        return "html"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


class TokenGrid(Panel):
    """Tokens of one to four runs; takes frames (see app.frames)."""

    kind = "grid"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


class PlotPanel(Panel):
    """A plotly figure with its reading; takes what app.figures makes."""

    kind = "plot"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


class Cards(Panel):
    """Figures of each run; takes what app.cards makes; a click on one brings {"action": ...}."""

    kind = "cards"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


class StatusLine(Panel):
    """One line that starts with running, done, stopped or error; takes {"text": ...}."""

    kind = "status"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


class SettingsForm(Panel):
    """Inputs for a dataclass's fields; its value is {"name": entered}."""

    kind = "settings"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


class PolicyForm(Panel):
    """Settings of the chosen policy; its value is {"policy": name, "config": {"name": entered}}."""

    kind = "policy"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component


class LaneEditor(Panel):
    """Further policies to compare with; its value is a list of the policy form's values."""

    kind = "lanes"
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component