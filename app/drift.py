"""measure_drift: the pass without a cache behind the drift figures, for a run that was not watched."""

from collections.abc import Iterator

from app.observe import observe_no_cache
from app.perform import Moment, drift_part, drift_text, wait_for_turn
from app.runs import RunRecord
from app.turns import Ticket
from app.workshop import Workshop


def measure_drift(
    workshop: Workshop, record: RunRecord, ticket: Ticket, one_token: bool = True
) -> Iterator[Moment]:
    """Fill `record.observation` from the start; one_token: see observe_no_cache.

    The ticket is given back however this ends; what was watched before a stop is kept.
    """
    try:
        yield from wait_for_turn(ticket)
        job = record.job
        # The ids that were decoded: a file's prompt may be known as ids only.
        prompt = list(record.traces[0].prompt_ids)
        for observation in observe_no_cache(workshop, job.model, prompt, job.generation, one_token):
            if ticket.is_stopped():
                part = drift_part(record.observation, one_token)
                yield Moment("stopped", f"stopped: {part}", last=True)
                return
            record.observation = observation
            yield Moment("running", drift_text(observation), observation=True)
        yield Moment("done", "done: drift measured", last=True)
    finally:
        ticket.leave()
