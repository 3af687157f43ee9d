"""Figure of how a step's cost or a policy's decisions scale with the prompt."""

from collections.abc import Sequence

import plotly.graph_objects as go

from analysis.bench_point import BenchPoint
from analysis.plots.theme import SERIES, apply_theme, empty_figure

QUANTITIES = {
    "decision_overhead": "decisions, share of the run",
    "partial_seconds": "seconds of a partial step",
    "full_seconds": "seconds of a full step",
    "plan_seconds": "seconds of a decision",
    "positions_per_second": "generated positions per second",
}


def scaling_figure(points: Sequence[BenchPoint], quantity: str = "decision_overhead") -> go.Figure:
    """A line for each setting, model and batch over prompt length, both axes logarithmic.

    Raises ValueError for a quantity that is not one of QUANTITIES.
    """
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity is {quantity!r}; allowed: {', '.join(QUANTITIES)}")
    lines: dict[str, list[BenchPoint]] = {}
    models = {point.model for point in points}
    batches = {point.batch for point in points}
    for point in points:
        name = point.setting + (f", {point.model}" if len(models) > 1 else "")
        name += f", batch {point.batch}" if len(batches) > 1 else ""
        if getattr(point, quantity):
            lines.setdefault(name, []).append(point)
    title = f"{QUANTITIES[quantity].capitalize()} by prompt length"
    if not lines:
        return empty_figure(title, "not measured")
    figure = go.Figure()
    for index, (name, of_line) in enumerate(lines.items()):
        ordered = sorted(of_line, key=lambda point: point.prompt_length)
        figure.add_scatter(
            x=[point.prompt_length for point in ordered],
            y=[getattr(point, quantity) for point in ordered],
            mode="lines+markers",
            name=name,
            line={"color": SERIES[index % len(SERIES)], "dash": ("solid", "dash", "dot")[index // 7 % 3]},
            hovertemplate=f"%{{x}} prompt tokens: %{{y:.3g}}<extra>{name}</extra>",
        )
    apply_theme(figure, title, "prompt tokens", QUANTITIES[quantity])
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log", tickformat=".2~p" if quantity == "decision_overhead" else None)
    return figure
