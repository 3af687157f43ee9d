"""Screen: what of the page to redraw, and how often, as one run goes on."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from analysis.trace import Trace
from app.cards import cards
from app.figures import scatter_panel, timeline_panel, volatility_panel
from app.frames import FrameFeed, TokenText
from app.pacing import GRID_HZ, PLOTS_HZ, Pace
from app.perform import Moment
from app.runs import RunRecord

Updates = dict[Any, Any]


@dataclass(frozen=True)
class Parts:
    """The components that show a run as it goes on; shown: the order of the one that has ended last.

    As few as will do: each that a message leaves alone costs the server as much as three that it changes.
    """

    status: Any
    grid: Any
    cards: Any
    timeline: Any
    scatter: Any
    volatility: Any
    shown: Any

    def all(self) -> list[Any]:
        """Every component that a run may change while it goes on."""
        return [getattr(self, part.name) for part in fields(self)]


class Screen:
    """Turns a run's moments into updates of the page's parts, each at its own pace."""

    def __init__(self, record: RunRecord, texts_of: Callable[[Trace], TokenText], parts: Parts) -> None:
        self.record, self.parts = record, parts
        self.feed = FrameFeed(record, texts_of)
        self._paces = {"status": Pace(GRID_HZ), "grid": Pace(GRID_HZ)}
        self._paces |= {"figures": Pace(PLOTS_HZ), "observation": Pace(PLOTS_HZ)}
        self._told = ""

    def updates(self, moment: Moment) -> Updates:
        """The components to change now. The last moment brings everything, complete."""
        parts, record = self.parts, self.record
        out: Updates = {}
        if moment.grid and record.traces and self._due("grid", moment):
            out[parts.grid] = json.dumps(self.feed.frame(moment.state, whole=moment.last))
        # In one message with the tokens: each takes server and browser longer than what is in it.
        tell = moment.last or parts.grid in out or (not moment.grid and self._due("status", moment))
        if moment.text != self._told and tell:
            out[parts.status] = status(moment.text)
            self._told = moment.text
        if moment.figures and record.traces and self._due("figures", moment):
            out |= self._drawn("figures", {parts.cards: cards_value, parts.timeline: timeline_panel})
        if moment.observation and self._due("observation", moment):
            out |= self._drawn(
                "observation", {parts.scatter: scatter_panel, parts.volatility: volatility_panel}
            )
        if moment.last and record.traces:
            out[parts.shown] = record.order
        return out

    def _due(self, name: str, moment: Moment) -> bool:
        return moment.last or moment.flush or self._paces[name].due()

    def _drawn(self, name: str, panels: dict[Any, Callable[[RunRecord], str]]) -> Updates:
        started = time.monotonic()
        values = {part: draw(self.record) for part, draw in panels.items()}
        self._paces[name].took(time.monotonic() - started)
        return values


def cards_value(record: RunRecord) -> str:
    return json.dumps(cards(record))


def status(text: str) -> str:
    """The status line's value."""
    return json.dumps({"text": text})
