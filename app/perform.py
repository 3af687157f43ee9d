"""perform: carry out a job at the model, telling after every step what has changed."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analysis.trace import Trace
from analysis.wording import counted
from app.history import LETTERS
from app.observe import observe, observe_no_cache
from app.runs import RunRecord
from app.turns import Ticket
from app.workshop import Workshop

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
    record.going, watched = True, 0.0
    try:
        known = workshop.shelf.held(record.job.model)
        if known is not None:
            # Nobody should stand in line for a refusal.
            known.encode(record.job.content(known), record.job.generation.gen_length)
        yield Moment("running", "running: starting", observation=True, flush=True)
        yield from wait_for_turn(ticket)
        if not ticket.is_stopped():
            if not workshop.shelf.holds(record.job.model):
                yield Moment("running", f"running: loading the model {record.job.model}")
            yield from _lanes(workshop, record, ticket)
            began = time.monotonic()
            yield from _observation(workshop, record, ticket)
            watched = time.monotonic() - began
    finally:
        record.going = False
        for lane in record.lanes:
            lane.state = "stopped" if lane.state == "running" else lane.state
        ticket.leave()
    # Drawing the whole run takes a while; whoever is next need not wait for it.
    yield _end(record, ticket, watched)


def wait_for_turn(ticket: Ticket) -> Iterator[Moment]:
    """Tell the place in the line until it is 0 or the visitor stops."""
    place = None
    while not ticket.wait(WAIT_SECONDS) and not ticket.is_stopped():
        if ticket.place != place:
            place = ticket.place
            ahead = "one run" if place == 1 else f"{place} runs"
            yield Moment("running", f"running: waiting for the model, {ahead} ahead of you")


def _lanes(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    job = record.job
    model = workshop.model(job.model)
    for index, lane in enumerate(record.lanes):
        if ticket.is_stopped():
            return
        which = f" ({index + 1} of {len(record.lanes)})" if len(record.lanes) > 1 else ""
        text = f"running: {lane.label}{which}"
        lane.state = "running"
        for trace in observe(workshop, job.model, job.content(model), job.generation, lane.spec.policy()):
            lane.trace = trace
            tokens = f"{int(trace.num_committed.sum())} of {trace.gen_length} tokens"
            text = f"running: {lane.label}{which}, step {len(trace.steps)}, {tokens}"
            yield Moment("running", text, grid=True, figures=True)
            if ticket.is_stopped():
                break
        lane.state = "stopped" if lane.trace and not lane.trace.complete else "done"
        if lane.trace and lane.trace.complete:
            lane.solved = workshop.grade(job.prompt, lane.trace.text)
            lane.judged = workshop.problems.judged(job.prompt, lane.solved)
        yield Moment("running", text, grid=True, figures=True, flush=True)


def _observation(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    job = record.job
    if job.observe == "off" or ticket.is_stopped():
        return
    one = job.observe == "one"
    content = job.content(workshop.model(job.model))
    for trace in observe_no_cache(workshop, job.model, content, job.generation, one_token=one):
        record.observation = trace
        yield Moment("running", drift_text(trace), observation=True)
        if ticket.is_stopped():
            return


def drift_text(observation: Trace) -> str:
    """The status line while drift is measured."""
    done = int(observation.num_committed.sum())
    return f"running: decoded; measuring drift, {done} of {observation.gen_length} tokens"


def drift_part(trace: Trace | None, one_token: bool) -> str:
    """How much of the drift was measured before a stop; a step's drift is known with the step after it."""
    if trace is None:
        return "drift was not measured"
    steps = max(0, len(trace.steps) - 1)
    if one_token:
        return f"drift measured on {steps} of {counted(trace.gen_length - 1, 'step')}"
    tokens = f"{int(trace.num_committed.sum())} of {counted(trace.gen_length, 'token')}"
    return f"drift measured on {counted(steps, 'step')}, up to {tokens}"


def failed(error: Exception) -> Moment:
    """The end of a run that came to none: what was decoded until then is shown and kept."""
    known = isinstance(error, ValueError)
    text = one_prompt(error) if known else f"{type(error).__name__} in this run; the server's log tells more"
    return Moment("error", f"error: {text}", grid=True, figures=True, observation=True, last=True)


def one_prompt(error: Exception) -> str:
    """The engine's words on a list of prompts, for the one prompt of the page."""
    return str(error).removeprefix("prompt 0: ").replace("prompt 0 ", "the prompt ")


def _end(record: RunRecord, ticket: Ticket, watched: float) -> Moment:
    if ticket.is_stopped():
        decoded = len(record.traces) == len(record.lanes) and all(trace.complete for trace in record.traces)
        text = f"stopped: {_each(record, _stopped_text)}, all kept"
        if decoded and record.job.observe != "off":
            part = drift_part(record.observation, record.job.observe == "one")
            text = f"stopped: decoding had finished, {_each(record, _stopped_text)}; {part}"
        text = text if record.traces else "stopped: left the line"
        return Moment("stopped", text, grid=True, figures=True, observation=True, last=True)
    seconds = sum(float(trace.totals["seconds"] or 0) for trace in record.traces)
    text = f"done: {_each(record, _done_text)}, in {seconds:.2f} s"
    if record.observation is not None:
        # Most of the wait, and no part of the policies' seconds.
        text += f"; then drift measured, {watched:.1f} s by the clock"
    return Moment("done", text, grid=True, figures=True, observation=True, last=True)


def _each(record: RunRecord, text_of: Callable[[Trace], str]) -> str:
    """What is said of every lane, by its letter where there are several."""
    texts = [text_of(trace) for trace in record.traces]
    if len(record.lanes) == 1:
        return ", ".join(texts)
    return "; ".join(f"{letter} {text}" for letter, text in zip(LETTERS, texts, strict=False))


def _stopped_text(trace: Trace) -> str:
    tokens = int(trace.num_committed.sum())
    return f"{counted(tokens, 'token')} decoded in {counted(len(trace.steps), 'step')}"


def _done_text(trace: Trace) -> str:
    return f"{counted(len(trace.steps), 'step')}, {int(trace.totals['full_steps'] or 0)} of them full"
