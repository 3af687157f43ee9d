"""Tuning in the page: it finds what the search finds, lets others in between runs, and stops at once."""

import json
import threading
from pathlib import Path

import pytest

from analysis.prompts import Prompt
from analysis.tuning import Goal
from app.job import Job, LaneSpec
from app.perform import perform
from app.problems import Problems
from app.tune import (
    TuneJob,
    best_json,
    front_value,
    map_value,
    prompts_file,
    prompts_of,
    table_of,
    tune_in_turn,
)
from app.workshop import Workshop
from core import GenerationConfig
from tests.app.conftest import GENERATION, PROBLEM

PROMPTS = (Prompt("one two three"), Prompt("four five"))
GOAL = Goal("agreement", 0.5, "flops")


def tune_job(prompts: tuple[Prompt, ...] = PROMPTS, taus: str = "-1, inf", ks: str = "2, 8") -> TuneJob:
    return TuneJob.read(prompts, taus, ks, GOAL, GENERATION, "embedded")


def test_search_ends_with_a_setting_within_the_budget(workshop: Workshop) -> None:
    told = list(tune_in_turn(workshop, tune_job(), "me"))
    text, result = told[-1]
    assert text.startswith("done: ")
    assert result.best is not None
    assert result.best.loss <= GOAL.budget
    assert all(text.startswith("running: ") for text, _ in told[:-1])
    assert set(json.loads(best_json(result))) == {"entropy_threshold", "recent"}
    table = table_of(result)
    assert list(table.columns) == ["setting", "cost %", "lost %", "prompts", ""]
    assert all(name.startswith("entropy · τ ") for name in table["setting"])
    for draw in (map_value, front_value):
        value = json.loads(draw(tune_job(), result))
        assert value["variants"][0]["figure"]["data"]
        assert "2 prompts" in value["about"]
    assert len(workshop.turns) == 0


def test_search_lets_others_in_between_its_runs(workshop: Workshop) -> None:
    search = tune_in_turn(workshop, tune_job(), "me")
    next(search)
    short = Job("five six", (LaneSpec("none", ()),), GENERATION, "off")
    record = workshop.runs.new(short)
    moments = list(perform(workshop, record, workshop.turns.join("other")))
    assert moments[-1].text.startswith("done")
    assert next(search)[0].startswith("running")


def test_stop_ends_the_search_and_keeps_what_was_measured(workshop: Workshop) -> None:
    holder = workshop.turns.join("other")
    search = tune_in_turn(workshop, tune_job(), "me")
    holder.leave()
    next(search)
    blocked = workshop.turns.join("other")
    threading.Timer(0.2, lambda: workshop.turns.stop("me")).start()
    text, result = next(search)
    assert text.startswith("stopped: 1 run ")
    assert result.measured == 1
    blocked.leave()


def test_nothing_is_loaded_before_the_turn_comes(workshop: Workshop) -> None:
    """A load would slow what another visitor is timing, and might take away their model."""
    asked: list[str] = []
    workshop.model = lambda ref: asked.append(ref)  # type: ignore[method-assign]
    holder = workshop.turns.join("other")
    threading.Timer(0.2, lambda: workshop.turns.stop("me")).start()
    [(text, result)] = tune_in_turn(workshop, tune_job(), "me")
    holder.leave()
    assert text.startswith("stopped: 0 runs ")
    assert result.measured == 0
    assert not asked


def test_stop_between_two_runs_counts_and_closing_leaves_the_line(workshop: Workshop) -> None:
    """Between runs the search stands in no line, which is when the page draws what it has found."""
    search = tune_in_turn(workshop, tune_job(), "me")
    next(search)
    assert len(workshop.turns) == 0
    workshop.leave("me")
    text, result = next(search)
    assert text.startswith("stopped: 1 run ")
    assert result.measured == 1
    assert list(search) == []
    assert workshop.turns.stop("me") == 0
    search = tune_in_turn(workshop, tune_job(), "me")
    next(search)
    assert workshop.turns.stop("other") == 0
    search.close()
    assert workshop.turns.stop("me") == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompts": ()}, "prompts are 0"),
        ({"prompts": PROMPTS * 40}, "prompts are 80"),
        ({"taus": "1, x"}, "entropy_threshold is 'x'"),
        ({"taus": ""}, "grid is 'entropy_threshold='"),
        ({"taus": ",".join(map(str, range(30)))}, "make 60 settings"),
    ],
)
def test_wrong_entries_are_one_sentence(changes: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        tune_job(**changes)


def test_accuracy_needs_prompts_that_can_be_graded() -> None:
    goal = Goal("accuracy", 0.1, "flops")
    with pytest.raises(ValueError, match="no answer to grade"):
        TuneJob.read(PROMPTS, "1", "2", goal, GenerationConfig(), "embedded")
    graded = prompts_of(f"{PROBLEM.prompt}\n\n", Problems([PROBLEM]))
    assert TuneJob.read(graded, "1", "2", goal, GenerationConfig(), "embedded").prompts[0].problem == PROBLEM


def test_file_with_a_bad_line_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "fine"}\n{"text": "not"}\n')
    with pytest.raises(ValueError, match="line 2"):
        prompts_file(str(path))
