"""offline_page: a run as one HTML file with the page's own panels: replay, cards and figures, no network."""

import json
import re
from collections.abc import Iterator
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from app.cards import cards
from app.explain import layers_panel, map_panel, signals_panel, staleness_panel, tokens_panel
from app.figures import scatter_panel, timeline_panel, volatility_panel
from app.history import LETTERS
from app.panels import ASSETS, RUN_SCRIPTS, script_paths, style_paths
from app.runs import RunRecord

TEMPLATE = ASSETS / "offline.html.j2"
FIGURES = {
    "timeline": timeline_panel,
    "scatter": scatter_panel,
    "volatility": volatility_panel,
    "map": map_panel,
    "layers": layers_panel,
    "tokens": tokens_panel,
    "signals": signals_panel,
    "staleness": staleness_panel,
}


def drawn_figures(record: RunRecord) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every figure that is not empty: its name among files, its panel's value and its variant.

    A name says what is drawn and of which run: `map-age-of-k-v-b-dual`; of the observation, only what.
    """
    for name, draw in FIGURES.items():
        value = json.loads(draw(record))
        for variant in value["variants"]:
            lane = variant["lane"]
            whose = [] if lane is None else [LETTERS[lane], record.lanes[lane].spec.name]
            words = " ".join([name, variant["view"], *whose]).lower()
            yield "-".join(re.findall("[a-z0-9]+", words)), value, variant


def offline_page(record: RunRecord, frame: dict[str, Any], link: str) -> str:
    """The whole page as text; figures that would be empty are left out. link: the query of its settings."""
    values: dict[str, Any] = {"grid": frame, "cards": cards(record, still=True)}
    for name, draw in FIGURES.items():
        value = json.loads(draw(record))
        if value["variants"]:
            values[name] = value
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in script_paths(RUN_SCRIPTS))
    return template.render(
        record=record,
        figures=[name for name in values if name not in ("grid", "cards")],
        link=link,
        css=Markup("\n".join(path.read_text(encoding="utf-8") for path in style_paths())),
        scripts=Markup(scripts.replace("</script", "<\\/script")),
        values=Markup(_as_script(values)),
    )


def _as_script(values: dict[str, Any]) -> str:
    """JSON that can neither end the script element it stands in nor open a comment there."""
    return json.dumps(values).replace("<", "\\u003c")
