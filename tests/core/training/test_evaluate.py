"""Evaluation: intervals, and scores that count what the engine really wrote."""

from dataclasses import replace

import pytest

from core import load_model
from core.training.__main__ import main
from core.training.evaluate import RULES, Outcome, answer, by_length, score, wilson
from core.training.problems import Problem, read_problems
from tests.core.test_embedded import PROBLEMS


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [(9, 10, 0.5958, 0.9821), (0, 20, 0.0, 0.1611), (50, 100, 0.4038, 0.5962)],
)
def test_wilson_interval(correct: int, n: int, low: float, high: float) -> None:
    assert wilson(correct, n) == pytest.approx((low, high), abs=1e-4)


def test_scores_of_the_embedded_model() -> None:
    model = load_model("embedded", device="cpu", dtype="float32")
    problems = [p for p in read_problems(PROBLEMS) if p.family == "code"][:6]
    outcomes = answer(model, problems, RULES["threshold 0.9"])
    total = score(outcomes)
    assert total.n == 6
    assert 1 <= total.contents <= 6
    assert total.correct >= 3
    assert total.tokens_per_step > 1.5
    assert sum(some.n for _, some in by_length(outcomes)) == 6


def test_other_words_are_no_further_trial() -> None:
    problem = Problem("math", "p", "r", answer="1", signature="same")
    outcomes = [Outcome(replace(problem, prompt=word), True, 3, 4, 4, "") for word in ("a", "b", "c")]
    outcomes.append(Outcome(replace(problem, signature="other"), False, 3, 4, 4, ""))
    total = score(outcomes)
    assert (total.n, total.contents, total.share) == (4, 2, 0.75)
    assert total.interval == pytest.approx(wilson(1.5, 2))


@pytest.mark.parametrize(
    ("option", "value"),
    [("--n", "0"), ("--shots", "-1"), ("--shots", "30"), ("--gen-length", "40"), ("--gen-length", "1280")],
)
def test_bad_numbers_end_in_one_line_before_any_work(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *(["--n", "1"] if option != "--n" else []), option, value]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert value in told.err
