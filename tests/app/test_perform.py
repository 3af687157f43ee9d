"""perform: each lane in turn, stopped within a step, the place in line always given back."""

from collections.abc import Callable

import pytest

from app.job import Job, LaneSpec
from app.perform import perform
from app.runs import RunRecord
from app.speeds import measure_speeds
from app.workshop import Workshop
from core import GenerationConfig

Make = Callable[..., Job]


def carry_out(workshop: Workshop, job: Job) -> tuple[RunRecord, list]:
    record = workshop.runs.new(job)
    moments = list(perform(workshop, record, workshop.turns.join("me")))
    return record, moments


def test_lanes_run_one_after_the_other_and_end_done(workshop: Workshop, job: Make) -> None:
    record, moments = carry_out(workshop, job("entropy", "none", "dual"))
    assert moments[-1].last
    assert moments[-1].text.startswith("done: ")
    assert [lane.state for lane in record.lanes] == ["done"] * 3
    assert all(trace.complete for trace in record.traces)
    assert len(workshop.turns) == 0


def test_observation_is_a_run_without_a_cache_one_token_a_step(workshop: Workshop, job: Make) -> None:
    record, _ = carry_out(workshop, job("entropy", observe="one"))
    assert record.observation is not None
    assert record.observation.policy["name"] == "none"
    assert set(record.observation.num_committed) == {1}
    assert "value_drift" in record.observation.steps[1].measurements


def test_observation_can_follow_the_runs_own_rule(workshop: Workshop, job: Make) -> None:
    settings = GenerationConfig(gen_length=16, block_length=8, unmask="quota", steps=4)
    record, _ = carry_out(workshop, job("entropy", observe="own", generation=settings))
    assert record.observation is not None
    assert len(record.observation.steps) == 4


def test_stop_in_mid_run_keeps_what_was_decoded(workshop: Workshop, job: Make) -> None:
    record = workshop.runs.new(job("none", "dual", observe="one"))
    ticket = workshop.turns.join("me")
    moments = []
    for moment in perform(workshop, record, ticket):
        moments.append(moment)
        if moment.grid and len(record.traces[0].steps) == 3:
            ticket.stop()
    first = record.traces[0]
    assert len(record.traces) == 1
    assert len(first.steps) == 3
    assert not first.complete
    assert record.observation is None
    assert record.lanes[0].state == "stopped"
    assert moments[-1].text.startswith("stopped: ")


def test_closing_in_mid_run_gives_the_turn_back(workshop: Workshop, job: Make) -> None:
    record = workshop.runs.new(job("none"))
    running = perform(workshop, record, workshop.turns.join("me"))
    while not next(running).grid:
        pass
    running.close()
    assert len(workshop.turns) == 0


def test_one_who_waits_sees_the_place_and_can_leave(workshop: Workshop, job: Make) -> None:
    ahead = workshop.turns.join("other")
    ticket = workshop.turns.join("me")
    waiting = perform(workshop, workshop.runs.new(job("none")), ticket)
    next(waiting)
    assert "one visitor ahead" in next(waiting).text
    ticket.stop()
    assert next(waiting).text == "stopped: left the line"
    assert list(waiting) == []
    assert ahead.place == 0


def test_prompt_over_the_context_is_refused_and_frees_the_turn(workshop: Workshop) -> None:
    long = Job("word " * 400, (LaneSpec("none", ()),), GenerationConfig(gen_length=16, block_length=8), "off")
    with pytest.raises(ValueError, match="context"):
        carry_out(workshop, long)
    assert len(workshop.turns) == 0


def test_answers_to_held_out_problems_are_graded_and_others_are_not(workshop: Workshop, job: Make) -> None:
    record, _ = carry_out(workshop, job("none"))
    assert record.lanes[0].solved is None
    known = Job("sort three words", (LaneSpec("none", ()),), job("none").generation, "off")
    record, _ = carry_out(workshop, known)
    assert record.lanes[0].solved is False
    assert workshop.grade("sort three words", "so it is #### 3") is True


def test_speeds_take_turns_and_are_medians(workshop: Workshop, job: Make) -> None:
    record, _ = carry_out(workshop, job("dual"))
    told = [moment.text for moment in measure_speeds(workshop, record, workshop.turns.join("me"))]
    assert told[-1] == "done: speeds measured"
    assert [text for text in told if "run 2" in text] == [
        "running: measuring one token a step, no cache, run 2 of 3",
        "running: measuring no cache, run 2 of 3",
        "running: measuring dual, run 2 of 3",
    ]
    assert record.speeds is not None
    assert record.speeds.repeats == 3
    assert min(record.speeds.vanilla, record.speeds.parallel, *record.speeds.lanes) > 0
    assert len(workshop.turns) == 0


def test_stopped_measurement_leaves_speeds_unknown(workshop: Workshop, job: Make) -> None:
    record, _ = carry_out(workshop, job("dual"))
    ticket = workshop.turns.join("me")
    for moment in measure_speeds(workshop, record, ticket):
        if "run 1" in moment.text:
            ticket.stop()
    assert moment.text.startswith("stopped")
    assert record.speeds is None
