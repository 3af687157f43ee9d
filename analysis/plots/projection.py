"""Figure of what EntropyCache would have recomputed with another tau or k, over what the run did."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.plots.theme import LOOK, apply_theme, empty_figure, over_steps, step_numbers
from analysis.projection import Projection

TITLE = "Projected recomputes along the recorded path"
WIDTH = 0.8


def projection_figure(projection: Projection) -> go.Figure:
    """Bars: projected rows, full and partial apart; a line for what was recorded. Below: entropy and tau."""
    if not len(projection.full):
        return empty_figure(TITLE, "no step yet")
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.55, 0.45])
    steps, rows = step_numbers(len(projection.full)), projection.rows
    for name, wanted, colour in (("full", True, LOOK.full), ("partial", False, LOOK.partial)):
        kept = projection.full == wanted
        figure.add_bar(
            x=steps[kept],
            y=rows[kept],
            width=WIDTH,
            name=f"would be {name} ({int(kept.sum())})",
            marker_color=colour,
            hovertemplate=f"step %{{x}}: %{{y:.4g}} rows<extra>would be {name}</extra>",
            row=1,
            col=1,
        )
    figure.add_scatter(
        x=steps,
        y=projection.recorded_rows,
        mode="lines",
        line={"color": LOOK.ink, "width": 1.5, "shape": "hvh"},
        name="recorded",
        hovertemplate="step %{x}: %{y:.4g} rows<extra>recorded</extra>",
        row=1,
        col=1,
    )
    above = projection.max_entropy > projection.threshold
    for name, kept, marker in (
        ("entropy above τ", above, {"color": LOOK.full, "size": 8, "symbol": "diamond"}),
        ("entropy up to τ", ~above, {"color": LOOK.ink, "size": 5}),
    ):
        figure.add_scatter(
            x=steps[kept],
            y=projection.max_entropy[kept],
            mode="markers",
            marker=marker,
            name=name,
            hovertemplate="step %{x}: %{y:.3f} nats<extra></extra>",
            row=2,
            col=1,
        )
    if np.isfinite(projection.threshold) and projection.threshold >= 0:
        line = {"color": LOOK.warning, "dash": "dash"}
        text = f"τ = {projection.threshold:g}"
        figure.add_hline(y=projection.threshold, line=line, annotation_text=text, row=2, col=1)
    apply_theme(figure, TITLE, "", "rows recomputed", height=380)
    figure.update_layout(barmode="overlay")
    figure.update_yaxes(title_text="nats", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title_text="step", row=2, col=1)
    over_steps(figure, len(projection.full))
    return figure
