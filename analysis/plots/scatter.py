"""Figure of the paper's first observation: entropy of a step against the drift that follows it."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from analysis.correlation import SIGNALS, Correlation, DriftPairs
from analysis.plots.theme import BLUE, LOOK, apply_theme, empty_figure, step_numbers
from analysis.ranks import RankCorrelation
from analysis.wording import counted, signed

TITLE = "Entropy and the drift that follows"
MANY_POINTS = 2000
LINE = 20
LOG_SIGNALS = ("max_entropy", "mean_entropy")


def coefficient_text(name: str, result: RankCorrelation) -> str:
    """A coefficient with its interval, p and sample, or what is missing for one."""
    if not result.known:
        return f"{name} not measured (n = {result.n})"
    whose = "this run" if result.groups == 1 else f"{result.groups} prompts"
    return f"{_short_text(name, result)}, p = {result.p:.2g}, n = {result.n} steps of {whose}"


def _short_text(name: str, result: RankCorrelation) -> str:
    return f"{name} {signed(result.rho)} {result.interval_text}" if result.known else f"{name} not measured"


def ranked_lines(pairs: DriftPairs, correlation: Correlation, signal: str = "max_entropy") -> list[str]:
    """What the points come down to: within the answer, given what confounds it there, over all steps."""
    answer, behind = correlation.answer, pairs.num_behind
    name = "within the answer: Spearman" if behind else "Spearman"
    given = [_short_text("given the step", answer.given_step[signal])]
    if answer.count_varies and signal != "num_committed":
        given.append(_short_text("given the number committed", answer.partial[signal]))
    lines = [coefficient_text(name, answer.plain[signal]), "; ".join(given)]
    if behind:
        of_all = _short_text("Spearman", correlation.plain[signal])
        step = _short_text("given the step", correlation.given_step[signal])
        lines.append(f"all {counted(len(pairs.drift), 'step')}: {of_all}; {step}")
        share = f"{behind / len(pairs.drift):.0%}"
        lines.append(f"{behind} of these ({share}) only fill in what follows the end of the text")
    if hidden := int((~_has_place(pairs, signal)).sum()):
        lines.append(f"{hidden} of {counted(len(pairs.drift), 'step')} at exactly 0 not drawn")
    return lines


def scatter_figure(
    pairs: DriftPairs,
    correlation: Correlation,
    signal: str = "max_entropy",
    threshold: float | None = None,
) -> go.Figure:
    """Points (signal at t, drift between t and t+1), coloured by tokens committed, open after the answer.

    Drift and entropies are on log axes: most commits are nearly certain and would share one column.
    threshold: tau to mark, if any. The title gives the coefficients, see `ranked_lines`.
    """
    if not len(pairs.drift):
        return empty_figure(TITLE, "no pair of steps with drift yet")
    kind = go.Scattergl if len(pairs.drift) > MANY_POINTS else go.Scatter
    figure = go.Figure()
    if correlation.count_varies:
        most = float(pairs.signals["num_committed"].max())
        scale = {"cmin": 1, "cmax": most, "colorscale": "Cividis", "showscale": True}
        figure.update_layout(
            coloraxis={**scale, "colorbar": {"title": {"text": "committed"}, "thickness": 12}}
        )
    for name, where, symbol in (
        ("within the answer", pairs.in_answer, "circle"),
        ("after its end", ~pairs.in_answer, "circle-open"),
    ):
        some = pairs.at(np.flatnonzero(where))
        if len(some.drift):
            figure.add_trace(kind(**_points(some, signal, correlation.count_varies, symbol), name=name))
    figure.update_layout(showlegend=bool(pairs.num_behind))
    lines = ranked_lines(pairs, correlation, signal)
    y_title = f"drift of {pairs.positions} positions"
    if not pairs.every_position:
        y_title += " (observed only)"
    room = LINE * (len(lines) + 2)
    apply_theme(figure, "<br>".join(lines), SIGNALS[signal], y_title, height=280 + room)
    figure.update_layout(title={"y": 1, "yref": "container", "yanchor": "top", "pad_t": LINE}, margin_t=room)
    figure.update_yaxes(type="log", exponentformat="power")
    if signal in LOG_SIGNALS:
        figure.update_xaxes(type="log", exponentformat="power")
    if threshold is not None and np.isfinite(threshold) and threshold > 0:
        _mark(figure, threshold, logarithmic=signal in LOG_SIGNALS, colour=LOOK.warning)
    return figure


def _points(pairs: DriftPairs, signal: str, count_varies: bool, symbol: str) -> dict[str, Any]:
    committed, drawn = pairs.signals["num_committed"], _has_place(pairs, signal)
    colour = {"color": committed, "coloraxis": "coloraxis"} if count_varies else {"color": BLUE}
    told = (step_numbers(pairs.step), committed, pairs.prompt)
    return {
        "x": np.where(drawn, pairs.signals[signal], np.nan),
        "y": np.where(drawn, pairs.drift, np.nan),
        "mode": "markers",
        "marker": {"size": 7, "opacity": 0.8, "symbol": symbol, **colour},
        "customdata": list(zip(*(values.tolist() for values in told), strict=True)),
        "hovertemplate": "step %{customdata[0]}: %{x:.3f}, drift %{y:.2e}"
        "<br>%{customdata[1]:.0f} committed, prompt %{customdata[2]}<extra></extra>",
    }


def _has_place(pairs: DriftPairs, signal: str) -> np.ndarray:
    """Which pairs the axes have a place for, bool [n]: a logarithmic one has no 0."""
    return (pairs.drift > 0) & ((pairs.signals[signal] > 0) | (signal not in LOG_SIGNALS))


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
