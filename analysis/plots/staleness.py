"""Figure of how wrong a cache was at each step, and how many choices that changed."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.plots.theme import (
    BLUE,
    GREEN,
    LOOK,
    ORANGE,
    apply_theme,
    empty_figure,
    over_steps,
    step_numbers,
    zeros_text,
)
from analysis.staleness import Staleness
from analysis.wording import counted

TITLE = "Staleness of the cache against a full pass"


def staleness_figure(staleness: Staleness) -> go.Figure:
    """Above: cosine distance of K, V (mean of layers) and hidden states, log axis. Below: choices changed.

    Full steps made their cache anew and are at 0 by definition: they are left out, also of the zeros told.
    """
    if not len(staleness.step):
        return empty_figure(TITLE, "no step looked at")
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.65, 0.35])
    curves = (
        ("K", staleness.key.mean(axis=1), BLUE),
        ("V", staleness.value.mean(axis=1), ORANGE),
        ("hidden state", staleness.hidden, GREEN),
    )
    partial = ~staleness.full.astype(bool)
    for name, values, colour in curves:
        figure.add_scatter(
            x=step_numbers(staleness.step),
            # Of a full step only the rounding is left, which would stretch the axis.
            y=np.where((values > 0) & partial, values, np.nan),
            mode="lines+markers",
            name=name,
            line={"color": colour},
            hovertemplate=f"step %{{x}}: %{{y:.2e}}<extra>{name}</extra>",
            row=1,
            col=1,
        )
    figure.add_bar(
        x=step_numbers(staleness.step),
        y=staleness.flipped,
        customdata=[counted(int(number), "mask") for number in staleness.masks],
        name="choices changed",
        marker_color=LOOK.warning,
        hovertemplate="step %{x}: %{y:.0%} of %{customdata}<extra></extra>",
        row=2,
        col=1,
    )
    known = np.concatenate([values[partial] for _, values, _ in curves])
    zeros = zeros_text(known, "values of partial steps ")
    apply_theme(figure, TITLE, "", f"cosine distance{zeros}", height=400)
    figure.update_yaxes(type="log", exponentformat="power", row=1, col=1)
    figure.update_yaxes(title_text="changed", tickformat=".0%", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title_text="step", row=2, col=1)
    over_steps(figure, int(staleness.step.max()) + 1)
    return figure
