"""Figures for the page: each with a title, one sentence on how to read it, and what its numbers are of."""

import json
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.utils import PlotlyJSONEncoder

from analysis.correlation import correlate, drift_pairs
from analysis.plots import scatter_figure, timeline_figure, volatility_figure
from analysis.plots.scatter import ranked_lines
from analysis.timeline import timeline
from analysis.trace import Trace
from analysis.volatility import volatility
from analysis.wording import counted
from app.cards import about, model_text, rule_text
from app.readings import SCATTER, TIMELINE, VOLATILITY, Reading
from app.runs import RunRecord

MIN_PAIRS = 3
# Steps on the timeline's axis from the start, while the first of them come in.
ROOM = 12
STEP_AXIS = {"kind": "step", "axis": "x", "offset": 1, "seek": True}
NO_STEP = "no step yet"
SOON = "measured in a second pass, without a cache, once the run is decoded"
NOT_WATCHED = (
    "Drift was not measured for this run: that takes a second pass over the prompt, without a cache."
)
SECOND_PASS = "the second pass"
OBSERVED_WITH = {True: "one token a step, no cache", False: "the run's own commit rule, no cache"}


def plot_value(
    reading: Reading,
    about: str,
    height: int,
    variants: Sequence[dict[str, Any]] = (),
    links: Sequence[dict[str, Any]] = (),
    empty: str = "",
    record: RunRecord | None = None,
    action: str = "",
) -> str:
    """A plot panel's value as JSON text. variants: from `variant`, one on show at a time.

    links: what a point stands for, each {"kind": "step" (of the run), "watched" (a step of the observation),
    "positions" (of the generation) or "age" (steps since a commit)} with its place: "axis" x or y less
    "offset", or its index in the customdata, "custom". "positions" lists what each step committed; "seek":
    a click goes to the step. empty: what to say where there are no variants; action: the name of a button
    there. record: the run the figure is of, so that the page can tell when a newer one is on show.
    """
    value = {
        "title": reading.title,
        "how": reading.how,
        "terms": reading.terms,
        "about": about,
        "height": height,
        "variants": list(variants),
        "links": list(links),
        "empty": empty,
        "action": action,
        "order": None if record is None else record.order,
    }
    return json.dumps(value, cls=PlotlyJSONEncoder)


def variant(
    figure: go.Figure,
    label: str = "",
    headline: Sequence[str] = (),
    lane: int | None = None,
    view: str = "",
    steps: int | None = None,
) -> dict[str, Any]:
    """A figure of a plot panel, its name among the others, what it comes down to, the lane it is of.

    view: what of the lane it shows, where there is more than one such; steps: how many of the lane's steps
    are in it. The name also begins the headline, which goes with the figure where it is saved alone.
    """
    content = figure.to_plotly_json()
    content["layout"].pop("template", None)
    named = [label, *headline] if label else list(headline)
    parts = {"label": label, "headline": named, "lane": lane, "view": view, "steps": steps}
    return {**parts, "figure": content}


def timeline_panel(record: RunRecord, example: bool = False) -> str:
    """Rows recomputed and entropy of every step, one lane at a time."""
    variants = [
        variant(
            timeline_figure(timeline(lane.trace), room=ROOM if record.going else 0),
            lane.label,
            [_triggers(lane.trace)],
            index,
            steps=len(lane.trace.steps),
        )
        for index, lane in enumerate(record.lanes)
        if lane.trace is not None and lane.trace.steps
    ]
    return plot_value(TIMELINE, about(record, example), 300, variants, [STEP_AXIS], NO_STEP, record)


def _triggers(trace: Trace) -> str:
    ratio = 100 * (trace.totals["recompute_ratio"] or 0)
    steps = counted(len(trace.steps), "step")
    return f"{trace.totals['full_steps']} of {steps} full, {ratio:.1f} % of all rows recomputed"


def observed(record: RunRecord) -> str:
    """What the figures made from the observation are of."""
    trace = record.observation
    if trace is None:
        return ""
    one = trace.num_committed.max(initial=0) <= 1
    steps = counted(len(trace.steps), "step")
    return (
        f"Not of the run above, but of {SECOND_PASS}, a run of its own: {OBSERVED_WITH[bool(one)]} · "
        f"{steps} · {model_text(trace.model)} · prompt {len(trace.prompt_ids)} + {trace.gen_length} tokens, "
        f"batch {trace.batch_size} · {rule_text(trace.generation)}"
    )


def is_watched(record: RunRecord) -> bool:
    """Whether there is enough of an observation to draw."""
    return record.observation is not None and len(record.observation.steps) > MIN_PAIRS


def not_watched(record: RunRecord, reading: Reading, height: int) -> str:
    """The panel of a figure of the observation while there is none, or too little of it."""
    if record.going and record.job.observe != "off":
        return plot_value(reading, "", height, empty=SOON, record=record)
    return plot_value(reading, "", 0, empty=NOT_WATCHED, record=record, action="measure drift")


def observed_value(
    record: RunRecord,
    reading: Reading,
    height: int,
    figure: go.Figure,
    headline: Sequence[str] = (),
    links: Sequence[dict[str, Any]] = (),
) -> str:
    """The panel of a figure of the observation."""
    drawn = [variant(figure, "", headline)]
    return plot_value(reading, observed(record), height, drawn, links, record=record)


def scatter_panel(record: RunRecord) -> str:
    """Entropy against drift from the observation, its coefficients within the answer and over all steps."""
    trace = record.observation
    if trace is None or not is_watched(record):
        return not_watched(record, SCATTER, 340)
    pairs = drift_pairs([trace])
    ranked = correlate(pairs, ["max_entropy"])
    # Beside the run above, "this run" would be taken for it.
    headline = [line.replace("of this run", f"of {SECOND_PASS}") for line in ranked_lines(pairs, ranked)]
    figure = scatter_figure(pairs, ranked, threshold=_threshold(record))
    links = [{"kind": "watched", "custom": 0, "offset": 1, "positions": commits(trace)}]
    return observed_value(record, SCATTER, 340, figure, headline, links)


def commits(trace: Trace) -> list[list[int]]:
    """The positions that each step committed."""
    return [list(step.committed) for step in trace.steps]


def volatility_panel(record: RunRecord) -> str:
    """Drift of a token by its age from the observation, k marked where a lane has one."""
    trace = record.observation
    if trace is None or not is_watched(record):
        return not_watched(record, VOLATILITY, 340)
    measured = volatility([trace])
    recent = policy_setting(record, "recent")
    k = None if recent is None else int(recent)
    figure = volatility_figure(measured, k, float(trace.num_committed.mean()))
    return observed_value(record, VOLATILITY, 340, figure, measured.described, [{"kind": "age", "axis": "x"}])


def _threshold(record: RunRecord) -> float | None:
    value = policy_setting(record, "entropy_threshold")
    return None if value is None else float(value)


def policy_setting(record: RunRecord, name: str) -> Any:
    """A policy setting of the first lane that has it, None where none has."""
    for trace in record.traces:
        if name in trace.policy["config"]:
            return trace.policy["config"][name]
    return None
