"""Figure of cost and loss over two settings, one above the other."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.plots.theme import apply_theme
from analysis.surface import Surface

SYMBOLS = {"entropy_threshold": "τ (nats)", "recent": "k"}
# Fields on an axis up to which each has room for more than its share, also on a phone; pixels of a field.
ROOMY, TALL, FLAT, AROUND = 6, 56, 26, 150
# A loss below this is never bright, however small the largest is.
LITTLE = 0.01


def sweep_map_figure(
    surface: Surface,
    keep: str = "agreement",
    objective: str = "seconds",
    num_prompts: int | None = None,
    budget: float = 0.0,
) -> go.Figure:
    """Two heat maps over the same settings: cost as a share of no cache, and what was lost.

    Where there is room each field also tells its range and its prompts. num_prompts: how many there are in
    all, the most of any field unless given: measured on fewer, a loss is the least that it can come to.
    budget: the loss that was allowed; losses are coloured from 0 to it at least, so that little looks little.
    """
    whole = int(surface.prompts.max()) if num_prompts is None else num_prompts
    names = (f"{objective}, share of no cache: dark is cheap", f"{keep} lost: dark is little")
    x_name, y_name = (SYMBOLS.get(name, name) for name in (surface.x_name, surface.y_name))
    roomy = max(surface.cost.shape) <= ROOMY
    height = AROUND + 2 * len(surface.y) * (TALL if roomy else FLAT)
    space = 70 / height
    figure = make_subplots(rows=2, cols=1, subplot_titles=names, shared_xaxes=True, vertical_spacing=space)
    x, y = ([f"{value}" for value in values] for values in (surface.x, surface.y))
    loss = np.maximum(surface.loss, 0.0)
    fewer = np.where(surface.prompts < whole, "≥ ", "")
    exact = np.full(fewer.shape, "")
    panels = (
        (surface.cost, exact, _costs(surface, roomy), _span(surface.cost)),
        (loss, fewer, _losses(surface, loss, fewer, roomy), (0.0, max(_span(loss)[1], budget, LITTLE))),
    )
    for row, (values, least, text, (dark, bright)) in enumerate(panels, start=1):
        figure.add_heatmap(
            z=values,
            x=x,
            y=y,
            text=text,
            customdata=np.dstack((surface.prompts, least)),
            colorscale="Cividis",
            zmin=dark,
            zmax=bright,
            texttemplate="%{text}",
            # Unless told, letters shrink until the widest text fits its field.
            textfont={"size": 11} if roomy else None,
            hovertemplate=f"{x_name} %{{x}}, {y_name} %{{y}}: %{{customdata[1]}}%{{z:.1%}}"
            "<br>%{customdata[0]} prompts<extra></extra>",
            showscale=False,
            xgap=1,
            ygap=1,
            row=row,
            col=1,
        )
    apply_theme(figure, f"{x_name} and {y_name}", "", y_name, height=height)
    figure.update_xaxes(type="category", showgrid=False, showticklabels=True)
    figure.update_xaxes(title_text=x_name, row=2, col=1)
    figure.update_yaxes(type="category", showgrid=False, title_text=y_name)
    return figure


def _span(values: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest known value."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def _costs(surface: Surface, roomy: bool) -> np.ndarray:
    def told(cost: float, low: float, high: float, prompts: int) -> str:
        if np.isnan(cost):
            return ""
        spread = "" if np.isnan(low) else f"<br>{100 * low:.0f}–{100 * high:.0f}"
        return f"<b>{cost:.0%}</b>" + (f"{spread}<br>n {prompts}" if roomy else "")

    return np.vectorize(told, otypes=[object])(surface.cost, surface.low, surface.high, surface.prompts)


def _losses(surface: Surface, loss: np.ndarray, fewer: np.ndarray, roomy: bool) -> np.ndarray:
    def told(loss: float, least: str, prompts: int) -> str:
        if np.isnan(loss):
            return ""
        return f"<b>{least}{loss:.0%}</b>" + (f"<br>n {prompts}" if roomy else "")

    return np.vectorize(told, otypes=[object])(loss, fewer, surface.prompts)
