"""Explanations of a run: maps, layers, signals, staleness and projections, each as a plot panel's value."""

from collections.abc import Iterator

from analysis.correlation import Detection, detect, drift_pairs
from analysis.drift import drift
from analysis.observe import observe
from analysis.plots import (
    detection_figure,
    layers_figure,
    projection_figure,
    recompute_map_figure,
    staleness_figure,
    token_map_figure,
)
from analysis.probes import StalenessProbe
from analysis.projection import project
from analysis.staleness import staleness, summarise_staleness
from analysis.timeline import timeline
from analysis.trace import Trace
from app.cards import about
from app.figures import MIN_PAIRS, STEP_AXIS, not_watched, observed, plot_value, policy_setting, variant
from app.perform import Moment, wait_for_turn
from app.runs import RunRecord
from app.turns import Ticket
from app.workshop import Workshop

SIGNALS = ("max_entropy", "max_doubt", "num_committed", "since_full")

MAP_HOW = (
    "Every position of the canvas at every step: coloured where its K/V were recomputed, or by how old they "
    "were; dots are commits, the line parts prompt and generation."
)
LAYERS_HOW = (
    "Mean drift between consecutive steps at each layer, by kind of position: where in the network a cache "
    "goes stale. The first layer sees no context, so its vectors only move where the token itself changes."
)
TOKENS_HOW = (
    "How far each token's value vectors moved at each step: a row that stays bright belongs to a token "
    "whose cache would keep going stale, and a bright column to a step that moved everything."
)
SIGNALS_HOW = (
    "Each curve is a signal used as an alarm for the tenth of the steps that drift most: the further up and "
    "left, the more of them it finds with fewer false alarms; the diamond is τ."
)
STALENESS_HOW = (
    "The cache a policy really had at each step against a full pass over the same canvas; below, the share "
    "of the masks in play whose most likely token the full pass would have changed."
)
WHATIF_HOW = (
    "A projection, not a run: the recorded entropies and order of commits decide which steps would have been "
    "full with this τ and k. Another cache would have changed tokens and entropies too; run it to know."
)


def map_panel(record: RunRecord, example: bool = False) -> str:
    """Which positions were recomputed when, and how old K/V were, one lane at a time."""
    variants = []
    for name, show in (("recomputed", "share"), ("age of K/V", "age")):
        for index, lane in enumerate(record.lanes):
            if lane.trace is not None and lane.trace.steps:
                figure = recompute_map_figure(timeline(lane.trace), show)
                variants.append(variant(figure, f"{lane.label}: {name}", lane=index))
    prompt = len(record.traces[0].prompt_ids) if record.traces else 0
    links = [STEP_AXIS, {"kind": "positions", "axis": "y", "offset": prompt}]
    return plot_value("Recompute map", MAP_HOW, about(record, example), 460, variants, links, "no step yet")


def layers_panel(record: RunRecord) -> str:
    """Drift by layer, from the observation."""
    title, trace = "Drift by layer", record.observation
    if trace is None or len(trace.steps) <= MIN_PAIRS:
        return plot_value(title, LAYERS_HOW, "", 340, empty=not_watched(record))
    figure = layers_figure(drift(trace))
    return plot_value(title, LAYERS_HOW, observed(record), 340, [variant(figure)])


def tokens_panel(record: RunRecord) -> str:
    """Drift of every token at every step, from the observation."""
    title, trace = "Drift of each token", record.observation
    if trace is None or len(trace.steps) <= MIN_PAIRS:
        return plot_value(title, TOKENS_HOW, "", 340, empty=not_watched(record))
    links = [{"kind": "watched", "axis": "x"}, {"kind": "positions", "axis": "y"}]
    return plot_value(title, TOKENS_HOW, observed(record), 340, [variant(token_map_figure(trace))], links)


def signals_panel(record: RunRecord) -> str:
    """How well entropy and its rivals find the steps that drift most, from the observation."""
    title, trace = "Which signal finds the drift?", record.observation
    if trace is None or len(trace.steps) <= MIN_PAIRS:
        return plot_value(title, SIGNALS_HOW, "", 380, empty=not_watched(record))
    pairs = drift_pairs([trace])
    found: list[Detection] = [detect(pairs, signal) for signal in SIGNALS]
    threshold = policy_setting(record, "entropy_threshold")
    figure = detection_figure(found, None if threshold is None else float(threshold))
    best = max(found, key=lambda detection: -1 if detection.area != detection.area else detection.area)
    headline = [f"n = {found[0].n} steps; area under the curve, {best.signal} the largest: {best.area:.2f}"]
    return plot_value(title, SIGNALS_HOW, observed(record), 380, [variant(figure, "", headline)])


def staleness_panel(record: RunRecord) -> str:
    """How wrong each lane's cache was, where that has been measured."""
    title = "Staleness"
    variants = [
        variant(staleness_figure(staleness(trace)), record.lanes[index].label, [_stale_text(trace)], index)
        for index, trace in sorted(record.stale.items())
    ]
    empty = "not measured: it takes a full pass at every step of every run"
    return plot_value(title, STALENESS_HOW, about(record), 360, variants, [STEP_AXIS], empty)


def _stale_text(trace: Trace) -> str:
    summary = summarise_staleness([trace])
    if not summary.steps:
        return "every step was full: nothing was stale"
    flipped = "not measured" if summary.flipped != summary.flipped else f"{summary.flipped:.1%}"
    return f"{summary.steps} partial steps: mean distance of V {summary.value:.1e}, choices changed {flipped}"


def whatif_panel(record: RunRecord, threshold: float, recent: int, example: bool = False) -> str:
    """Projected recomputes of every lane with another tau and k."""
    variants = []
    for index, lane in enumerate(record.lanes):
        if lane.trace is None or not lane.trace.steps:
            continue
        projected = project(lane.trace, threshold, recent)
        line = (
            f"projected {int(projected.full.sum())} of {len(projected.full)} steps full, "
            f"{projected.recompute_ratio:.1%} of all rows"
        )
        recorded = f"recorded {int(projected.recorded_full.sum())} full, {projected.recorded_ratio:.1%}"
        variants.append(variant(projection_figure(projected), lane.label, [line, recorded], index))
    of = about(record, example)
    return plot_value("What if?", WHATIF_HOW, of, 340, variants, [STEP_AXIS], "no step yet")


def measure_staleness(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    """Run each lane again beside a full pass at every step; fills `record.stale`.

    The ticket is given back however this ends; lanes that were not finished are left out.
    """
    try:
        yield from wait_for_turn(ticket)
        job = record.job
        model = workshop.model(job.model)
        for index, lane in enumerate(record.lanes):
            probe = StalenessProbe(model)
            for trace in observe(model, job.content(model), job.generation, lane.spec.policy(), [probe]):
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
