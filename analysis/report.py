"""Report: results as one HTML file that opens without a network: figures, tables, definitions."""

import html
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import pandas as pd
import plotly.graph_objects as go
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from analysis import plots
from analysis.correlation import drift_pairs
from analysis.diagnose import diagnose
from analysis.drift import drift
from analysis.observation import SPANS, Observation, distinct_signals, summarise_drift
from analysis.report_tables import (
    bench_table,
    comparison_table,
    correlation_table,
    defaults_notes,
    run_table,
    tuning_table,
)
from analysis.resampling import MIN_GROUPS, MIN_ROWS
from analysis.results import Results, text_of
from analysis.settings import Setting, setting_texts
from analysis.staleness import staleness
from analysis.surface import surface
from analysis.timeline import timeline
from analysis.trace import Trace
from analysis.tuning import Tuning
from analysis.wording import counted, few_prompts, percent, signed, workforce

T = TypeVar("T")
# Files that a title names.
MOST_NAMED = 3
TEMPLATE = Path(__file__).with_name("report.html.j2")


@dataclass(frozen=True)
class Text:
    """What a prompt asked and what was generated, with where it belongs."""

    title: str
    prompt: str
    generated: str


@dataclass(frozen=True)
class Section:
    """One heading with what stands under it, any of them empty."""

    title: str
    notes: tuple[str, ...] = ()
    table: pd.DataFrame | None = None
    figures: tuple[go.Figure, ...] = ()
    texts: tuple[Text, ...] = ()


def render(results: Results, title: str) -> str:
    """The whole page as text. Raises ValueError where there is no result to show."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=title,
        sections=sections(results),
        environments=results.environments,
        # The library's own text; `<\\/script` keeps a string in it from ending the element.
        plotly_js=Markup(get_plotlyjs().replace("</script", "<\\/script")),
        figure_html=figure_html,
        table_html=table_html,
        workforce=workforce,
        min_groups=MIN_GROUPS,
        min_rows=MIN_ROWS,
    )


def sections(results: Results) -> list[Section]:
    """What the page shows, in its order. Raises ValueError where there is nothing."""
    found = [*_runs(results), *_observed(results), *_measured(results)]
    if not found:
        raise ValueError("results are empty; give files of run, compare, sweep, tune or bench")
    return found


def titled_figures(results: Results) -> dict[str, go.Figure]:
    """The page's figures with their heading in them, by a name fit for a file."""
    named = {}
    for number, section in enumerate(sections(results), 1):
        words = re.sub(r"[^a-z0-9]+", "-", section.title.lower())[:40].strip("-")
        text = "<br>".join(textwrap.wrap(html.escape(section.title), 110))
        title = {
            "text": text,
            "font": {"size": 14},
            "automargin": True,
            "yref": "container",
            "y": 0.98,
            "yanchor": "top",
        }
        for index, figure in enumerate(section.figures, 1):
            named[f"{number:02}-{words}-{index}"] = go.Figure(figure).update_layout(title=title)
    return named


def figure_html(figure: go.Figure) -> Markup:
    """A figure's element and script; plotly.js itself stands once in the page's head."""
    config = {"displaylogo": False, "responsive": True}
    return Markup(figure.to_html(include_plotlyjs=False, full_html=False, config=config))


def table_html(frame: pd.DataFrame) -> Markup:
    """A table of texts, escaped."""
    return Markup(frame.to_html(index=False, border=0, escape=True, classes="numbers"))


def _runs(results: Results) -> Iterable[Section]:
    for key, traces in results.runs.items():
        policy = traces[0].policy
        setting = Setting(str(policy["name"]), policy["config"])
        line, first = timeline(traces[0]), traces[0].steps[:1]
        stale = [staleness(traces[0])] if first and "flipped" in first[0].measurements else []
        yield Section(
            title=_titled(f"Runs of {setting.described}", results.sources_of_runs.get(("runs", key), [])),
            notes=(_described(traces), *diagnose(traces).findings()),
            table=run_table(traces),
            texts=tuple(_text(index, trace) for index, trace in enumerate(traces)),
            figures=(
                plots.timeline_figure(line),
                plots.recompute_map_figure(line),
                *map(plots.staleness_figure, stale),
            ),
        )


def _text(index: int, trace: Trace) -> Text:
    prompt = trace.prompt if trace.prompt is not None else f"token ids {_ids(trace.prompt_ids)}"
    generated = text_of(trace)
    written = generated if generated is not None else f"token ids {_ids(trace.tokens)}"
    return Text(f"prompt {index}", prompt, written)


def _ids(tokens: Sequence[int]) -> str:
    return ", ".join(map(str, tokens))


def _observed(results: Results) -> Iterable[Section]:
    for key, traces in results.observed.items():
        files = results.sources_of_runs.get(("observed", key), [])
        rule = traces[0].generation["unmask"]
        pairs, seen = drift_pairs(traces), summarise_drift(traces)
        ranked = replace(seen.spans["all"].correlation, without_tail=seen.spans["answer"].correlation)
        found = seen.spans["answer"].detections
        yield Section(
            title=_titled(f"Drift without a cache, {rule} rule", files),
            notes=(_described(traces), *_drift_notes(seen)),
            table=correlation_table(seen),
            figures=(
                plots.scatter_figure(pairs, ranked),
                plots.detection_figure([found[name] for name in distinct_signals(pairs.of_answer())]),
                plots.volatility_figure(seen.volatility),
                plots.layers_figure(drift(traces[0])),
            ),
        )


def _measured(results: Results) -> Iterable[Section]:
    for comparison, holds, files in _with_decoding(results, "comparison", results.comparisons):
        notes = (*holds, *defaults_notes(one.setting for one in comparison.summaries))
        yield Section(_titled("Settings side by side", files), notes, comparison_table(comparison))
    for tuning, holds, files in _with_decoding(results, "tuning", results.tunings):
        notes = (*holds, *_chosen(tuning), *defaults_notes(c.setting.label for c in tuning.candidates))
        yield Section(_titled("Tuning", files), notes, tuning_table(tuning), tuple(_tuning_figures(tuning)))
    for points, holds, files in _with_decoding(results, "bench", results.benches):
        quantities = ("decision_overhead", "partial_seconds", "full_seconds")
        figures = tuple(plots.scaling_figure(points, quantity) for quantity in quantities)
        notes = (*holds, *defaults_notes(point.setting for point in points))
        yield Section(_titled("Speed by size", files), notes, bench_table(points), figures)


def _with_decoding(
    results: Results, kind: str, found: Sequence[T]
) -> Iterable[tuple[T, tuple[str, ...], list[str]]]:
    """Each result with what its numbers hold for and the file it is from, where that is known."""
    for index, one in enumerate(found):
        files = results.sources[kind][index : index + 1] if kind in results.sources else []
        yield one, (results.decodings[kind][index],), files


def _titled(title: str, files: Sequence[str]) -> str:
    """A title with the files that it is of: those of several would read alike."""
    if not files:
        return title
    more = f" and {counted(len(files) - MOST_NAMED, 'more file')}" if len(files) > MOST_NAMED else ""
    return f"{title} ({', '.join(files[:MOST_NAMED])}{more})"


def _tuning_figures(tuning: Tuning) -> Iterable[go.Figure]:
    yield plots.pareto_figure(tuning)
    try:
        found = surface(tuning.told)
    except ValueError:
        # More or fewer than two settings vary: there is no map to draw.
        return
    yield plots.sweep_map_figure(found, tuning.goal.keep, tuning.goal.objective, budget=tuning.goal.budget)


def _described(traces: list[Trace]) -> str:
    model = traces[0].model
    steps = sum(len(trace.steps) for trace in traces)
    cut = sum(not trace.complete for trace in traces)
    runs = "1 of the runs was" if cut == 1 else f"{cut} of the runs were"
    return (
        f"{counted(len(traces), 'prompt')}, {counted(steps, 'step')}; {model['ref']} ({model['family']}), "
        f"{model['dtype']} on {model['device']}; decoding: {' '.join(setting_texts(traces[0].generation))}"
        + (f"; {runs} cut short" if cut else "")
    )


def _drift_notes(seen: Observation) -> Iterable[str]:
    """What the tables and figures of drift are of."""
    yield (
        f"{percent(seen.share_behind)} of {counted(seen.spans['all'].pairs, 'step pair')} only fill in what "
        "follows the end of the text; rows and the ROC within the answer leave them out"
    )
    beside = {name: span.correlation.plain["max_entropy"] for name, span in seen.mismatched.items()}
    if beside:
        told = ", ".join(
            f"{SPANS[name]} {signed(one.rho)} {one.interval_text}" for name, one in beside.items()
        )
        yield f"mismatched prompts, each one's max entropy beside the drift of the next: {told}"
    yield f"volatility: {'; '.join(seen.volatility.described)}"


def _chosen(tuning: Tuning) -> Iterable[str]:
    goal, best = tuning.goal, tuning.best
    prompts = max((candidate.prompts for candidate in tuning.candidates), default=0)
    yield tuning.runs
    if best is None:
        yield f"no setting keeps the budget of {goal.budget:.1%} {goal.keep}"
    else:
        costs = f"{tuning.spent}; {percent(best.loss)} of {goal.keep} lost, n = "
        found = f"{best.setting.described}, {costs}{counted(best.prompts, 'prompt')}"
        if tuning.saves:
            yield f"best within {goal.budget:.1%} of {goal.keep}: {found}"
        else:
            yield f"no measurable saving of {goal.objective} within the budget; nearest: {found}"
    yield from few_prompts(prompts)
