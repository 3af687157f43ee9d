"""Frames: deltas add up to the whole, orders grow, and a run's own words stay plain data."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from analysis.comparison import agreement
from app import readings, tune_readings
from app.cards import cards
from app.drift import measure_drift
from app.explain import map_panel, measure_staleness, staleness_panel, tokens_panel, whatif_panel
from app.figures import scatter_panel, timeline_panel, volatility_panel
from app.frames import FrameFeed
from app.job import Job
from app.pacing import Pace
from app.perform import perform
from app.readings import Reading
from app.runs import RunRecord, RunStore, Speeds
from app.screen import Parts, Screen
from app.workshop import Workshop
from core import GenerationConfig

Make = Callable[..., Job]
READINGS = [
    value for of in (readings, tune_readings) for value in vars(of).values() if isinstance(value, Reading)
]


def run(workshop: Workshop, job: Job) -> RunRecord:
    record = workshop.runs.new(job)
    for _ in perform(workshop, record, workshop.turns.join("me")):
        pass
    return record


def test_deltas_add_up_to_the_whole(workshop: Workshop, job: Make) -> None:
    record = workshop.runs.new(job("entropy", "none"))
    feed = FrameFeed(record, workshop.texts_of)
    steps: dict[int, list] = {0: [], 1: []}
    heads = {}
    for moment in perform(workshop, record, workshop.turns.join("me")):
        for part in feed.frame(moment.state)["lanes"]:
            steps[part["lane"]] += part["steps"]
            heads.setdefault(part["lane"], part.get("head"))
    whole = feed.frame("done", whole=True)
    for part in whole["lanes"]:
        assert part["steps"] == steps[part["lane"]]
        assert part["head"] == heads[part["lane"]]


def test_only_the_first_frame_starts_and_later_runs_have_larger_orders(workshop: Workshop, job: Make) -> None:
    first, second = run(workshop, job("none")), run(workshop, job("none"))
    feed = FrameFeed(first, workshop.texts_of)
    assert [feed.frame("running")["starts"] for _ in range(3)] == [True, False, False]
    assert second.order > first.order > 0


def test_frame_says_what_a_verdict_was_judged_by(workshop: Workshop, job: Make) -> None:
    graded = Job("sort three words", job("none").lanes, job("none").generation, "off")
    for asked, judged in ((graded, "the line after the last #### is not 3; "), (job("none"), "None")):
        record = workshop.runs.new(asked)
        list(perform(workshop, record, workshop.turns.join("me")))
        [part] = FrameFeed(record, workshop.texts_of).frame("done", whole=True)["lanes"]
        assert str(part.get("judged")).startswith(judged)


def test_refreshed_runs_hold_the_rows_of_the_trace(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("dual"))
    frame = FrameFeed(record, workshop.texts_of).frame("done", whole=True)
    for step, sent in zip(record.traces[0].steps, frame["lanes"][0]["steps"], strict=True):
        assert sum(count for _, count in sent["r"]) == step.num_refreshed


def test_cards_say_not_measured_until_measured(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("entropy"))
    numbers = {entry["label"]: entry for entry in cards(record)["lanes"][0]["numbers"]}
    assert numbers["vs no cache"]["value"] is None
    assert numbers["vs no cache"]["action"] == "measure"
    ratio = 100 * record.traces[0].totals["recompute_ratio"]
    assert numbers["recompute ratio"]["value"] == f"{ratio:.1f}"
    record.speeds = Speeds(((3.0, 0.4, 0.2), (6.0, 0.8, 0.4), (2.0, 0.3, 0.2)))
    numbers = {entry["label"]: entry for entry in cards(record)["lanes"][0]["numbers"]}
    assert (numbers["vs one token a step"]["value"], numbers["vs no cache"]["value"]) == ("15.0", "2.00")
    # Each over its neighbours in time: a machine that halves its speed for a round changes no ratio.
    assert (numbers["vs one token a step"]["note"], numbers["vs no cache"]["note"]) == (
        "10.0 to 15.0",
        "1.50 to 2.00",
    )
    assert "median and range of 3 rounds" in cards(record)["about"]
    record.speeds = Speeds(((3.0, 0.4, 0.2),))
    [lane] = cards(record)["lanes"]
    assert [entry["note"] for entry in lane["numbers"] if entry["label"].startswith("vs ")] == [None, None]


def test_agreement_is_with_the_run_without_a_cache(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("dual", "none"))
    dual, none = record.traces
    same = agreement(dual.tokens, none.tokens, dual.model["eos_token_ids"])
    labels = [{e["label"]: e["value"] for e in lane["numbers"]} for lane in cards(record)["lanes"]]
    assert labels[0]["agreement"] == f"{100 * same:.1f}"
    assert "agreement" not in labels[1], "with itself"


def test_every_figure_says_how_to_read_it_and_what_it_is_of(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("entropy", observe="one"))
    for make in (timeline_panel, scatter_panel, volatility_panel):
        value = json.loads(make(record))
        assert value["variants"][0]["figure"]["data"]
        assert value["how"].endswith(".")
        for fact in ("model llada", "float32 on cpu", "3 + 16 tokens", "blocks of 8"):
            assert fact in value["about"], (make.__name__, fact)
    assert "no cache" in json.loads(scatter_panel(record))["about"]


def test_figures_of_a_run_that_was_not_watched_say_so(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("entropy", observe="off"))
    for make in (scatter_panel, volatility_panel):
        value = json.loads(make(record))
        assert value["variants"] == []
        assert value["empty"].startswith("Drift was not measured")
        assert value["action"] == "measure drift"


def test_drift_can_be_measured_later(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("entropy", observe="off"))
    moments = list(measure_drift(workshop, record, workshop.turns.join("me")))
    assert moments[-1].text == "done: drift measured"
    assert "16 of 16 tokens" in moments[-2].text
    assert record.observation is not None
    assert record.observation.prompt_ids == record.traces[0].prompt_ids
    assert json.loads(scatter_panel(record))["variants"]


def test_stop_while_drift_is_measured_keeps_what_was_seen_and_frees_the_turn(
    workshop: Workshop, job: Make
) -> None:
    record = run(workshop, job("entropy", observe="off"))
    ticket = workshop.turns.join("me")
    texts = []
    for moment in measure_drift(workshop, record, ticket):
        texts.append(moment.text)
        if record.observation is not None and len(record.observation.steps) == 5:
            ticket.stop()
    assert texts[-1].startswith("stopped: ")
    assert record.observation is not None
    assert len(record.observation.steps) == 5
    assert len(workshop.turns) == 0


def test_figures_of_a_run_still_going_on_promise_what_will_come(workshop: Workshop, job: Make) -> None:
    record, ticket = workshop.runs.new(job("entropy", "none", observe="one")), workshop.turns.join("me")
    for moment in perform(workshop, record, ticket):
        if record.going and record.observation is None:
            value = json.loads(scatter_panel(record))
            assert "once the run is decoded" in value["empty"]
            assert value["action"] == ""
            # The room is kept, so that the page does not move under the reader.
            assert value["height"] > 200
        if moment.grid:
            ticket.stop()
    assert record.lanes[1].trace is None
    assert json.loads(scatter_panel(record))["action"] == "measure drift"


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.title)
def test_every_reading_is_one_sentence_and_defines_its_numbers(reading: Reading) -> None:
    assert reading.how.endswith(".")
    assert ". " not in reading.how
    assert reading.terms
    for term, meaning in reading.terms:
        assert term
        assert meaning.endswith(".")


def test_steps_count_from_one_wherever_they_are_shown_and_their_figures_say_so(
    workshop: Workshop, job: Make
) -> None:
    """As in the player and at each token; only files count from 0, as a trace does."""
    record = run(workshop, job("entropy", observe="one"))
    list(measure_staleness(workshop, record, workshop.turns.join("me")))
    panels = {draw: json.loads(draw(record)) for draw in (timeline_panel, scatter_panel, tokens_panel)}
    panels |= {draw: json.loads(draw(record)) for draw in (map_panel, staleness_panel)}
    panels[whatif_panel] = json.loads(whatif_panel(record, 1.0, 64))
    for draw, value in panels.items():
        assert list(readings.STEP) in value["terms"], draw.__name__
        for part in value["variants"][0]["figure"]["data"]:
            told = re.search(r"step %{(x|customdata\[0\])}", part.get("hovertemplate", ""))
            if told and part["type"] != "heatmap":
                steps = [row[0] for row in part["customdata"]] if told[1] != "x" else decoded(part["x"])
                assert min(steps, default=1) >= 1, draw.__name__


def decoded(values: Any) -> list[float]:
    """Numbers as plotly writes them: a list, or bytes of a type."""
    if isinstance(values, list):
        return values
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()


def test_one_of_a_thing_is_never_told_in_the_plural(workshop: Workshop, job: Make) -> None:
    all_at_once = GenerationConfig(gen_length=8, block_length=8, unmask="quota", steps=1)
    record = run(workshop, job("entropy", "none", observe="own", generation=all_at_once))
    assert len(record.traces[0].steps) == 1
    texts = [json.dumps(cards(record)), map_panel(record), timeline_panel(record), whatif_panel(record, 1, 4)]
    texts += [moment.text for moment in perform(workshop, record, workshop.turns.join("me"))]
    texts += [scatter_panel(run(workshop, job("none", observe="one")))]
    for text in texts:
        assert re.findall(r"(?<![\d.])1 [a-z]*s\b", text) == [], text[:400]


def test_slow_parts_are_not_starved_and_the_last_moment_brings_everything(
    workshop: Workshop, job: Make
) -> None:
    record = workshop.runs.new(job("none", observe="one"))
    parts = Parts(*(f"part {index}" for index in range(7)))
    screen = Screen(record, workshop.texts_of, parts)
    updates = [screen.updates(m) for m in perform(workshop, record, workshop.turns.join("me"))]
    assert set(updates[-1]) == set(parts.all())
    assert json.loads(updates[-1][parts.grid])["whole"]
    # Once at the first step, once more as the lane ends: nothing waits for the observation to be over.
    timeline = [update for update in updates[:-1] if parts.timeline in update]
    assert len(timeline) >= 2
    assert "Recompute" in timeline[-1][parts.timeline]


def test_pace_lets_through_no_more_than_its_rate_and_skips_nothing_at_rest() -> None:
    now = [0.0]
    pace = Pace(2.0, clock=lambda: now[0])
    passed = 0
    for _ in range(100):
        passed += pace.due()
        now[0] += 0.02
    assert passed == 4
    now[0] += 10
    assert pace.due()


def test_what_is_slow_to_draw_is_drawn_less_often() -> None:
    now = [0.0]
    pace = Pace(2.0, clock=lambda: now[0])
    drawing = 0.0
    while now[0] < 100:
        if pace.due():
            now[0] += 2
            drawing += 2
            pace.took(2)
        now[0] += 0.01
    assert 0.18 < drawing / 100 <= 0.22


def test_store_is_bounded_by_visitor_and_over_all(job: Make) -> None:
    store = RunStore(per_visitor=2, max_visitors=3)
    for visitor in "abcd":
        for _ in range(5):
            store.keep(visitor, store.new(job("none")))
    assert len(store) == 6
    assert store.of("a") == []
    newest, older = store.of("d")
    assert newest.order > older.order
    assert store.find("d", newest.run_id) is newest
    store.forget("d")
    assert store.of("d") == []
