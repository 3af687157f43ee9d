"""perform: each lane in turn, stopped within a step, the place in line always given back."""

import gc
import re
import weakref
from collections.abc import Callable

import pytest

from analysis.trace import Trace
from app.job import Job, LaneSpec
from app.perform import perform
from app.runs import RunRecord, RunStore
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


@pytest.mark.parametrize("stop", [False, True])
def test_last_word_tells_each_lanes_own_steps_and_no_sum_of_them(
    workshop: Workshop, job: Make, stop: bool
) -> None:
    record = workshop.runs.new(job("none", "dual"))
    ticket = workshop.turns.join("me")
    text = ""
    for moment in perform(workshop, record, ticket):
        text = moment.text
        if stop and len(record.traces) == 2:
            ticket.stop()
    steps = [len(trace.steps) for trace in record.traces]
    assert [int(number) for number in re.findall(r"(\d+) steps?\b", text)] == steps
    assert re.findall(r"\b([A-D]) \d", text) == ["A", "B"]


def test_observation_is_a_run_without_a_cache_one_token_a_step(workshop: Workshop, job: Make) -> None:
    record, _ = carry_out(workshop, job("entropy", observe="one"))
    assert record.observation is not None
    assert record.observation.policy["name"] == "none"
    assert set(record.observation.num_committed) == {1}
    assert "value_drift" in record.observation.steps[1].measurements


@pytest.mark.parametrize("observe", ["one", "own", "off"])
def test_last_word_says_where_the_rest_of_the_wait_went(workshop: Workshop, job: Make, observe: str) -> None:
    _, moments = carry_out(workshop, job("entropy", observe=observe))
    parts = re.fullmatch(
        r"done: .* in [\d.]+ s(; then drift measured, [\d.]+ s by the clock)?", moments[-1].text
    )
    assert parts is not None
    assert (parts[1] is not None) == (observe != "off")


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
    assert "one run ahead" in next(waiting).text
    ticket.stop()
    assert next(waiting).text == "stopped: left the line"
    assert list(waiting) == []
    assert ahead.place == 0


def test_next_in_line_need_not_wait_for_the_end_to_be_drawn(workshop: Workshop, job: Make) -> None:
    for stop in (False, True):
        ticket, behind = workshop.turns.join("me"), workshop.turns.join("other")
        for moment in perform(workshop, workshop.runs.new(job("none")), ticket):
            if stop:
                ticket.stop()
            assert behind.place == (0 if moment.last else 1)
        assert moment.last
        behind.leave()


@pytest.mark.parametrize("observe", ["off", "one"])
def test_leaving_ends_the_run_at_the_next_step_wherever_it_is(
    workshop: Workshop, job: Make, observe: str
) -> None:
    """One step at most is computed after the tab has closed, in every lane and while drift is watched."""

    def steps(record: RunRecord) -> int:
        watched = [record.observation] if record.observation else []
        return sum(len(trace.steps) for trace in record.traces + watched)

    settings = GenerationConfig(gen_length=16, block_length=8, unmask="quota", steps=4)
    of_all = steps(carry_out(workshop, job("none", "dual", observe=observe, generation=settings))[0])
    assert of_all == (24 if observe == "one" else 8)
    for after in range(of_all):
        record = workshop.runs.new(job("none", "dual", observe=observe, generation=settings))
        moments = perform(workshop, record, workshop.turns.join("me"))
        while next(moments).state == "running" and steps(record) < after:
            pass
        workshop.leave("me")
        assert [moment.state for moment in moments][-1] == "stopped"
        assert len(workshop.turns) == 0
        assert steps(record) <= after + 1


def test_nothing_is_kept_of_visitors_who_left(workshop: Workshop, job: Make) -> None:
    """Whatever ends after its visitor has gone; the same visitor may come back and start anew."""
    early = workshop.runs.new(job("none"))
    workshop.leave("me")
    workshop.runs.keep("me", early)
    workshop.runs.keep("other", early)
    assert workshop.runs.of("me") == []
    assert workshop.runs.of("other") == [early]
    late = workshop.runs.new(job("none"))
    workshop.runs.keep("me", late)
    assert workshop.runs.of("me") == [late]


def test_live_traces_are_those_kept_however_many_have_run(workshop: Workshop, job: Make) -> None:
    """Counted without the collector's help: a run that is over hangs on to nothing."""
    alive: weakref.WeakSet[Trace] = weakref.WeakSet()
    store = workshop.runs = RunStore(per_visitor=2, max_visitors=2)
    gc.disable()
    try:
        for turn in range(12):
            record = store.new(job("none", "dual", observe="one"))
            moments = perform(workshop, record, workshop.turns.join(f"visitor {turn // 4}"))
            for moment in moments:
                alive.update(record.traces)
                if turn % 4 == 3 and moment.observation:
                    workshop.turns.stop(f"visitor {turn // 4}")
            store.keep(f"visitor {turn // 4}", record)
            del record, moments
            assert len(alive) <= 2 * 2 * 2
        assert len(store) == 4
        for visitor in range(3):
            workshop.leave(f"visitor {visitor}")
        assert len(alive) == len(store) == 0
    finally:
        gc.enable()


def test_prompt_over_the_context_is_refused_and_frees_the_turn(workshop: Workshop) -> None:
    long = Job("word " * 400, (LaneSpec("none", ()),), GenerationConfig(gen_length=16, block_length=8), "off")
    with pytest.raises(ValueError, match="context"):
        carry_out(workshop, long)
    assert len(workshop.turns) == 0


@pytest.mark.parametrize("error", [ValueError("no GPU for this"), RuntimeError("out of memory")])
def test_run_that_fails_half_way_keeps_what_it_has_and_is_going_on_no_more(
    workshop: Workshop, job: Make, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    record = workshop.runs.new(job("none", "dual"))
    moments = perform(workshop, record, workshop.turns.join("me"))
    while not next(moments).grid:
        pass
    monkeypatch.setattr("app.perform.observe", failing(error))
    with pytest.raises(type(error)):
        list(moments)
    assert [lane.state for lane in record.lanes] == ["done", "stopped"]
    assert len(record.traces[0].steps) > 0
    assert not record.going
    assert len(workshop.turns) == 0


def failing(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


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
    assert min(seconds for one in record.speeds.rounds for seconds in one) > 0
    assert [len(one) for one in record.speeds.rounds] == [3, 3, 3]
    assert len(workshop.turns) == 0


def test_what_decodes_alike_is_measured_once(workshop: Workshop, job: Make) -> None:
    settings = GenerationConfig(gen_length=8, block_length=8, unmask="quota")
    record, _ = carry_out(workshop, job("none", "dual", generation=settings))
    told = [moment.text for moment in measure_speeds(workshop, record, workshop.turns.join("me"))]
    assert [text for text in told if "run 2" in text] == [
        "running: measuring one token a step, no cache, run 2 of 3",
        "running: measuring dual, run 2 of 3",
    ]
    assert record.speeds is not None
    assert all(slowest == parallel == lane != dual for slowest, parallel, lane, dual in record.speeds.rounds)


def test_stopped_measurement_leaves_speeds_unknown(workshop: Workshop, job: Make) -> None:
    record, _ = carry_out(workshop, job("dual"))
    ticket = workshop.turns.join("me")
    for moment in measure_speeds(workshop, record, ticket):
        if "run 1" in moment.text:
            ticket.stop()
    assert moment.text.startswith("stopped")
    assert record.speeds is None


def test_what_can_not_run_is_refused_before_the_wait(workshop: Workshop) -> None:
    workshop.model()
    holder = workshop.turns.join("other")
    job = Job("one two", (LaneSpec("none", ()),), GenerationConfig(gen_length=2**16), "off")
    moments = perform(workshop, workshop.runs.new(job), workshop.turns.join("me"))
    with pytest.raises(ValueError, match="context"):
        next(moments)
    holder.leave()
    assert len(workshop.turns) == 0
