"""Words on the second pass: how much of it a stop has left, whose steps its figures count, agreement."""

import json
import re
from collections.abc import Callable, Iterable

import pytest

from app.cards import cards
from app.drift import measure_drift
from app.examples import recorded_example
from app.explain import signals_panel
from app.figures import scatter_panel
from app.job import Job
from app.perform import Moment, perform
from app.runs import RunRecord
from app.turns import Ticket
from app.workshop import Workshop

Make = Callable[..., Job]


def last_word(moments: Iterable[Moment], ticket: Ticket, enough: Callable[[Moment], bool]) -> str:
    """The last status of a run that is stopped as soon as it is enough."""
    text = ""
    for moment in moments:
        text = moment.text
        if enough(moment):
            ticket.stop()
    return text


def watched_steps(record: RunRecord) -> int:
    return 0 if record.observation is None else len(record.observation.steps)


@pytest.mark.parametrize("observe", ["one", "own"])
def test_stop_while_drift_is_measured_says_that_decoding_had_finished(
    workshop: Workshop, job: Make, observe: str
) -> None:
    record = workshop.runs.new(job("dual", observe=observe))
    ticket = workshop.turns.join("me")
    text = last_word(perform(workshop, record, ticket), ticket, lambda _: watched_steps(record) == 2)
    assert text.startswith("stopped: decoding had finished, 16 tokens decoded in ")
    told = "1 of 15 steps" if observe == "one" else r"1 step, up to \d+ of 16 tokens"
    assert re.search(f"; drift measured on {told}$", text)


def test_stop_before_the_second_pass_says_that_it_was_not_measured(workshop: Workshop, job: Make) -> None:
    record = workshop.runs.new(job("dual", observe="one"))
    ticket = workshop.turns.join("me")

    def decoded(moment: Moment) -> bool:
        return bool(record.traces) and record.traces[0].complete and moment.flush

    text = last_word(perform(workshop, record, ticket), ticket, decoded)
    assert text.endswith("; drift was not measured")


def test_stop_of_drift_alone_says_how_much_there_is(workshop: Workshop, job: Make) -> None:
    record = workshop.runs.new(job("dual"))
    list(perform(workshop, record, workshop.turns.join("me")))
    ticket = workshop.turns.join("me")
    text = last_word(measure_drift(workshop, record, ticket), ticket, lambda _: watched_steps(record) == 5)
    assert text == "stopped: drift measured on 4 of 15 steps"


@pytest.mark.parametrize("panel", [scatter_panel, signals_panel])
def test_figures_of_the_second_pass_do_not_speak_of_this_run(panel: Callable[..., str]) -> None:
    value = json.loads(panel(recorded_example().record))
    lines = " ".join(value["variants"][0]["headline"])
    assert "n = 55 steps of the second pass" in lines
    assert "this run" not in lines
    assert value["about"].startswith("Not of the run above, but of the second pass")


@pytest.mark.parametrize(
    ("policies", "against"), [(("dual", "prefix"), "A, dual"), (("dual", "none"), "B, none")]
)
def test_agreement_names_whom_it_is_with_and_never_with_itself(
    workshop: Workshop, job: Make, policies: tuple[str, ...], against: str
) -> None:
    record = workshop.runs.new(job(*policies))
    list(perform(workshop, record, workshop.turns.join("me")))
    notes = [
        [number["note"] for number in lane["numbers"] if number["label"] == "agreement"]
        for lane in cards(record)["lanes"]
    ]
    mine = policies.index(against.split(", ")[1])
    assert notes[mine] == []
    assert notes[1 - mine] == [f"with {against}"]
