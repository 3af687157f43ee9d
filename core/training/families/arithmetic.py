"""Word problems over a closed table of one-digit sums, and the drills that teach the table."""

from dataclasses import dataclass
from random import Random

from core.training.problem import Problem
from core.training.words import HE, NAMES, OBJECTS

NAME = "math"
MAX_SIZE = 4
LARGEST = 9
MOST = 5
ORDINALS = ("First", "Then", "Next", "Later")
GAIN = ("buys {b} more", "finds {b} more", "gets {b} more from {other}", "picks {b} more")
LOSS = ("eats {b}", "loses {b}", "gives {b} to {other}", "sells {b}")


@dataclass(frozen=True)
class Sum:
    """One worked equation."""

    left: int
    operator: str
    right: int

    @property
    def value(self) -> int:
        if self.operator == "+":
            return self.left + self.right
        return self.left - self.right if self.operator == "-" else self.left * self.right

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right} = {self.value}"


def next_sum(rng: Random, total: int) -> Sum:
    """A feasible step from `total` that stays within 1..9."""
    if total <= LARGEST // 2 and rng.random() < 0.15:
        return Sum(total, "*", 2)
    up = min(MOST, LARGEST - total)
    down = min(MOST, total - 1)
    if down < 1 or (up >= 1 and rng.random() < 0.5):
        return Sum(total, "+", rng.randint(1, up))
    return Sum(total, "-", rng.randint(1, down))


def any_fact(rng: Random) -> Sum:
    """A uniformly spread entry of the table, for drills."""
    kind = rng.random()
    if kind < 0.15:
        left = rng.randint(2, LARGEST // 2)
        return Sum(left, "*", rng.randint(2, LARGEST // left))
    if kind < 0.55:
        left = rng.randint(1, LARGEST - 1)
        return Sum(left, "+", rng.randint(1, min(MOST, LARGEST - left)))
    left = rng.randint(2, LARGEST)
    return Sum(left, "-", rng.randint(1, min(MOST, left - 1)))


def draw(rng: Random, size: int) -> Problem:
    """A story of `size` changes to a number of things."""
    name, things = rng.choice(NAMES), rng.choice(OBJECTS)
    pronoun = "he" if name in HE else "she"
    bags = None
    if rng.random() < 0.3:
        count = rng.randint(2, 4)
        bags = Sum(count, "*", rng.randint(2, LARGEST // count))
    total = start = bags.value if bags else rng.randint(2, LARGEST - 2)
    steps: list[Sum] = []
    for _ in range(size):
        steps.append(next_sum(rng, total))
        total = steps[-1].value
    return Problem(
        family=NAME,
        prompt=story(rng, name, pronoun, things, bags, start, steps),
        example_response=working(rng, name, things, bags, start, steps, total),
        answer=str(total),
        signature=f"{bags or start}|" + "|".join(f"{s.operator}{s.right}" for s in steps),
    )


def story(
    rng: Random, name: str, pronoun: str, things: str, bags: Sum | None, start: int, steps: list[Sum]
) -> str:
    verb = rng.choice(("has", "starts with"))
    if bags:
        holder = rng.choice(("bags", "boxes"))
        sentences = [f"{name} {verb} {bags.left} {holder} with {bags.right} {things} each."]
    else:
        sentences = [f"{name} {verb} {start} {things}."]
    others = [other for other in NAMES if other != name]
    for ordinal, step in zip(ORDINALS, steps, strict=False):
        if step.operator == "*":
            sentences.append(f"{ordinal} the number of {things} doubles.")
            continue
        wording = rng.choice(GAIN if step.operator == "+" else LOSS)
        sentences.append(f"{ordinal} {pronoun} {wording.format(b=step.right, other=rng.choice(others))}.")
    ending = rng.choice(("have now", "have in the end", "have at the end"))
    return " ".join(sentences) + f" How many {things} does {name} {ending}?"


def working(
    rng: Random, name: str, things: str, bags: Sum | None, start: int, steps: list[Sum], total: int
) -> str:
    opening = rng.choice(("starts", "begins"))
    sentences = [f"{name} {opening} with {bags or start} {things}."]
    for ordinal, step in zip(ORDINALS, steps, strict=False):
        filler = rng.choice(("we get", "we have", "this makes", "that gives"))
        sentences.append(f"{ordinal} {filler} {step}.")
    closing = rng.choice(("So", "Now", "Thus"))
    return " ".join(sentences) + f" {closing} {name} has {total} {things}.\n#### {total}"


def drill(rng: Random, size: int) -> Problem:
    """Bare sums, several in a row: practice for the table; trained on, never part of a score."""
    facts = [any_fact(rng) for _ in range(size)]
    asked = ", ".join(f"{f.left} {f.operator} {f.right}" for f in facts)
    verb = rng.choice(("Work out", "Compute", "Find"))
    return Problem(
        family="drill",
        prompt=f"{verb} {asked}.",
        example_response=". ".join(str(f) for f in facts) + f".\n#### {facts[-1].value}",
        answer=str(facts[-1].value),
        signature=asked,
    )
