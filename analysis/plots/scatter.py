"""Figure of the paper's first observation: entropy of a step against the drift that follows it."""

import numpy as np
import plotly.graph_objects as go

from analysis.correlation import SIGNALS, Correlation, DriftPairs
from analysis.plots.theme import BLUE, apply_theme, empty_figure, look, step_numbers
from analysis.ranks import RankCorrelation

TITLE = "Entropy and the drift that follows"
MANY_POINTS = 2000
LOG_SIGNALS = ("max_entropy", "mean_entropy")


def coefficient_text(name: str, result: RankCorrelation) -> str:
    """A coefficient with its interval, p and sample, or what is missing for one."""
    if not result.known:
        return f"{name} not measured (n = {result.n})"
    interval = f"[{result.low:+.2f}, {result.high:+.2f}]"
    whose = "this run" if result.groups == 1 else f"{result.groups} prompts"
    return f"{name} {result.rho:+.2f} {interval}, p = {result.p:.2g}, n = {result.n} steps of {whose}"


def scatter_figure(
    pairs: DriftPairs,
    correlation: Correlation,
    signal: str = "max_entropy",
    threshold: float | None = None,
    dark: bool = False,
) -> go.Figure:
    """Points (signal at t, drift between t and t+1), coloured by tokens committed.

    Drift and entropies are on log axes: most commits are nearly certain and would share one column.
    threshold: tau to mark, if any. The title gives the coefficient plain and given the number committed.
    """
    if not len(pairs.drift):
        return empty_figure(TITLE, "no pair of steps with drift yet", dark)
    committed = pairs.signals["num_committed"]
    kind = go.Scattergl if len(pairs.drift) > MANY_POINTS else go.Scatter
    figure = go.Figure(
        kind(
            x=_positive(pairs.signals[signal]) if signal in LOG_SIGNALS else pairs.signals[signal],
            y=_positive(pairs.drift),
            mode="markers",
            marker={
                "color": committed if correlation.count_varies else BLUE,
                "colorscale": "Cividis",
                "size": 7,
                "opacity": 0.8,
                "showscale": correlation.count_varies,
                "colorbar": {"title": {"text": "committed"}, "thickness": 12},
            },
            customdata=list(
                zip(step_numbers(pairs.step).tolist(), committed.tolist(), pairs.prompt.tolist(), strict=True)
            ),
            hovertemplate="step %{customdata[0]}: %{x:.3f}, drift %{y:.2e}"
            "<br>%{customdata[1]:.0f} committed, prompt %{customdata[2]}<extra></extra>",
        )
    )
    lines = [coefficient_text("Spearman", correlation.plain[signal])]
    if correlation.count_varies and signal != "num_committed":
        lines.append(coefficient_text("given the number committed", correlation.partial[signal]))
    y_title = f"drift of {pairs.positions} positions"
    if not pairs.every_position:
        y_title += " (observed only)"
    apply_theme(figure, "<br>".join(lines), SIGNALS[signal], y_title, dark)
    figure.update_yaxes(type="log", exponentformat="power")
    if signal in LOG_SIGNALS:
        figure.update_xaxes(type="log", exponentformat="power")
    if threshold is not None and np.isfinite(threshold) and threshold > 0:
        _mark(figure, threshold, logarithmic=signal in LOG_SIGNALS, colour=look(dark).warning)
    return figure


def _positive(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, values, np.nan)


def _mark(figure: go.Figure, threshold: float, logarithmic: bool, colour: str) -> None:
    figure.add_vline(x=threshold, line={"dash": "dash", "color": colour})
    # On a log axis a line stands at its value, but a text at the logarithm of its value.
    at = float(np.log10(threshold)) if logarithmic else threshold
    figure.add_annotation(
        text=f"τ = {threshold:g}",
        x=at,
        y=1,
        yref="paper",
        xanchor="left",
        yanchor="top",
        showarrow=False,
        xshift=4,
    )
