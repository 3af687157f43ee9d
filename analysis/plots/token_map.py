"""Figure of every token's drift at every step: which tokens keep moving, and when."""

import math

import numpy as np
import plotly.graph_objects as go

from analysis.drift import token_drift
from analysis.plots.theme import LOOK, PURPLE, apply_theme, empty_figure, over_steps, step_numbers
from analysis.trace import Trace

TITLE = "Drift of each token at each step"


def token_map_figure(trace: Trace) -> go.Figure:
    """Heat map of log10 layer-mean drift, position by step; a dot marks the step of the commit.

    Empty where a position was not observed; no move at all has a colour of its own. Raises ValueError where
    drift was not watched.
    """
    values, _ = token_drift(trace)
    if not (values > 0).any():
        return empty_figure(TITLE, "no drift observed")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log10(values), np.nan)
    figure = go.Figure(
        go.Heatmap(
            z=logs.T,
            x=step_numbers(len(logs)),
            customdata=values.T,
            colorscale="Cividis",
            colorbar={"title": {"text": "drift", "side": "right"}, "thickness": 12, **_decades(logs)},
            hovertemplate="step %{x}, position %{y}: drift %{customdata:.2e}<extra></extra>",
        )
    )
    if (values == 0).any():
        figure.add_heatmap(
            z=np.where(values == 0, 0.0, np.nan).T,
            x=step_numbers(len(logs)),
            colorscale=[[0, PURPLE], [1, PURPLE]],
            showscale=False,
            showlegend=True,
            name="no move at all",
            hovertemplate="step %{x}, position %{y}: no move at all<extra></extra>",
        )
    decoded = np.flatnonzero(trace.decoded_at >= 0)
    figure.add_scatter(
        x=step_numbers(trace.decoded_at[decoded]),
        y=decoded,
        mode="markers",
        marker={"color": LOOK.full, "size": 4},
        name="committed",
        hovertemplate="position %{y} committed at step %{x}<extra></extra>",
    )
    apply_theme(figure, TITLE, "step", "position in the generation", height=420)
    figure.update_yaxes(range=[logs.shape[1] - 0.5, -0.5], showgrid=False, zeroline=False)
    figure.update_xaxes(showgrid=False, zeroline=False)
    over_steps(figure, len(logs))
    return figure


def _decades(logs: np.ndarray) -> dict[str, list[int] | list[str]]:
    """Ticks of a scale that holds logarithms, as powers of ten."""
    exponents = list(range(math.ceil(np.nanmin(logs)), math.floor(np.nanmax(logs)) + 1))
    return {"tickvals": exponents, "ticktext": [f"10<sup>{exponent}</sup>" for exponent in exponents]}
