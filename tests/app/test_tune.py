"""Tuning in the page: it finds what the search finds, lets others in between runs, and stops at once."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.confirmation import Confirmation
from analysis.prompts import Prompt
from analysis.settings import Setting
from analysis.tuning import Candidate, Goal, Tuning
from analysis.wording import few_prompts
from app.job import Job, LaneSpec
from app.perform import perform
from app.problems import Problems
from app.tabs.tune import WORDS, _marked
from app.tune import TAU, K, TuneJob, best_json, file_told, prompts_file, prompts_of, tune_in_turn
from app.tune_readings import FRONT, TUNE_MAP
from app.tune_shown import front_value, map_value, table_label, table_of, tuning_about, use_label
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
    about = tuning_about(tune_job(), workshop.shelf.held("embedded"))
    for value in (map_value(tune_job(), result, about), front_value(tune_job(), result, about)):
        assert json.loads(value)["variants"][0]["figure"]["data"]
        for part in (
            "2 prompts of ",
            "float32 on cpu",
            "1 thread",
            "blocks of 8",
            "confidence ≥ 0.9",
            "not measured",
        ):
            assert part in json.loads(value)["about"]
    assert len(workshop.turns) == 0
    timed = replace(tune_job(), goal=Goal(objective="seconds"))
    assert "more of the choice to confirm it" in tuning_about(timed, None)
    assert "to confirm it" not in about


def test_a_choice_on_too_few_prompts_comes_with_the_warning_of_the_command(workshop: Workshop) -> None:
    [few] = few_prompts(2)
    text, result = list(tune_in_turn(workshop, tune_job(), "me"))[-1]
    assert text.endswith(few)
    assert few in json.loads(map_value(tune_job(), result, ""))["variants"][0]["headline"]
    enough = tune_job(prompts=4 * PROMPTS)
    text, result = list(tune_in_turn(workshop, enough, "me"))[-1]
    assert "warning" not in text
    assert "warning" not in map_value(enough, result, "")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (2, "Not read: 2 prompts of mine.jsonl will be used instead."),
        (1, "Not read: 1 prompt of mine.jsonl will be used instead."),
        (0, "Not read: mine.jsonl stands in its place, but can't be used: "),
    ],
)
def test_box_of_prompts_says_that_a_file_counts_instead(tmp_path: Path, lines: int, said: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(lines * '{"prompt": "one two"}\n')
    assert file_told(str(path)).startswith(said)
    assert file_told(None) == ""
    box, back = _marked(str(path)), _marked(None)
    assert (box.info, box.interactive) == (file_told(str(path)), False)
    assert (back.info, back.interactive) == ("", True)


LOW, BEST, GIVEN_UP = (Setting("entropy", {"entropy_threshold": tau, "recent": 8}) for tau in (1.0, 2.0, 5.0))
RACED = (
    Candidate(BEST, 0.5, 0.0, 2, 0.4, 0.6, 0.0),
    Candidate(LOW, 0.8, 0.1, 2, 0.7, 0.9, 0.2),
    Candidate(GIVEN_UP, 0.3, 0.6, 1, 0.3, 0.3, 1.0),
)
FOUND = Tuning(RACED, RACED[0], RACED[:1], Goal("agreement", 0.5, "seconds"), 5, 8)


def test_table_says_of_what_its_shares_are_and_how_far_they_spread() -> None:
    job = replace(tune_job(), goal=FOUND.goal)
    table = table_of(job, FOUND)
    assert list(table.columns) == [
        "setting",
        "seconds on its prompts, % of no cache",
        "agreement lost, %",
        "prompts",
    ]
    first, last = table.iloc[0].to_list(), table.iloc[2].to_list()
    assert first == ["τ 2 · k 8, best so far", "50.0 (40.0 to 60.0)", "0.0 (up to 0.0)", "2 of 2"]
    assert last == ["τ 5 · k 8, loses too much", "30.0 (30.0 to 30.0)", "≥ 60.0 (up to 100.0)", "1 of 2"]
    assert "on one prompt" in table_label(FOUND)
    assert "95 %" not in table_label(FOUND)


def test_table_puts_the_choice_first_and_settings_of_fewer_prompts_last() -> None:
    """Cheap on a few prompts, they would stand before what was chosen, though no cost of theirs compares."""
    taus = (0.1, 0.2, 0.3)
    cheap, dear, fewer = (Setting("entropy", {"entropy_threshold": tau, "recent": 8}) for tau in taus)
    candidates = (
        Candidate(fewer, 0.2, 0.0, 1, 0.2, 0.2, 0.0),
        *RACED,
        Candidate(dear, 0.95, 0.0, 2),
        Candidate(cheap, 0.6, 0.9, 2),
    )
    found = replace(FOUND, candidates=candidates, confirmed=Confirmation(0.9, 0.7, 0.99, 6))
    table = table_of(replace(tune_job(), goal=FOUND.goal), found)
    assert list(table["setting"]) == [
        "τ 2 · k 8, best",
        "τ 0.1 · k 8, loses too much",
        "τ 1 · k 8",
        "τ 0.2 · k 8",
        "τ 0.3 · k 8, on fewer prompts",
        "τ 5 · k 8, loses too much",
    ]
    assert "the chosen one first, then those of every prompt by cost" in table_label(found)
    assert "of those prompts alone" in table_label(found)
    assert "chosen" not in table_label(replace(found, best=None, confirmed=None)).partition(".")[0]


@pytest.mark.parametrize(
    ("again", "button", "standing"),
    [
        (None, "Use the best setting", "best so far"),
        (Confirmation(0.9, 0.7, 0.99, 6), "Use the best setting", "best"),
        (Confirmation(0.99, 0.9, 1.1, 6), "Use this setting anyway", "cheapest, but no measurable saving"),
    ],
)
def test_what_saves_nothing_is_not_called_best(
    again: Confirmation | None, button: str, standing: str
) -> None:
    found = replace(FOUND, confirmed=again)
    assert use_label(found) == button
    first = table_of(replace(tune_job(), goal=FOUND.goal), found)["setting"].iloc[0]
    assert first == f"τ 2 · k 8, {standing}"
    assert use_label(None) == use_label(replace(found, best=None)) == "Use the best setting"


def test_words_do_not_say_that_every_setting_given_up_loses_too_much() -> None:
    """Most are dropped because another is cheaper."""
    readings = [text for reading in (FRONT, TUNE_MAP) for _, text in reading.terms]
    for text in (WORDS, *readings):
        if "lost too much" in text or "loses too much" in text:
            assert "another" in " ".join(text.split())
            assert "cheaper" in text


def test_a_loss_on_some_prompts_is_told_as_the_least_and_never_as_a_gain() -> None:
    """A cache may still solve what no cache does not, so that what can come of it begins below zero."""
    others = [
        Candidate(Setting("entropy", {TAU: tau, K: k}), 0.5, -0.4, 1) for tau in (1.0, 5.0) for k in (8, 9)
    ]
    found = replace(FOUND, candidates=tuple(others), best=None, front=(), goal=Goal("accuracy", 0.0))
    job = replace(tune_job(), goal=found.goal)
    assert set(table_of(job, found)["accuracy lost, %"]) == {"≥ 0.0"}
    lost = json.loads(map_value(job, found, ""))["variants"][0]["figure"]["data"][1]
    assert {text for row in lost["text"] for text in row} == {"<b>≥ 0%</b><br>n 1"}
    assert {field[1] for row in lost["customdata"] for field in row} == {"≥ "}
    [points] = json.loads(front_value(job, found, ""))["variants"][0]["figure"]["data"]
    assert points["customdata"] == ["≥ "] * 4
    assert points["y"] == [0.0] * 4


def test_the_best_is_told_by_what_was_measured_again_wherever_it_is_shown() -> None:
    """The race picks the least of many noisy costs, which is too low."""
    told = replace(FOUND, confirmed=Confirmation(0.9, 0.7, 1.1, 6))
    job = replace(tune_job(), goal=FOUND.goal)
    row = table_of(job, told).iloc[0]
    assert row.iloc[1] == "90.0 (70.0 to 110.0)"
    assert "of the chosen one the 95 % interval, from 6 pairs of runs" in table_label(told)
    wide = replace(
        told,
        candidates=(
            *told.candidates,
            Candidate(Setting("entropy", {"entropy_threshold": 2.0, "recent": 9}), 0.7, 0.0, 2),
        ),
    )
    texts = json.dumps(json.loads(map_value(job, wide, ""))["variants"], ensure_ascii=False)
    assert "<b>90%</b><br>70–110" in texts
    assert "<b>50%</b>" not in texts
    assert "90.0% of the seconds" in texts
    marks = json.loads(front_value(job, told, ""))["variants"][0]["figure"]["data"]
    assert [mark["x"] for mark in marks if mark.get("name") == "choice, measured again"] == [[0.9]]


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
