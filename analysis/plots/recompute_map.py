"""Figure of which positions were recomputed at which step, or how old their keys and values were."""

import numpy as np
import plotly.graph_objects as go

from analysis.plots.theme import LOOK, apply_theme, empty_figure, over_steps, step_numbers
from analysis.timeline import Timeline

TITLES = {"share": "Recomputed positions", "age": "Steps since a position was recomputed"}


def recompute_map_figure(timeline: Timeline, show: str = "share") -> go.Figure:
    """Heat map, canvas position by step; a dot marks the step at which a token was committed.

    show: `share`, the layers that recomputed a position, or `age`. Raises ValueError for another.
    """
    if show not in TITLES:
        raise ValueError(f"show is {show!r}; allowed: {', '.join(TITLES)}")
    if not len(timeline.full):
        return empty_figure(TITLES[show], "no step yet")
    figure = go.Figure(
        _share(timeline) if show == "share" else _age(timeline),
    )
    decoded = np.flatnonzero(timeline.decoded_at >= 0)
    figure.add_scatter(
        x=step_numbers(timeline.decoded_at[decoded]),
        y=decoded + timeline.prompt_length,
        mode="markers",
        marker={"color": LOOK.ink, "size": 4, "line": {"color": LOOK.background, "width": 0.5}},
        name="committed",
        hovertemplate="position %{y} committed at step %{x}<extra></extra>",
    )
    if show == "share":
        for name, colour in (("full step", LOOK.full), ("partial step", LOOK.partial)):
            _name_colour(figure, name, colour)
        _name_colour(figure, "from the cache", LOOK.background, LOOK.ink)
    figure.add_hline(y=timeline.prompt_length - 0.5, line={"color": LOOK.ink, "width": 1})
    apply_theme(figure, TITLES[show], "step", "position (prompt, then generation)", height=420)
    figure.update_yaxes(range=[timeline.canvas_length - 0.5, -0.5], showgrid=False, zeroline=False)
    figure.update_xaxes(showgrid=False, zeroline=False)
    over_steps(figure, len(timeline.full))
    return figure


def _name_colour(figure: go.Figure, name: str, colour: str, edge: str | None = None) -> None:
    """An entry of the legend for a colour of the map, which has none of its own; it draws no point."""
    marker = {
        "color": colour,
        "size": 11,
        "symbol": "square",
        "line": {"color": edge, "width": 1 if edge else 0},
    }
    figure.add_scatter(x=[1], y=[None], mode="markers", marker=marker, name=name, hoverinfo="skip")


def _share(timeline: Timeline) -> go.Heatmap:
    """Shares of partial steps in one colour, the more the stronger; full steps in theirs, drawn as 2."""
    drawn = np.where(timeline.full[:, None], 2 * np.ceil(timeline.share), timeline.share)
    return go.Heatmap(
        z=drawn.T,
        x=step_numbers(len(drawn)),
        customdata=timeline.share.T,
        # A share of 1 stands at 0.5, well before the full steps begin.
        colorscale=[
            [0, LOOK.background],
            [0.5, LOOK.partial],
            [0.75, LOOK.partial],
            [0.75, LOOK.full],
            [1, LOOK.full],
        ],
        zmin=0,
        zmax=2,
        showscale=False,
        hovertemplate="step %{x}, position %{y}: in %{customdata:.0%} of the layers<extra></extra>",
    )


def _age(timeline: Timeline) -> go.Heatmap:
    return go.Heatmap(
        z=timeline.age.T,
        x=step_numbers(len(timeline.age)),
        colorscale="Cividis",
        zmin=0,
        colorbar={"title": {"text": "steps"}, "thickness": 12},
        hovertemplate="step %{x}, position %{y}: K/V %{z} steps old<extra></extra>",
    )
