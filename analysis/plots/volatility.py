"""Figure of the paper's second observation: tokens keep moving for some steps after their unmasking."""

import numpy as np
import plotly.graph_objects as go

from analysis.plots.theme import LOOK, apply_theme, empty_figure, translucent, zeros_text
from analysis.volatility import TOKENS, Volatility

TITLE = "Drift of a token by steps since its unmasking"


def volatility_figure(volatility: Volatility, recent: int | None = None, pace: float = 1.0) -> go.Figure:
    """Mean drift by age with its interval, log axis; age 0 is the jump from the mask's vectors.

    recent: EntropyCache's k, marked at the age k / pace it reaches at `pace` tokens a step.
    """
    if not len(volatility.ages):
        return empty_figure(TITLE, "no token old enough yet")

    def positive(values: np.ndarray) -> np.ndarray:
        return np.where(values > 0, values, np.nan)

    band = np.concatenate((positive(volatility.high), positive(volatility.low)[::-1]))
    percent = f"{volatility.level:.0%}"
    figure = go.Figure(
        go.Scatter(
            x=np.concatenate((volatility.ages, volatility.ages[::-1])),
            y=band,
            fill="toself",
            fillcolor=translucent(LOOK.partial, 0.3),
            line={"width": 0},
            hoverinfo="skip",
            name=f"{percent} interval",
        )
    )
    figure.add_scatter(
        x=volatility.ages,
        y=positive(volatility.mean),
        customdata=volatility.count,
        mode="lines+markers",
        line={"color": LOOK.ink, "width": 1.5},
        marker={"size": 4},
        name="mean" if volatility.tokens == "all" else f"mean of {TOKENS[volatility.tokens]}s",
        hovertemplate="age %{x}: %{y:.2e}<br>%{customdata} tokens<extra></extra>",
    )
    if recent is not None and pace > 0:
        last = float(volatility.ages[-1])
        figure.add_vline(
            x=min(recent / pace, last),
            line={"color": LOOK.warning, "dash": "dash"},
            annotation_text=f"k = {recent}" + (" lies beyond" if recent / pace > last else ""),
            annotation_xshift=4,
        )
    if volatility.settled_age is not None:
        figure.add_vline(
            x=volatility.settled_age,
            line={"color": LOOK.ink, "dash": "dot"},
            annotation_text=f"plateau from {volatility.settled_age}",
            annotation_position="bottom right",
            annotation_xshift=4,
        )
    y_title = f"drift{zeros_text(volatility.mean)}"
    apply_theme(figure, TITLE, "steps since unmasking", y_title)
    figure.update_yaxes(type="log", exponentformat="power")
    return figure
