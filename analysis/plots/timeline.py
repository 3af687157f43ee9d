"""Figure of a run's timeline: rows recomputed each step over the entropy that decides it."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from analysis.plots.theme import LOOK, apply_theme, empty_figure, over_steps, step_numbers
from analysis.timeline import Timeline

TITLE = "Recomputed rows and entropy by step"
# The two plots above each other, in shares of the height.
LOWER_TO, UPPER_FROM = 0.368, 0.448
# In steps. Left alone, each kind's bars grow as wide as its own steps lie apart, over their neighbours.
BAR_WIDTH = 0.85


def timeline_figure(timeline: Timeline, room: int = 0) -> go.Figure:
    """Bars: rows recomputed, full and partial steps apart. Below: max entropy of the commits, and tau.

    room: steps that the axis has place for where there are fewer, so that those of a run still going on
    keep their place.
    """
    if not len(timeline.full):
        return empty_figure(TITLE, "no step yet")
    steps = step_numbers(len(timeline.full))
    bars = [
        _bars(timeline, steps, name, wanted, colour)
        for name, wanted, colour in (("full", True, LOOK.full), ("partial", False, LOOK.partial))
    ]
    curve = {
        "type": "scatter",
        "x": steps,
        "y": timeline.max_entropy,
        "xaxis": "x2",
        "yaxis": "y2",
        "mode": "lines+markers",
        "name": "max entropy",
        "line": {"color": LOOK.ink, "width": 1},
        "marker": {"size": 5},
        "hovertemplate": "step %{x}: %{y:.3f} nats",
    }
    threshold = timeline.threshold
    lines = [
        {"type": "line", "x0": start + 0.5, "x1": start + 0.5, "xref": f"x{axis}", "y0": 0, "y1": 1}
        | {"yref": f"y{axis} domain", "line": {"color": LOOK.faint, "dash": "dot"}}
        for start in timeline.block_starts[1:]
        for axis in ("", "2")
    ]
    if threshold is not None and np.isfinite(threshold) and threshold >= 0:
        lines.append(
            {"type": "line", "x0": 0, "x1": 1, "xref": "x2 domain", "y0": threshold, "y1": threshold}
            | {"yref": "y2", "line": {"color": LOOK.warning, "dash": "dash"}}
            # Named in the legend: a note at the line would stand in the way of the steps at either end.
            | {"name": f"τ = {threshold:g}", "showlegend": True}
        )
    # Built at one go, not piece by piece: a run draws this anew while it decodes, and each piece that is
    # added to a figure costs as much as all of them together.
    layout = {
        "xaxis": {"anchor": "y", "matches": "x2", "showticklabels": False},
        "xaxis2": {"anchor": "y2", "title": {"text": "step"}},
        "yaxis": {"anchor": "x", "domain": [UPPER_FROM, 1]},
        "yaxis2": {"anchor": "x2", "domain": [0, LOWER_TO], "title": {"text": "nats"}, "rangemode": "tozero"},
        "shapes": lines,
        "barmode": "overlay",
    }
    figure = go.Figure({"data": [*bars, curve], "layout": layout})
    apply_theme(figure, TITLE, "", "rows recomputed", height=380)
    over_steps(figure, max(len(timeline.full), room))
    return figure


def _bars(timeline: Timeline, steps: np.ndarray, name: str, wanted: bool, colour: str) -> dict[str, Any]:
    kept = timeline.full == wanted
    reasons = np.array(timeline.reason)[kept]
    return {
        "type": "bar",
        "x": steps[kept],
        "y": timeline.num_refreshed[kept],
        "width": BAR_WIDTH,
        "customdata": list(zip(reasons, timeline.num_committed[kept].tolist(), strict=True)),
        "hovertemplate": "step %{x}: %{y:.4g} rows<br>%{customdata[0]}<br>%{customdata[1]} committed",
        "name": f"{name} ({int(kept.sum())})",
        "marker": {"color": colour},
        "xaxis": "x",
        "yaxis": "y",
    }
