"""Explanations of a run: maps, layers, signals, staleness and projections, each as a plot panel's value."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from analysis.correlation import DriftPairs, detect, drift_pairs
from analysis.drift import drift
from analysis.observation import distinct_signals
from analysis.plots import (
    detection_figure,
    layers_figure,
    projection_figure,
    recompute_map_figure,
    staleness_figure,
    token_map_figure,
)
from analysis.plots.detection import SIGNAL_NAMES, area_text
from analysis.probes import StalenessProbe
from analysis.projection import project
from analysis.roc import MIN_FOUND, Detection
from analysis.staleness import staleness, summarise_staleness
from analysis.timeline import timeline
from analysis.trace import Trace
from analysis.wording import counted
from app.cards import about
from app.figures import (
    NO_STEP,
    SECOND_PASS,
    STEP_AXIS,
    commits,
    is_watched,
    not_watched,
    observed_value,
    plot_value,
    policy_setting,
    variant,
)
from app.forms import entered
from app.observe import observe
from app.perform import Moment, wait_for_turn
from app.readings import LAYERS, MAP, SIGNALS, STALENESS, TOKENS, WHATIF
from app.runs import MIXED, RunRecord
from app.turns import Ticket
from app.workshop import Workshop

CHANCE = 0.5


def map_panel(record: RunRecord, example: bool = False) -> str:
    """Which positions were recomputed when, and how old K/V were, one lane and one of these at a time."""
    variants = [
        variant(recompute_map_figure(timeline(lane.trace), show), lane.label, (), index, view)
        for view, show in (("recomputed", "share"), ("age of K/V", "age"))
        for index, lane in enumerate(record.lanes)
        if lane.trace is not None and lane.trace.steps
    ]
    prompt = len(record.traces[0].prompt_ids) if record.traces else 0
    links = [STEP_AXIS, {"kind": "positions", "axis": "y", "offset": prompt}]
    return plot_value(MAP, about(record, example), 460, variants, links, NO_STEP, record)


def layers_panel(record: RunRecord) -> str:
    """Drift by layer, from the observation."""
    trace = record.observation
    if trace is None or not is_watched(record):
        return not_watched(record, LAYERS, 340)
    found = drift(trace)
    pairs = int((found.count.sum(axis=(1, 2)) > 0).sum())
    headline = [f"means over {counted(pairs, 'pair')} of successive steps"]
    return observed_value(record, LAYERS, 340, layers_figure(found), headline)


def tokens_panel(record: RunRecord) -> str:
    """Drift of every token at every step, from the observation."""
    trace = record.observation
    if trace is None or not is_watched(record):
        return not_watched(record, TOKENS, 340)
    watched = {"kind": "watched", "axis": "x", "offset": 1, "positions": commits(trace)}
    # Last, so that a point stands for its own position, not for what its step committed.
    links: list[dict[str, Any]] = [watched, {"kind": "positions", "axis": "y"}]
    return observed_value(record, TOKENS, 340, token_map_figure(trace), links=links)


def signals_panel(record: RunRecord) -> str:
    """How well entropy and its rivals find the steps that drift most, from the observation."""
    trace = record.observation
    if trace is None or not is_watched(record):
        return not_watched(record, SIGNALS, 380)
    pairs = drift_pairs([trace])
    found = _found(pairs.of_answer())
    threshold = policy_setting(record, "entropy_threshold")
    figure = detection_figure(found, None if threshold is None else float(threshold))
    steps = counted(len(pairs.drift) - pairs.num_behind, "step")
    headline = [f"within the answer, n = {steps} of {SECOND_PASS}: {_best_text(found)}"]
    if pairs.num_behind:
        every = f"all {counted(len(pairs.drift), 'step')}, with those after the end of the text"
        headline.append(f"{every}: {_best_text(_found(pairs))}")
    return observed_value(record, SIGNALS, 380, figure, headline)


def _found(pairs: DriftPairs) -> list[Detection]:
    return [one for one in (detect(pairs, signal) for signal in distinct_signals(pairs)) if one.varies]


def _best_text(found: Sequence[Detection]) -> str:
    """Which signals differ from chance, either way, and which of them finds the most if that is clear."""
    known = [detection for detection in found if detection.low == detection.low]
    if not known:
        return f"too few to tell: {MIN_FOUND} steps to find are needed"
    # One of several unrelated signals looks related more often than each of them.
    bounds = [(one, *one.bounds(len(known))) for one in known]
    above = sorted((one for one, low, _ in bounds if low > CHANCE), key=lambda one: -one.area)
    below = sorted((one for one, _, high in bounds if high < CHANCE), key=lambda one: one.area)
    if not above and not below:
        return "none differs from chance"
    text = _leading_text(above, known) if above else "none finds more than chance"
    # An alarm that is silent where drift is large tells of it as well as one that rings.
    return f"{text}; the other way round, below chance: {_areas(below)}" if below else text


def _leading_text(above: Sequence[Detection], known: Sequence[Detection]) -> str:
    """The best of the signals above chance, largest area first, and the rest of them."""
    best = above[0]
    near = [SIGNAL_NAMES[one.signal] for one in known if one is not best and not best.beats(one)]
    text = f"{SIGNAL_NAMES[best.signal]}, area {area_text(best)}"
    if near:
        text = f"no clear best: {text}, and within noise of it {', '.join(near)}"
    else:
        text = f"the most is found by {text}; no other within noise of it"
    return f"{text}; above chance too: {_areas(above[1:])}" if above[1:] else text


def _areas(detections: Sequence[Detection]) -> str:
    return ", ".join(f"{SIGNAL_NAMES[one.signal]} {area_text(one)}" for one in detections)


def staleness_panel(record: RunRecord) -> str:
    """How wrong each lane's cache was, where that has been measured."""
    variants = [
        variant(staleness_figure(staleness(trace)), record.lanes[index].label, [_stale_text(trace)], index)
        for index, trace in sorted(record.stale.items())
    ]
    empty = "Not measured for this run: it takes a full pass beside every step."
    return plot_value(
        STALENESS,
        about(record),
        360 if variants else 0,
        variants,
        [STEP_AXIS],
        empty if record.same_job else f"Not measured: {MIXED}.",
        record,
        "measure staleness" if record.same_job else "",
    )


def _stale_text(trace: Trace) -> str:
    summary = summarise_staleness([trace])
    if not summary.steps:
        return "every step was full: nothing was stale"
    flipped = "not measured" if summary.flipped != summary.flipped else f"{100 * summary.flipped:.1f} %"
    steps, found = counted(summary.steps, "partial step"), staleness(trace)
    low, middle, high = np.quantile(found.value.mean(axis=1)[~found.full], [0.25, 0.5, 0.75])
    spread = f"{middle:.1e}, quartiles {low:.1e} to {high:.1e}" if summary.steps > 1 else f"{middle:.1e}"
    return f"{steps}: median distance of V {spread}; of all choices {flipped} changed"


def whatif_panel(record: RunRecord, threshold: float, recent: int, example: bool = False) -> str:
    """Projected recomputes of every lane with another tau and k."""
    variants = []
    for index, lane in enumerate(record.lanes):
        if lane.trace is None or not lane.trace.steps:
            continue
        projected = project(lane.trace, threshold, recent)
        full, steps = int(projected.full.sum()), counted(len(projected.full), "step")
        line = (
            f"with τ {entered(threshold)}, k {recent}: projected {full} of {steps} full, "
            f"{100 * projected.recompute_ratio:.1f} % of all rows"
        )
        recorded = (
            f"recorded {int(projected.recorded_full.sum())} full, {100 * projected.recorded_ratio:.1f} %"
        )
        variants.append(variant(projection_figure(projected), lane.label, [line, recorded], index))
    return plot_value(WHATIF, about(record, example), 340, variants, [STEP_AXIS], NO_STEP, record)


def measure_staleness(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    """Run each lane again beside a full pass at every step; fills `record.stale`.

    The ticket is given back however this ends; lanes that were not finished are left out.
    """
    try:
        record.require_same_job()
        yield from wait_for_turn(ticket)
        job = record.job
        content = record.content(workshop.model(job.model))
        for index, lane in enumerate(record.lanes):
            policy = lane.spec.policy()
            for trace in observe(workshop, job.model, content, job.generation, policy, [StalenessProbe]):
                if ticket.is_stopped():
                    break
                text = f"running: comparing {lane.label} with full passes, step {len(trace.steps)}"
                yield Moment("running", text)
            if ticket.is_stopped():
                yield Moment("stopped", "stopped: staleness of the finished runs is kept", last=True)
                return
            record.stale[index] = trace
        yield Moment("done", "done: staleness measured", last=True)
    finally:
        ticket.leave()
