"""perform: carry out a job at the model, telling after every step what has changed."""

from collections.abc import Iterator
from dataclasses import dataclass

from analysis import TraceRecorder
from analysis.observe import observe_no_cache
from app.runs import RunRecord
from app.turns import Ticket
from app.workshop import Workshop
from core import LanguageModel, StepEvent, stream

WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class Moment:
    """Something has happened. state: as in the status line; text: the status line.

    grid, figures, observation: which parts of the page have changed. flush: show them now, nothing more
    will come of this part. last: nothing follows at all.
    """

    state: str
    text: str
    grid: bool = False
    figures: bool = False
    observation: bool = False
    flush: bool = False
    last: bool = False


def perform(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    """Wait for the turn, run each lane by itself, then watch a run without a cache; fills `record`.

    The ticket is given back however this ends, also when the iterator is closed. Stopping keeps what was
    decoded: the last moment then says `stopped`. Raises ValueError for input that can't run.
    """
    try:
        yield Moment("running", "running: starting")
        yield from wait_for_turn(ticket)
        if not ticket.is_stopped():
            if not workshop.loaded:
                yield Moment("running", f"running: loading the model {workshop.ref}")
            model = workshop.model()
            yield from _lanes(model, record, ticket)
            yield from _observation(model, record, ticket)
        yield _end(record, ticket)
    finally:
        ticket.leave()


def wait_for_turn(ticket: Ticket) -> Iterator[Moment]:
    """Tell the place in the line until it is 0 or the visitor stops."""
    place = None
    while not ticket.wait(WAIT_SECONDS) and not ticket.is_stopped():
        if ticket.place != place:
            place = ticket.place
            ahead = "one visitor" if place == 1 else f"{place} visitors"
            yield Moment("running", f"running: waiting for the model, {ahead} ahead of you")


def _lanes(model: LanguageModel, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    job = record.job
    for index, lane in enumerate(record.lanes):
        if ticket.is_stopped():
            return
        recorder = TraceRecorder(decode=lambda ids: model.decode(ids) or "")
        which = f" ({index + 1} of {len(record.lanes)})" if len(record.lanes) > 1 else ""
        lane.state = "running"
        text = f"running: {lane.label}{which}"
        for event in stream(model, [job.prompt], job.generation, lane.spec.policy()):
            recorder.observe(event)
            lane.trace = trace = recorder.trace()
            if isinstance(event, StepEvent):
                step, decoded = len(trace.steps), int(trace.num_committed.sum())
                tokens = f"{decoded} of {trace.gen_length} tokens"
                text = f"running: {lane.label}{which}, step {step}, {tokens}"
                yield Moment("running", text, grid=True, figures=True)
            if ticket.is_stopped():
                break
        lane.state = "stopped" if ticket.is_stopped() and lane.trace and not lane.trace.complete else "done"
        yield Moment("running", text, grid=True, figures=True, flush=True)


def _observation(model: LanguageModel, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    job = record.job
    if job.observe == "off" or ticket.is_stopped():
        return
    one = job.observe == "one"
    rule = "one token a step" if one else "the run's own rule"
    for trace in observe_no_cache(model, job.prompt, job.generation, one_token=one):
        record.observation = trace
        text = f"running: watching drift without a cache ({rule}), step {len(trace.steps)}"
        yield Moment("running", text, observation=True)
        if ticket.is_stopped():
            return


def _end(record: RunRecord, ticket: Ticket) -> Moment:
    kept = record.traces
    steps = sum(len(trace.steps) for trace in kept)
    if ticket.is_stopped():
        tokens = sum(int(trace.num_committed.sum()) for trace in kept)
        text = f"stopped: {tokens} tokens decoded in {steps} steps are kept"
        text = text if kept else "stopped: left the line"
        return Moment("stopped", text, grid=True, figures=True, observation=True, last=True)
    seconds = sum(float(trace.totals["seconds"] or 0) for trace in kept)
    full = sum(int(trace.totals["full_steps"] or 0) for trace in kept)
    text = f"done: {steps} steps, {full} of them full, in {seconds:.2f} s"
    return Moment("done", text, grid=True, figures=True, observation=True, last=True)
