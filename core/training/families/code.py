"""Tiny Python functions over a list of numbers: filter, map, reduce; graded by running them."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from core.training.problem import Problem

NAME = "code"
MAX_SIZE = 3
ARGUMENTS = {"numbers": "number", "values": "value", "items": "item", "xs": "x"}
VERBS = ("solve", "process", "handle", "build")
NOUNS = ("list", "data", "values", "numbers")
# Pairs around every bound of a filter: in long lists alone the largest seldom showed a filter left out.
INPUTS = ((), (3,), (-4,), (1, 2, 3, 4, 5, 6), (-11, 5, 21, -17, -16, 14), (8, 8, -2, 0, 7, 9, 5),
          (0, 4, -3, 6, 2, -9, 10, 12), (9, -8, 7, -6, 5, -4, 3, -2, 1),
          *((bound, bound - 1) for bound in range(12)))  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """One stage of a function: its words, its expression over the loop variable `{v}`, what it computes."""

    words: str
    expression: str
    compute: Callable[[int], int]


@dataclass(frozen=True)
class Reducer:
    """The last stage: its words, its expression over the list `{all}`, what it computes."""

    words: str
    expression: str
    compute: Callable[[list[int]], int | list[int]]


NO_MAP = Stage("", "{v}", int)
NO_FILTER = Stage("", "", lambda x: True)
# All are calls: where one was not, a bracket was committed for it in parallel before its end was.
REDUCERS = (
    Reducer("return them as a list", "list({all})", list),
    Reducer("return their sum", "sum({all})", sum),
    Reducer("return how many there are", "len({all})", len),
    Reducer("return the largest or 0", "max({all}, default=0)", lambda xs: max(xs, default=0)),
    Reducer("return the smallest or 0", "min({all}, default=0)", lambda xs: min(xs, default=0)),
)


def draw_map(rng: Random) -> Stage:
    """A change of each number. All are three tokens long: where one was shorter, the parallel commits
    behind it landed a place too far."""
    c = rng.randint(2, 9)
    return rng.choice(
        (
            Stage(f"add {c} to each", f"{{v}} + {c}", lambda x: x + c),
            Stage(f"subtract {c} from each", f"{{v}} - {c}", lambda x: x - c),
            Stage(f"multiply each by {c}", f"{{v}} * {c}", lambda x: x * c),
            Stage("square each", "{v} * {v}", lambda x: x * x),
            Stage("double each", "{v} + {v}", lambda x: x + x),
        )
    )


def draw_filter(rng: Random) -> Stage:
    c = rng.randint(0, 9)
    d = rng.randint(3, 9)
    return rng.choice(
        (
            Stage("keep the even numbers", "{v} % 2 == 0", lambda x: x % 2 == 0),
            Stage("keep the odd numbers", "{v} % 2 == 1", lambda x: x % 2 == 1),
            Stage(f"keep those greater than {c}", f"{{v}} > {c}", lambda x: x > c),
            Stage(f"keep those less than {c}", f"{{v}} < {c}", lambda x: x < c),
            Stage(f"keep the multiples of {d}", f"{{v}} % {d} == 0", lambda x: x % d == 0),
            Stage(f"drop every {c}", f"{{v}} != {c}", lambda x: x != c),
        )
    )


def draw(rng: Random, size: int) -> Problem:
    """A function with `size` stages: reduce; map or filter and reduce; filter, map and reduce."""
    stages = rng.choice(("map", "filter")) if size == 2 else ("", "", "", "both")[size]
    sift = draw_filter(rng) if stages in ("filter", "both") else NO_FILTER
    change = draw_map(rng) if stages in ("map", "both") else NO_MAP
    reduce = rng.choice(REDUCERS)
    loop = rng.random() < 0.5
    argument = rng.choice(tuple(ARGUMENTS))
    function = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}"
    body = (with_loop if loop else in_one_line)(argument, sift, change, reduce)
    numbers = [[change.compute(x) for x in given if sift.compute(x)] for given in INPUTS]
    source = f"def {function}({argument}):\n{body}"
    plan = ", ".join(part.words for part in (sift, change) if part.words)
    plan = f"{plan} and {reduce.words}" if plan else reduce.words
    style = "Use a loop." if loop else "Use one line."
    ask = rng.choice(("Write a Python function", "Define a Python function"))
    lead = rng.choice(("First we", "Here we", "Now we"))
    tail = rng.choice(("as asked", "in Python", "like this"))
    return Problem(
        family=NAME,
        prompt=f"{ask} {function} of {argument}: {plan}. {style}",
        example_response=f"{lead} {plan}, {tail}.\n{source}",
        function=function,
        tests=tuple((list(given), reduce.compute(made)) for given, made in zip(INPUTS, numbers, strict=True)),
        signature=f"{plan}|{style}",
    )


def with_loop(argument: str, sift: Stage, change: Stage, reduce: Reducer) -> str:
    v = ARGUMENTS[argument]
    lines = ["    out = []", f"    for {v} in {argument}:"]
    indent = "        "
    if sift.expression:
        lines.append(f"{indent}if {sift.expression.format(v=v)}:")
        indent += "    "
    lines.append(f"{indent}out.append({change.expression.format(v=v)})")
    lines.append(f"    return {reduce.expression.format(all='out')}")
    return "\n".join(lines)


def in_one_line(argument: str, sift: Stage, change: Stage, reduce: Reducer) -> str:
    v = ARGUMENTS[argument]
    condition = f" if {sift.expression.format(v=v)}" if sift.expression else ""
    every = f"[{change.expression.format(v=v)} for {v} in {argument}{condition}]"
    return f"    return {reduce.expression.format(all=every)}"
