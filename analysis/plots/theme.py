"""One look for every figure: a colour-blind safe palette, room for the axis titles."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

# Okabe and Ito's palette: told apart with every common kind of colour vision.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW = "#56B4E9", "#CC79A7", "#F0E442"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY, YELLOW)
FONT = "system-ui, sans-serif"


@dataclass(frozen=True)
class Look:
    """Colours of a figure's ground; full, partial and warning mean the same in every figure."""

    background: str
    ink: str
    faint: str
    full: str
    partial: str
    warning: str


# Those of the light page, and of files; a dark page puts its own in their place (looks.js).
LOOK = Look("#ffffff", "#1f2933", "#d9dee4", VERMILION, SKY, ORANGE)


def step_numbers(steps: int | np.ndarray) -> np.ndarray:
    """Steps as figures name them, from 1 on, of a count or of a trace's own indices, which begin at 0."""
    return (np.arange(steps) if isinstance(steps, int) else np.asarray(steps)) + 1


def over_steps(figure: go.Figure, num_steps: int) -> None:
    """Let every x axis of a figure span just its steps, from the first on."""
    figure.update_xaxes(range=[0.4, num_steps + 0.6])


def zeros_text(values: np.ndarray, of: str = "") -> str:
    """A second line for the title of a logarithmic axis: how many values it has no place for. NaN was not
    observed. of: what values they are.
    """
    zeros, known = int((values == 0).sum()), int((~np.isnan(values)).sum())
    return f"<br>({zeros} of {known} {of}at exactly 0 not drawn)" if zeros else ""


def translucent(colour: str, opacity: float) -> str:
    """A hex colour as rgba text."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def apply_theme(figure: go.Figure, title: str, x_title: str, y_title: str, height: int = 340) -> go.Figure:
    """Give a figure its titles and the common look; returns the same figure."""
    figure.update_layout(
        title={"text": title, "x": 0, "xanchor": "left", "xref": "paper", "font": {"size": 14}},
        paper_bgcolor=LOOK.background,
        plot_bgcolor=LOOK.background,
        font={"family": FONT, "size": 12, "color": LOOK.ink},
        colorway=list(SERIES),
        margin={"l": 64, "r": 16, "t": 64, "b": 48},
        height=height,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        hoverlabel={"font": {"family": FONT}},
        # Zoom survives a redraw as long as this text stays the same.
        uirevision="keep",
    )
    figure.update_xaxes(gridcolor=LOOK.faint, zerolinecolor=LOOK.faint, linecolor=LOOK.faint)
    figure.update_yaxes(gridcolor=LOOK.faint, zerolinecolor=LOOK.faint, linecolor=LOOK.faint)
    figure.update_layout(xaxis_title_text=x_title, yaxis_title_text=y_title)
    return figure


def empty_figure(title: str, message: str) -> go.Figure:
    """A figure that says why there is nothing to draw."""
    figure = apply_theme(go.Figure(), title, "", "")
    figure.add_annotation(text=message, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure
