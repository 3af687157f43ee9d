"""Report: results as one HTML file that opens without a network: figures, tables, definitions."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from analysis import plots
from analysis.correlation import correlate, detect, drift_pairs
from analysis.cost import cost
from analysis.diagnose import diagnose
from analysis.drift import drift
from analysis.results import Results
from analysis.staleness import staleness
from analysis.surface import surface
from analysis.timeline import timeline
from analysis.trace import Trace
from analysis.tuning import Tuning
from analysis.volatility import volatility

TEMPLATE = Path(__file__).with_name("report.html.j2")


@dataclass(frozen=True)
class Section:
    """One heading with what stands under it, any of them empty."""

    title: str
    notes: tuple[str, ...] = ()
    table: pd.DataFrame | None = None
    figures: tuple[go.Figure, ...] = ()


def render(results: Results, title: str) -> str:
    """The whole page as text. Raises ValueError where there is no result to show."""
    sections = [*_runs(results), *_observed(results), *_measured(results)]
    if not sections:
        raise ValueError("results are empty; give files of run, compare, tune or bench")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=title,
        sections=sections,
        environments=results.environments,
        # The library's own text; `<\\/script` keeps a string in it from ending the element.
        plotly_js=Markup(get_plotlyjs().replace("</script", "<\\/script")),
        figure_html=figure_html,
        table_html=table_html,
    )


def figure_html(figure: go.Figure) -> Markup:
    """A figure's element and script; plotly.js itself stands once in the page's head."""
    return Markup(figure.to_html(include_plotlyjs=False, full_html=False, config={"displaylogo": False}))


def table_html(frame: pd.DataFrame) -> Markup:
    """A table with numbers in four significant digits; texts are escaped."""

    def shown(value: object) -> str:
        if value is None or value != value:
            return "not measured"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    texts = frame.map(shown)
    return Markup(texts.to_html(index=False, border=0, escape=True, classes="numbers"))


def _runs(results: Results) -> Iterable[Section]:
    for label, traces in results.runs.items():
        line, first = timeline(traces[0]), traces[0].steps[:1]
        stale = [staleness(traces[0])] if first and "flipped" in first[0].measurements else []
        yield Section(
            title=f"Runs of {label}",
            notes=(_described(traces), *diagnose(traces).findings()),
            table=pd.DataFrame([_costs(index, trace) for index, trace in enumerate(traces)]),
            figures=(
                plots.timeline_figure(line),
                plots.recompute_map_figure(line),
                *map(plots.staleness_figure, stale),
            ),
        )


def _costs(index: int, trace: Trace) -> dict[str, object]:
    values = {name: value for name, value in vars(cost(trace)).items() if name != "seconds_by_part"}
    return {"prompt": index, "prompt tokens": len(trace.prompt_ids), **values}


def _observed(results: Results) -> Iterable[Section]:
    for rule, traces in results.observed.items():
        pairs = drift_pairs(traces)
        result, curve = correlate(pairs), volatility(traces)
        detections = [detect(pairs, name) for name in ("max_entropy", "max_doubt", "num_committed")]
        yield Section(
            title=f"Drift without a cache, {rule} rule",
            notes=(_described(traces), _settled(curve.settled_age, curve.recent)),
            table=result.to_frame(),
            figures=(
                plots.scatter_figure(pairs, result),
                plots.detection_figure(detections),
                plots.volatility_figure(curve),
                plots.layers_figure(drift(traces[0])),
            ),
        )


def _measured(results: Results) -> Iterable[Section]:
    for comparison in results.comparisons:
        yield Section("Settings side by side", table=comparison.to_frame())
    for tuning in results.tunings:
        yield Section("Tuning", (_chosen(tuning),), tuning.to_frame(), tuple(_tuning_figures(tuning)))
    for points in results.benches:
        quantities = ("decision_overhead", "partial_seconds", "full_seconds")
        figures = tuple(plots.scaling_figure(points, quantity) for quantity in quantities)
        yield Section("Speed by size", table=pd.DataFrame([vars(point) for point in points]), figures=figures)


def _tuning_figures(tuning: Tuning) -> Iterable[go.Figure]:
    yield plots.pareto_figure(tuning)
    try:
        found = surface(tuning.candidates)
    except ValueError:
        # More or fewer than two settings vary: there is no map to draw.
        return
    yield plots.sweep_map_figure(found, tuning.goal.keep)


def _described(traces: list[Trace]) -> str:
    model = traces[0].model
    steps = sum(len(trace.steps) for trace in traces)
    cut = sum(not trace.complete for trace in traces)
    return (
        f"{len(traces)} prompts, {steps} steps; {model['ref']} ({model['family']}), {model['dtype']} on "
        f"{model['device']}" + (f"; {cut} of the runs were cut short" if cut else "")
    )


def _settled(age: int | None, recent: int | None) -> str:
    if age is None:
        return "volatility: no plateau within the ages observed"
    return f"volatility: within noise of its plateau from {age} steps after unmasking, k = {recent}"


def _chosen(tuning: Tuning) -> str:
    spent = f"{tuning.measured} of the full grid's {tuning.full_grid} runs"
    if tuning.best is None:
        return f"{spent}; no setting keeps the budget of {tuning.goal.budget:.1%} {tuning.goal.keep}"
    best = tuning.best
    return (
        f"{spent}; best within {tuning.goal.budget:.1%} of {tuning.goal.keep}: {best.setting.label}, "
        f"{best.cost:.1%} of the {tuning.goal.objective} without a cache, {best.loss:.1%} lost, "
        f"n = {best.prompts}"
    )
