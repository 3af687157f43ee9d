"""Going: a run that does not end with the connection of the page that watches it."""

import contextvars
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial

from app.job import Job
from app.perform import Moment, failed, perform
from app.runs import RunRecord
from app.turns import Ticket
from app.workshop import Workshop


class Going:
    """One run under way: watched by the page that began it, or else carried on in a thread of its own.

    moments: those of the run, the last one marked so. away: called should the watching end before the run
    does; whoever then takes the visitor for gone stops the ticket, and with it the run.
    """

    def __init__(
        self, record: RunRecord, ticket: Ticket, moments: Iterator[Moment], away: Callable[[], None]
    ) -> None:
        self.record, self.ticket = record, ticket
        self._moments, self._away = moments, away
        self._told = Moment("running", "running: starting")

    @property
    def over(self) -> bool:
        return self._told.last

    def seen(self) -> tuple[RunRecord, Moment]:
        """The run as it is now, which further steps will not change, and the latest word on it."""
        told = self._told
        return replace(self.record, lanes=[replace(lane) for lane in self.record.lanes]), told

    def watched(self) -> Generator[Moment, None, None]:
        """The moments, each computed when it is asked for; to be called once. Closing this ends no run."""
        # A lender of GPUs knows the visitor by the context of their request.
        context = contextvars.copy_context()
        try:
            for moment in self._moments:
                self._told = moment
                yield moment
        finally:
            if not self.over:
                self._away()
                name = f"unwatched {self.record.run_id}"
                threading.Thread(target=context.run, args=(self._go_on,), name=name, daemon=True).start()

    def _go_on(self) -> None:
        for moment in self._moments:
            self._told = moment


def begin(workshop: Workshop, job: Job, visitor: str, errand: str) -> Going:
    """Join the line with a new run, in place of the visitor's run before should it still be going on."""
    before = workshop.going.get(visitor)
    if before is not None and not before.over:
        before.ticket.stop()
    record = workshop.runs.new(job, visitor)
    ticket = workshop.turns.join(visitor, errand)
    moments = _kept(workshop, visitor, record, _to_the_end(perform(workshop, record, ticket)))
    going = workshop.going[visitor] = Going(record, ticket, moments, partial(workshop.lose, visitor))
    return going


def _kept(workshop: Workshop, visitor: str, record: RunRecord, moments: Iterator[Moment]) -> Iterator[Moment]:
    """The moments; a run is kept before the page can ask for it."""
    for moment in moments:
        if moment.last and record.traces:
            workshop.runs.keep(visitor, record)
        yield moment


def _to_the_end(moments: Iterator[Moment]) -> Iterator[Moment]:
    """The moments, with a last one also where they end in an error."""
    try:
        yield from moments
    except ValueError as error:
        yield failed(error)
    except Exception as error:
        logging.getLogger(__name__).exception("a run ended in an error")
        yield failed(error)
