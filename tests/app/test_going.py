"""Going: a run outlives the connection that watched it, but not its visitor."""

import threading
from collections.abc import Callable, Iterator

import pytest

from app.going import Going, begin
from app.job import Job
from app.workshop import Workshop
from core import GenerationConfig

Make = Callable[..., Job]
MANY_STEPS = GenerationConfig(gen_length=16, block_length=8, unmask="quota", steps=16)
ENOUGH_SECONDS = 60


@pytest.fixture
def patient(workshop: Workshop) -> Iterator[Workshop]:
    """A workshop that takes nobody for gone by itself."""
    workshop.absence._seconds = 3600
    yield workshop
    for visitor in list(workshop.absence._timers):
        workshop.absence.end(visitor)


def lost_in_mid_run(workshop: Workshop, job: Job, visitor: str = "me") -> Going:
    """A run whose page is heard of no more after some steps."""
    going = begin(workshop, job, visitor, "decode")
    moments = going.watched()
    while not next(moments).grid:
        pass
    moments.close()
    return going


def settle() -> None:
    """Wait for the runs that nobody watches."""
    for thread in threading.enumerate():
        if thread.name.startswith("unwatched"):
            thread.join(ENOUGH_SECONDS)
            assert not thread.is_alive()


def test_run_ends_and_is_kept_though_nobody_watches(patient: Workshop, job: Make) -> None:
    going = lost_in_mid_run(patient, job("none", "dual", generation=MANY_STEPS))
    settle()
    record, told = going.seen()
    assert told.last
    assert told.text.startswith("done: ")
    assert [lane.state for lane in record.lanes] == ["done", "done"]
    assert patient.runs.of("me") == [going.record]
    assert len(patient.turns) == 0


def test_what_is_seen_of_a_run_stays_as_it_was(patient: Workshop, job: Make) -> None:
    going = begin(patient, job("none", generation=MANY_STEPS), "me", "decode")
    moments = going.watched()
    while not next(moments).grid:
        pass
    record, told = going.seen()
    steps = [len(trace.steps) for trace in record.traces]
    list(moments)
    assert [len(trace.steps) for trace in record.traces] == steps
    assert len(going.record.traces[0].steps) > steps[0]
    assert not told.last


@pytest.mark.parametrize("leaves", ["in time", "at once"])
def test_run_of_one_who_does_not_come_back_is_stopped_and_forgotten(
    workshop: Workshop, job: Make, leaves: str
) -> None:
    ahead = workshop.turns.join("somebody at work")
    if leaves == "in time":
        workshop.absence._seconds = 0.0
    going = begin(workshop, job("none", generation=MANY_STEPS), "me", "decode")
    moments = going.watched()
    next(moments)
    moments.close()
    if leaves == "at once":
        workshop.leave("me")
    settle()
    assert going.seen()[1].state == "stopped"
    ahead.leave()
    assert len(workshop.turns) == len(workshop.runs) == len(workshop.going) == 0


def test_one_who_comes_back_keeps_the_run(patient: Workshop, job: Make) -> None:
    lost_in_mid_run(patient, job("none", generation=MANY_STEPS))
    assert list(patient.absence._timers) == ["me"]
    patient.absence.end("me")
    settle()
    assert patient.absence._timers == {}
    assert len(patient.runs.of("me")) == 1


def test_next_run_of_a_visitor_ends_the_one_that_nobody_watches(patient: Workshop, job: Make) -> None:
    ahead = patient.turns.join("somebody at work")
    first = begin(patient, job("none", generation=MANY_STEPS), "me", "decode")
    moments = first.watched()
    next(moments)
    moments.close()
    second = begin(patient, job("dual"), "me", "decode")
    settle()
    ahead.leave()
    assert first.seen()[1].state == "stopped"
    assert list(second.watched())[-1].state == "done"
    assert patient.going["me"] is second


@pytest.mark.parametrize("error", [ValueError("no GPU for this"), RuntimeError("out of memory")])
def test_error_is_the_last_word_whoever_hears_it(
    patient: Workshop, job: Make, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    ahead = patient.turns.join("somebody at work")
    monkeypatch.setattr("app.perform.observe", fail)
    for watched in (True, False):
        going = begin(patient, job("none"), "me", "decode")
        moments = going.watched()
        next(moments)
        if watched:
            ahead.leave()
            told = list(moments)[-1]
        else:
            moments.close()
            settle()
            told = going.seen()[1]
        assert told.last
        assert told.state == "error"
        assert len(patient.turns) == 0


def test_first_run_of_every_visitor_is_their_number_one(workshop: Workshop, job: Make) -> None:
    orders = []
    for visitor in ("me", "other", "me"):
        going = begin(workshop, job("none"), visitor, "decode")
        orders.append(going.record.order)
        list(going.watched())
    assert [record.run_id for record in workshop.runs.of("me")] == ["run-2", "run-1"]
    assert [record.run_id for record in workshop.runs.of("other")] == ["run-1"]
    assert orders == sorted(set(orders))
    workshop.leave("me")
    list(begin(workshop, job("none"), "me", "decode").watched())
    assert [record.run_id for record in workshop.runs.of("me")] == ["run-1"]
