"""Figure of a run's timeline: rows recomputed each step over the entropy that decides it."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.plots.theme import apply_theme, empty_figure, look, over_steps, step_numbers
from analysis.timeline import Timeline

TITLE = "Recomputed rows and entropy by step"


def timeline_figure(timeline: Timeline, dark: bool = False) -> go.Figure:
    """Bars: rows recomputed, full and partial steps apart. Below: max entropy of the commits, and tau."""
    if not len(timeline.full):
        return empty_figure(TITLE, "no step yet", dark)
    colours = look(dark)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.6, 0.4])
    steps = step_numbers(len(timeline.full))
    for name, wanted, colour in (("full", True, colours.full), ("partial", False, colours.partial)):
        kept = timeline.full == wanted
        figure.add_bar(
            x=steps[kept],
            y=timeline.num_refreshed[kept],
            customdata=list(
                zip(np.array(timeline.reason)[kept], timeline.num_committed[kept].tolist(), strict=True)
            ),
            hovertemplate="step %{x}: %{y:.4g} rows<br>%{customdata[0]}<br>%{customdata[1]} committed",
            name=f"{name} ({int(kept.sum())})",
            marker_color=colour,
            row=1,
            col=1,
        )
    figure.add_scatter(
        x=steps,
        y=timeline.max_entropy,
        mode="lines+markers",
        name="max entropy",
        line={"color": colours.ink, "width": 1},
        marker={"size": 5},
        hovertemplate="step %{x}: %{y:.3f} nats",
        row=2,
        col=1,
    )
    if timeline.threshold is not None and np.isfinite(timeline.threshold) and timeline.threshold >= 0:
        figure.add_hline(
            y=timeline.threshold,
            line={"color": colours.warning, "dash": "dash"},
            annotation_text=f"τ = {timeline.threshold:g}",
            row=2,
            col=1,
        )
    for start in timeline.block_starts[1:]:
        figure.add_vline(x=start + 0.5, line={"color": colours.faint, "dash": "dot"})
    apply_theme(figure, TITLE, "", "rows recomputed", dark, height=380)
    figure.update_layout(barmode="overlay", bargap=0.15)
    figure.update_yaxes(title_text="nats", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title_text="step", row=2, col=1)
    over_steps(figure, len(timeline.full))
    return figure
