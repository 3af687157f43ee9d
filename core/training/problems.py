"""Where problems come from and how an answer is graded: what the page and the evaluation use."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from core.training.families import arithmetic, code, table
from core.training.problem import Problem, read_problems, with_examples, write_problems
from core.training.sandbox import RefusedSourceError, run_function

__all__ = [
    "FAMILIES",
    "MOST_PROBLEMS",
    "Family",
    "Problem",
    "draw",
    "families_named",
    "fresh",
    "grade",
    "held_out",
    "read_problems",
    "with_examples",
    "write_problems",
]
MARK = "####"
# Far more than is ever measured, far fewer than each family has, and drawn within seconds.
MOST_PROBLEMS = 10_000
# After so many draws in vain there is nothing more to find.
MOST_DRAWS = 1_000
FENCE = re.compile(r"^```[^\n`]*\n(.*?)(?:^```|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Family:
    """One kind of problem: `draw(rng, size)` makes one of a size from 1 to `max_size`."""

    draw: Callable[[Random, int], Problem]
    min_size: int
    max_size: int


FAMILIES = {
    arithmetic.NAME: Family(arithmetic.draw, 1, arithmetic.MAX_SIZE),
    code.NAME: Family(code.draw, 1, code.MAX_SIZE),
    table.NAME: Family(table.draw, table.MIN_SIZE, table.MAX_SIZE),
}


def family_named(name: str) -> Family:
    if name not in FAMILIES:
        raise ValueError(f"family is {name!r}; allowed are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def families_named(names: Sequence[str]) -> list[str]:
    """The families asked for, all where none is; ValueError for a name that is none."""
    return [name for name in names if family_named(name)] or list(FAMILIES)


def draw(name: str, rng: Random, *, held_out: bool, largest: float = 1.0) -> Problem:
    """One problem of a family, of a random size up to the share `largest` of the family's range.

    Training draws only from held_out=False and scores only come from held_out=True; the two never share
    a signature. Raises ValueError where there is none of such sizes.
    """
    family = family_named(name)
    top = family.min_size + round(largest * (family.max_size - family.min_size))
    for _ in range(MOST_DRAWS):
        problem = family.draw(rng, rng.randint(family.min_size, top))
        if problem.is_held_out == held_out:
            return problem
    kind = "held-out problem" if held_out else "problem to train on"
    raise ValueError(f"largest is {largest}; family {name} has no {kind} of sizes up to {top}")


def held_out(name: str, n: int, seed: int = 0, shots: int = 0) -> list[Problem]:
    """`n` different held-out problems, the same ones for the same seed; `shots` worked examples each.

    Raises ValueError for an unknown family, shots < 0, n outside 1 to MOST_PROBLEMS or beyond what there is.
    """
    if not 1 <= n <= MOST_PROBLEMS:
        raise ValueError(f"n is {n}; allowed: 1 to {MOST_PROBLEMS}")
    if shots < 0:
        raise ValueError(f"shots is {shots}; it must be at least 0")
    rng = Random(f"{name}|{seed}|{shots}")
    found: dict[str, Problem] = {}
    missed = 0
    while len(found) < n:
        problem = draw(name, rng, held_out=True)
        missed = missed + 1 if problem.prompt in found else 0
        if missed == MOST_DRAWS:
            raise ValueError(f"n is {n}; allowed: up to {len(found)}, all that family {name} holds out")
        found.setdefault(problem.prompt, with_shots(problem, rng, shots))
    return list(found.values())


def with_shots(problem: Problem, rng: Random, shots: int) -> Problem:
    examples = [draw(problem.family, rng, held_out=False, largest=0.5) for _ in range(shots)]
    return with_examples(problem, examples) if shots else problem


def fresh(name: str, seed: int) -> Problem:
    """One held-out problem drawn from a seed: "another problem" in the page."""
    return held_out(name, 1, seed)[0]


def grade(problem: Problem, text: str) -> bool:
    """Whether `text` solves the problem.

    An answer must stand on the line after the last `#### ` and match exactly, but for space. A function
    must be the last thing in the text, or in its fence of three backticks, and give the expected value on
    every input; whether it is written in the style that was asked for is not judged.
    """
    if problem.answer is not None:
        _, mark, said = text.rpartition(MARK)
        lines = said.strip().splitlines()
        return bool(mark) and bool(lines) and " ".join(lines[0].split()) == " ".join(problem.answer.split())
    assert problem.function is not None
    source = function_in(text)
    if source is None:
        return False
    inputs = [given for given, _ in problem.tests]
    try:
        outputs = run_function(source, problem.function, inputs)
    except (RefusedSourceError, RuntimeError):
        return False
    # As text, where True is not 1.
    return json.dumps(outputs) == json.dumps([wanted for _, wanted in problem.tests])


def function_in(text: str) -> str | None:
    """From the first `def ` of a text to its end, or to that of the fence it stands in; None without one."""
    fenced = next((part for part in FENCE.findall(text) if "def " in part), text)
    start = fenced.find("def ")
    return fenced[start:].strip() if start >= 0 else None
