"""Figure of drift by layer: where in the network a cache goes stale."""

import numpy as np
import plotly.graph_objects as go

from analysis.drift import POSITION_CLASSES, Drift
from analysis.plots.theme import SERIES, apply_theme, empty_figure, zeros_text

TITLE = "Drift by layer"


def layers_figure(drift: Drift) -> go.Figure:
    """Mean drift of each kind of position at each layer, log axis; the first layer sees no context."""
    figure = go.Figure()
    for name, colour in zip(POSITION_CLASSES, SERIES, strict=False):
        values = drift.by_layer(name)
        if np.isfinite(values).any():
            figure.add_scatter(
                x=np.arange(len(values)),
                y=np.where(values > 0, values, np.nan),
                mode="lines+markers",
                name=name,
                line={"color": colour},
                hovertemplate=f"layer %{{x}}: %{{y:.2e}}<extra>{name}</extra>",
            )
    if not figure.data:
        return empty_figure(TITLE, "no drift observed")
    every = np.concatenate([drift.by_layer(name) for name in POSITION_CLASSES])
    apply_theme(figure, TITLE, "layer", f"mean drift{zeros_text(every)}")
    figure.update_yaxes(type="log", exponentformat="power")
    figure.update_xaxes(dtick=1 if drift.values.shape[1] <= 12 else None)
    return figure
