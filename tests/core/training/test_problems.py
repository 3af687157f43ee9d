"""Generators and graders: every example passes its own grader, wrong answers do not, nothing leaks."""

from dataclasses import replace
from random import Random

import pytest

from core.training.families import code
from core.training.problems import (
    FAMILIES,
    MOST_PROBLEMS,
    Family,
    Problem,
    draw,
    fresh,
    grade,
    held_out,
    read_problems,
    with_examples,
    write_problems,
)

EACH = pytest.mark.parametrize("family", list(FAMILIES))


@EACH
def test_example_responses_are_correct(family):
    problems = held_out(family, 12, seed=3)
    assert all(grade(problem, problem.example_response) for problem in problems)


@EACH
def test_training_never_draws_a_held_out_signature(family):
    rng = Random(0)
    trained = {draw(family, rng, held_out=False).signature for _ in range(3000)}
    assert not trained & {problem.signature for problem in held_out(family, 200)}


@EACH
def test_held_out_problems_differ_and_repeat_with_the_seed(family):
    problems = held_out(family, 50, seed=1)
    assert len({problem.prompt for problem in problems}) == 50
    assert problems == held_out(family, 50, seed=1)
    assert problems != held_out(family, 50, seed=2)
    assert fresh(family, 5).is_held_out


@EACH
def test_answers_have_several_wordings(family):
    rng = Random(0)
    openings = {" ".join(draw(family, rng, held_out=False).example_response.split()[:2]) for _ in range(200)}
    assert len(openings) > 1


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("so\n#### 12", True),
        ("#### 12 \nmore", True),
        ("#### 1", False),
        ("12", False),
        ("", False),
        ("####", False),
    ],
)
def test_answer_after_the_mark_must_match_exactly(text, right):
    assert grade(Problem("math", "p", "r", answer="12"), text) is right


def test_true_is_not_one():
    problem = Problem("code", "p", "r", function="f", tests=(([3], 1),))
    assert grade(problem, "def f(xs):\n    return len(xs)")
    assert not grade(problem, "def f(xs):\n    return len(xs) == 1")


def test_wrong_function_is_wrong():
    problem = held_out("code", 1)[0]
    assert not grade(problem, f"def {problem.function}(xs):\n    return 12345")
    assert not grade(problem, "no function here")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "Here we go.\n{}\n",
        "```\n{}\n```",
        "Use `def `:\n\n```python\n{}\n```\n\nThis function returns the sum. def is a word of Python.",
        "```bash\npip list\n```\n```py\n{}\n```\n```python\nprint(f([1]))\n```",
        "```python\n{}",
        "```python\nfrom typing import List\n\n{}\n```",
    ],
)
def test_a_function_counts_fenced_or_not(text):
    problem = Problem("code", "p", "r", function="f", tests=(([3, 4], 7), ([], 0)))
    right = 'def f(xs: List[int]) -> int:\n    """Add `xs` up."""\n    return sum(xs)'
    assert grade(problem, text.format(right))
    assert not grade(problem, text.format(right.replace("sum", "len")))
    assert not grade(problem, text.format(right.replace("sum(xs)", "open(xs)")))
    assert not grade(problem, text.format(f"{right}\nprint(f([1]))"))


def test_the_inputs_tell_any_two_functions_apart_that_differ():
    """Under the largest and the smallest a filter left out showed nowhere: no input ended in its bound."""
    rng = Random(0)
    sifts = {stage.words: stage for stage in (code.NO_FILTER, *(code.draw_filter(rng) for _ in range(800)))}
    changes = {stage.words: stage for stage in (code.NO_MAP, *(code.draw_map(rng) for _ in range(800)))}
    far = [*((x,) for x in range(-12, 25)), *((x, x + 1) for x in range(-12, 25)), (3, -4, 8), (-2, 1, 15)]
    for reducer in code.REDUCERS:

        def results(sift, change, inputs, reduce=reducer.compute):
            return str([reduce([change.compute(x) for x in given if sift.compute(x)]) for given in inputs])

        pairs = [(sift, change) for sift in sifts.values() for change in changes.values()]
        wide = (*code.INPUTS, *far)
        told, differ = ({results(*pair, inputs) for pair in pairs} for inputs in (code.INPUTS, wide))
        assert len(told) == len(differ), reducer.words


@EACH
def test_problems_survive_the_file(family, tmp_path):
    problems = [*held_out(family, 3), *held_out(family, 2, shots=2)]
    write_problems(tmp_path / "p.jsonl", problems)
    assert [p.prompt for p in read_problems(tmp_path / "p.jsonl")] == [p.prompt for p in problems]
    assert all(grade(p, p.example_response) for p in read_problems(tmp_path / "p.jsonl"))


def test_worked_examples_come_before_the_question_and_are_not_held_out():
    problem = held_out("math", 1, seed=9, shots=3)[0]
    assert problem.prompt.count("Question: ") == 4
    plain = replace(problem, prompt=problem.prompt.rsplit("Question: ", 1)[1], shots=0)
    assert with_examples(plain, []).prompt == f"Question: {plain.prompt}"


def colours(rng: Random, size: int) -> Problem:
    """A family of three problems of size 2, all held out, and of none of size 1 that is."""
    word = rng.choice(("blue", "green", "red"))
    wanted = size == 2
    mark = next(
        mark
        for mark in range(1000)
        if Problem("c", word, "r", "1", signature=f"{word}{mark}").is_held_out == wanted
    )
    return Problem("c", word, "r", "1", signature=f"{word}{mark}")


def test_more_problems_than_there_are_is_one_sentence_that_says_how_many(monkeypatch):
    monkeypatch.setitem(FAMILIES, "c", Family(colours, 1, 2))
    assert sorted(p.prompt for p in held_out("c", 3)) == ["blue", "green", "red"]
    with pytest.raises(ValueError, match=r"^n is 4; allowed: up to 3, all that family c holds out$"):
        held_out("c", 4)
    with pytest.raises(
        ValueError, match=r"^largest is 0\.1; family c has no held-out problem of sizes up to 1$"
    ):
        draw("c", Random(0), held_out=True, largest=0.1)
    for n in (0, -1, 10_001, 2**70):
        with pytest.raises(ValueError, match=f"^n is {n}; allowed: 1 to 10000$"):
            held_out("math", n)


@EACH
def test_a_family_has_as_many_as_may_be_asked_for(family):
    assert len(held_out(family, MOST_PROBLEMS)) == MOST_PROBLEMS


def test_unknown_family_and_empty_problem_are_refused():
    with pytest.raises(ValueError, match="family is 'chess'; allowed are math"):
        fresh("chess", 0)
    with pytest.raises(ValueError, match="either an answer or a function"):
        Problem("math", "p", "r")


def test_table_answers_follow_from_what_the_prompt_says():
    for problem in held_out("table", 200, seed=4):
        table, question = problem.prompt.split(": ", 1)[1].split(". ", 1)
        numbers = [int(entry.rsplit(" ", 1)[1]) for entry in table.split(", ")]
        expected = max(numbers) if "largest" in question else min(numbers)
        assert problem.answer == str(expected), problem.prompt
