"""measure_speeds: time a run's policies against both baselines, taking turns, more than once."""

from collections.abc import Iterator
from typing import Any

from analysis.observe import one_token_a_step
from analysis.trace import Trace
from app.observe import observe
from app.perform import Moment, wait_for_turn
from app.runs import RunRecord, Speeds
from app.turns import Ticket
from app.workshop import Workshop
from core import POLICIES, CachePolicy, GenerationConfig, create_policy

REPEATS = 3
LONG_SECONDS = 10.0

# A decoding, and a policy by name with its config: what is equal in these decodes alike.
Case = tuple[GenerationConfig, str, Any]


def measure_speeds(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    """Fill `record.speeds`; the ticket is given back however this ends. Stopping leaves speeds unknown.

    Every case is run once to warm up, then all in turn, REPEATS times, so that a machine that slows down
    slows them all. What decodes alike is one case: its noise would pass for a difference. Where the first
    case, one token a step, takes longer than LONG_SECONDS, the first round is the only one.
    """
    try:
        record.require_same_job()
        yield from wait_for_turn(ticket)
        if not ticket.is_stopped():
            yield from _measure(workshop, record, ticket)
        if ticket.is_stopped():
            yield Moment("stopped", "stopped: speeds were not measured", last=True)
        else:
            yield Moment("done", "done: speeds measured", figures=True, last=True)
    finally:
        ticket.leave()


def _measure(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    job, repeats = record.job, REPEATS
    content = record.content(workshop.model(job.model))
    none = create_policy("none")
    labels = ["one token a step, no cache", "no cache", *(lane.label for lane in record.lanes)]
    cases = [
        _case(one_token_a_step(job.generation), none),
        *(_case(job.generation, policy) for policy in (none, *(lane.spec.policy() for lane in record.lanes))),
    ]
    named = dict(zip(reversed(cases), reversed(labels), strict=True))
    taken: dict[Case, list[float]] = {case: [] for case in cases}
    turn = 0
    while turn <= repeats:
        for case, seconds in taken.items():
            generation, policy, config = case
            which = f"run {turn} of {repeats}" if turn else "warming up"
            yield Moment("running", f"running: measuring {named[case]}, {which}")
            traces = observe(workshop, job.model, content, generation, POLICIES[policy](config))
            seconds.append(decoding_seconds(traces, ticket))
            if ticket.is_stopped():
                return
        if taken[cases[0]][0] > LONG_SECONDS:
            repeats = 1
            break
        turn += 1
    measured = [taken[case][1:] or taken[case] for case in cases]
    record.speeds = Speeds(tuple(zip(*measured, strict=True)))


def _case(generation: GenerationConfig, policy: CachePolicy) -> Case:
    return generation, policy.name, policy.config


def decoding_seconds(traces: Iterator[Trace], ticket: Ticket) -> float:
    """Plan, forward and decode seconds of one run; of a part of it once the ticket is stopped."""
    seconds = 0.0
    for trace in traces:
        seconds = float(trace.totals["seconds"] or 0)
        if ticket.is_stopped():
            break
    return seconds
