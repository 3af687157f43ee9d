"""Figure of which positions were recomputed at which step, or how old their keys and values were."""

import numpy as np
import plotly.graph_objects as go

from analysis.plots.theme import apply_theme, empty_figure, look, step_numbers
from analysis.timeline import Timeline

TITLES = {"share": "Recomputed positions", "age": "Steps since a position was recomputed"}


def recompute_map_figure(timeline: Timeline, show: str = "share", dark: bool = False) -> go.Figure:
    """Heat map, canvas position by step; a dot marks the step at which a token was committed.

    show: `share`, the layers that recomputed a position, or `age`. Raises ValueError for another.
    """
    if show not in TITLES:
        raise ValueError(f"show is {show!r}; allowed: {', '.join(TITLES)}")
    if not len(timeline.full):
        return empty_figure(TITLES[show], "no step yet", dark)
    colours = look(dark)
    values = timeline.share if show == "share" else timeline.age
    figure = go.Figure(
        go.Heatmap(
            z=values.T,
            x=step_numbers(len(values)),
            colorscale=[[0, colours.background], [1, colours.partial]] if show == "share" else "Cividis",
            zmin=0,
            zmax=1 if show == "share" else None,
            showscale=show == "age",
            colorbar={"title": {"text": "steps"}, "thickness": 12},
            hovertemplate="step %{x}, position %{y}: %{z:.3g}<extra></extra>",
        )
    )
    decoded = np.flatnonzero(timeline.decoded_at >= 0)
    figure.add_scatter(
        x=step_numbers(timeline.decoded_at[decoded]),
        y=decoded + timeline.prompt_length,
        mode="markers",
        marker={"color": colours.full, "size": 4},
        name="committed",
        hovertemplate="position %{y} committed at step %{x}<extra></extra>",
    )
    figure.add_hline(y=timeline.prompt_length - 0.5, line={"color": colours.ink, "width": 1})
    apply_theme(figure, TITLES[show], "step", "position (prompt, then generation)", dark, height=420)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(showgrid=False)
    return figure
