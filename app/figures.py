"""Figures for the page: each with a title, one sentence on how to read it, and what its numbers are of."""

import json
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.utils import PlotlyJSONEncoder

from analysis.correlation import correlate, drift_pairs
from analysis.plots import scatter_figure, timeline_figure, volatility_figure
from analysis.plots.scatter import coefficient_text
from analysis.timeline import timeline
from analysis.trace import Trace
from analysis.volatility import volatility
from app.cards import about, model_text, rule_text
from app.runs import RunRecord

MIN_PAIRS = 3
STEP_AXIS = {"kind": "step", "axis": "x", "seek": True}
OBSERVED_WITH = {True: "one token a step, no cache", False: "the run's own commit rule, no cache"}

TIMELINE_HOW = (
    "One bar a step, as tall as the rows it recomputed; below it the largest entropy among the tokens the "
    "step committed: above τ, the next step of EntropyCache is a full one. Click a bar to go to its step."
)
SCATTER_HOW = (
    "One point a step of a run without a cache over the same prompt: entropy of what the step committed "
    "against how far the value vectors a cache would keep then moved; its colour is how many tokens it "
    "committed."
)
VOLATILITY_HOW = (
    "How far a token's value vectors still move in each step after it was unmasked, in a run without a "
    "cache: EntropyCache recomputes the k newest tokens because these move most. Age 0 is the jump from mask "
    "to token."
)


def plot_value(
    title: str,
    how: str,
    about: str,
    height: int,
    variants: Sequence[dict[str, Any]] = (),
    links: Sequence[dict[str, Any]] = (),
    empty: str = "",
) -> str:
    """A plot panel's value as JSON text. variants: from `variant`, one on show at a time.

    links: what a point stands for, each {"kind": "step" (of the run), "watched" (a step of the observation)
    or "positions" (of the generation)} with its place: "axis" x or y less "offset", or its index in the
    customdata, "custom". "positions" lists what each step committed; "seek": a click goes to the step.
    """
    value = {
        "title": title,
        "how": how,
        "about": about,
        "height": height,
        "variants": list(variants),
        "links": list(links),
        "empty": empty,
    }
    return json.dumps(value, cls=PlotlyJSONEncoder)


def variant(
    figure: go.Figure, label: str = "", headline: Sequence[str] = (), lane: int | None = None
) -> dict[str, Any]:
    """A figure of a plot panel, its name among the others, what it comes down to, the lane it is of."""
    content = figure.to_plotly_json()
    content["layout"].pop("template", None)
    return {"label": label, "headline": list(headline), "lane": lane, "figure": content}


def timeline_panel(record: RunRecord, example: bool = False) -> str:
    """Rows recomputed and entropy of every step, one lane at a time."""
    variants = [
        variant(_timeline(lane.trace), lane.label, [_triggers(lane.trace)], index)
        for index, lane in enumerate(record.lanes)
        if lane.trace is not None and lane.trace.steps
    ]
    return plot_value(
        "Recompute timeline", TIMELINE_HOW, about(record, example), 300, variants, [STEP_AXIS], "no step yet"
    )


def _timeline(trace: Trace) -> go.Figure:
    figure = timeline_figure(timeline(trace))
    figure.update_traces(width=0.85, selector={"type": "bar"})
    # Steps keep their place while the first of them come in.
    figure.update_xaxes(range=[-0.6, max(len(trace.steps), 12) - 0.4])
    return figure


def _triggers(trace: Trace) -> str:
    totals = trace.totals
    ratio = totals["recompute_ratio"] or 0
    return (
        f"{totals['full_steps']} of {totals['steps']} steps full, {100 * ratio:.1f} % of all rows recomputed"
    )


def observed(record: RunRecord) -> str:
    """What the figures made from the observation are of."""
    trace = record.observation
    if trace is None:
        return ""
    one = trace.num_committed.max(initial=0) <= 1
    return (
        f"Not of the run above: a run of its own, {OBSERVED_WITH[bool(one)]} · {len(trace.steps)} steps · "
        f"{model_text(trace)} · "
        f"prompt {len(trace.prompt_ids)} + {trace.gen_length} tokens · {rule_text(trace)}"
    )


def not_watched(record: RunRecord) -> str:
    """Why there is no observation, or not enough of one yet."""
    running = any(lane.state in ("waiting", "running") for lane in record.lanes)
    if record.job.observe == "off":
        return "drift is not watched in this run"
    return "watched once the run is done" if running else "too little was watched before the stop"


def scatter_panel(record: RunRecord) -> str:
    """Entropy against drift from the observation, Spearman plain and given the number committed."""
    title, trace = "Entropy against drift", record.observation
    if trace is None or len(trace.steps) <= MIN_PAIRS:
        return plot_value(title, SCATTER_HOW, "", 340, empty=not_watched(record))
    pairs = drift_pairs([trace])
    ranked = correlate(pairs, ["max_entropy"])
    headline = [coefficient_text("Spearman", ranked.plain["max_entropy"])]
    if ranked.count_varies:
        headline.append(coefficient_text("given the number committed", ranked.partial["max_entropy"]))
    else:
        headline.append("every step committed as many, so that number explains nothing here")
    figure = scatter_figure(pairs, ranked, threshold=_threshold(record))
    links = [{"kind": "watched", "custom": 0, "positions": [list(step.committed) for step in trace.steps]}]
    return plot_value(title, SCATTER_HOW, observed(record), 340, [variant(figure, "", headline)], links)


def volatility_panel(record: RunRecord) -> str:
    """Drift of a token by its age from the observation, k marked where a lane has one."""
    title, trace = "Volatility after unmasking", record.observation
    if trace is None or len(trace.steps) <= MIN_PAIRS:
        return plot_value(title, VOLATILITY_HOW, "", 340, empty=not_watched(record))
    measured = volatility([trace])
    recent = policy_setting(record, "recent")
    k = None if recent is None else int(recent)
    settled = measured.settled_age
    headline = [
        "no plateau within this run" if settled is None else f"settles after {settled} steps",
    ]
    figure = volatility_figure(measured, k, float(trace.num_committed.mean()))
    return plot_value(title, VOLATILITY_HOW, observed(record), 340, [variant(figure, "", headline)])


def _threshold(record: RunRecord) -> float | None:
    value = policy_setting(record, "entropy_threshold")
    return None if value is None else float(value)


def policy_setting(record: RunRecord, name: str) -> Any:
    """A policy setting of the first lane that has it, None where none has."""
    for trace in record.traces:
        if name in trace.policy["config"]:
            return trace.policy["config"][name]
    return None
