"""Pacing: the beat is kept whatever comes between, and nothing is made up for in a burst."""

from collections.abc import Callable

import pytest

from app.job import Job
from app.pacing import GRID_HZ, Pace
from app.perform import failed, perform
from app.screen import Parts, Screen
from app.workshop import Workshop


def times_due(pace: Pace, now: list[float], until: float, step: float) -> list[float]:
    due = []
    while now[0] < until:
        if pace.due():
            due.append(now[0])
        now[0] += step
    return due


@pytest.mark.parametrize("step", [0.001, 0.011, 0.03, 0.05, 0.07, 0.083])
def test_beat_is_kept_with_steps_of_any_length_below_it(step: float) -> None:
    now = [0.0]
    due = times_due(Pace(12.0, clock=lambda: now[0]), now, 100, step)
    assert 1195 <= len(due) <= 1201


def test_steps_slower_than_the_beat_are_all_shown() -> None:
    now = [0.0]
    due = times_due(Pace(12.0, clock=lambda: now[0]), now, 10, 0.125)
    assert len(due) == 80


@pytest.mark.parametrize("step", [0.001, 0.008, 0.025, 0.041, 0.06, 0.07, 0.083])
def test_tokens_are_sent_at_least_twelve_times_a_second_where_there_are_as_many_steps(step: float) -> None:
    now = [0.0]
    due = times_due(Pace(GRID_HZ, clock=lambda: now[0]), now, 100, step)
    assert len(due) >= 1200


def test_missed_beats_are_not_made_up_for() -> None:
    now = [0.0]
    pace = Pace(12.0, clock=lambda: now[0])
    times_due(pace, now, 1, 0.01)
    now[0] += 5
    assert len(times_due(pace, now, 7, 0.01)) <= 13


def test_slow_drawing_before_the_first_beat_counts_too() -> None:
    now = [0.0]
    pace = Pace(2.0, clock=lambda: now[0])
    pace.took(1.0)
    assert not pace.due()
    now[0] = 4.01
    assert pace.due()


def test_status_line_and_tokens_share_their_messages(workshop: Workshop, job: Callable[..., Job]) -> None:
    """One message a beat, not two; nothing of either is lost at the end."""
    parts = Parts(*["status", "grid", "cards", "timeline", "scatter", "volatility", "shown"])
    record = workshop.runs.new(job("none", "dual", observe="one"))
    screen = Screen(record, workshop.texts_of, parts)
    for moment in perform(workshop, record, workshop.turns.join("me")):
        update = screen.updates(moment)
        if moment.grid:
            assert ("grid" in update) or "status" not in update
        if moment.last:
            assert moment.text in update["status"]
            assert '"whole": true' in update["grid"]


def test_a_run_that_came_to_nothing_still_says_why(workshop: Workshop, job: Callable[..., Job]) -> None:
    parts = Parts(*["status", "grid", "cards", "timeline", "scatter", "volatility", "shown"])
    screen = Screen(workshop.runs.new(job("none")), workshop.texts_of, parts)
    update = screen.updates(failed(ValueError("prompt 0: too long")))
    assert "error: too long" in update["status"]
    assert "grid" not in update
