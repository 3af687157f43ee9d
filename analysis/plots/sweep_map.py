"""Figure of cost and loss over two settings, side by side."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.plots.theme import apply_theme
from analysis.surface import Surface

SYMBOLS = {"entropy_threshold": "τ (nats)", "recent": "k"}


def sweep_map_figure(surface: Surface, keep: str = "agreement", dark: bool = False) -> go.Figure:
    """Two heat maps over the same settings: cost as a share of no cache, and what was lost."""
    names = ("cost, share of no cache", f"{keep} lost")
    x_name, y_name = (SYMBOLS.get(name, name) for name in (surface.x_name, surface.y_name))
    figure = make_subplots(rows=1, cols=2, subplot_titles=names, shared_yaxes=True, horizontal_spacing=0.14)
    x, y = ([f"{value}" for value in values] for values in (surface.x, surface.y))
    for column, values in enumerate((surface.cost, surface.loss), start=1):
        known = values[np.isfinite(values)]
        figure.add_heatmap(
            z=values,
            x=x,
            y=y,
            customdata=surface.prompts,
            colorscale="Cividis",
            zmin=float(known.min()) if len(known) else None,
            zmax=float(known.max()) if len(known) else None,
            texttemplate="%{z:.0%}",
            hovertemplate=f"{x_name} %{{x}}, {y_name} %{{y}}: %{{z:.1%}}"
            "<br>%{customdata} prompts<extra></extra>",
            showscale=False,
            row=1,
            col=column,
        )
    apply_theme(figure, f"{x_name} and {y_name}", x_name, y_name, dark, height=380)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_xaxes(title_text=x_name, row=1, col=2)
    figure.update_yaxes(type="category", showgrid=False)
    return figure
