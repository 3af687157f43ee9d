"""measure_speeds: time a run's policies against both baselines, one after the other, more than once."""

from collections.abc import Iterator
from statistics import median

from analysis import TraceRecorder
from analysis.observe import one_token_a_step
from app.perform import Moment, wait_for_turn
from app.runs import RunRecord, Speeds
from app.turns import Ticket
from app.workshop import Workshop
from core import CachePolicy, GenerationConfig, LanguageModel, create_policy, stream

REPEATS = 3
LONG_SECONDS = 10.0


def measure_speeds(workshop: Workshop, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    """Fill `record.speeds`; the ticket is given back however this ends. Stopping leaves speeds unknown.

    Every case is run once to warm up and then REPEATS times; where the first case, one token a step,
    takes longer than LONG_SECONDS, its case and all others are run once each.
    """
    try:
        yield from wait_for_turn(ticket)
        if not ticket.is_stopped():
            yield from _measure(workshop.model(), record, ticket)
        if ticket.is_stopped():
            yield Moment("stopped", "stopped: speeds were not measured", last=True)
        else:
            yield Moment("done", "done: speeds measured", figures=True, last=True)
    finally:
        ticket.leave()


def _measure(model: LanguageModel, record: RunRecord, ticket: Ticket) -> Iterator[Moment]:
    job, repeats = record.job, REPEATS
    cases = [
        ("one token a step, no cache", one_token_a_step(job.generation), create_policy("none")),
        ("no cache", job.generation, create_policy("none")),
        *((lane.label, job.generation, lane.spec.policy()) for lane in record.lanes),
    ]
    found: list[float] = []
    for label, generation, policy in cases:
        yield Moment("running", f"running: measuring {label}, warming up")
        speed, seconds = time_run(model, job.prompt, generation, policy, ticket)
        if not found and seconds > LONG_SECONDS:
            repeats = 1
        speeds = [speed] if repeats == 1 else []
        while len(speeds) < repeats and not ticket.is_stopped():
            yield Moment("running", f"running: measuring {label}, run {len(speeds) + 1} of {repeats}")
            speeds.append(time_run(model, job.prompt, generation, policy, ticket)[0])
        if ticket.is_stopped():
            return
        found.append(median(speeds))
    record.speeds = Speeds(tuple(found[2:]), vanilla=found[0], parallel=found[1], repeats=repeats)


def time_run(
    model: LanguageModel, prompt: str, generation: GenerationConfig, policy: CachePolicy, ticket: Ticket
) -> tuple[float, float]:
    """Tokens a second and seconds of one run; meaningless once the ticket is stopped, which cuts it short."""
    recorder = TraceRecorder()
    for event in stream(model, [prompt], generation, policy):
        recorder.observe(event)
        if ticket.is_stopped():
            break
    totals = recorder.trace().totals
    return float(totals["tokens_per_second"] or 0), float(totals["seconds"] or 0)
