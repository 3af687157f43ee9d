"""Scans of a small table: a number for each month, the largest or smallest sought month by month."""

from random import Random

from core.training.problem import Problem
from core.training.words import MONTHS, NAMES, OBJECTS

NAME = "table"
MIN_SIZE = 2
MAX_SIZE = len(MONTHS)
LARGEST = 9
EXTREMES = {"largest": max, "smallest": min}
OPENINGS = (
    "{name} wrote down the {things} of each month:",
    "{name} counted the {things} of each month:",
    "These are the {things} of {name}:",
)
LEADS = ("Month by month:", "One by one:", "In order:")


def draw(rng: Random, size: int) -> Problem:
    """A table of `size` months from January on; the answer writes the best number so far beside each."""
    numbers = [rng.randint(1, LARGEST) for _ in range(size)]
    things = rng.choice(OBJECTS)
    word = rng.choice(tuple(EXTREMES))
    best = [EXTREMES[word](numbers[: month + 1]) for month in range(size)]
    rows = list(zip(MONTHS, numbers, best, strict=False))
    told = ", ".join(f"{month} {number}" for month, number, _ in rows)
    worked = " ".join(f"{month} {number} gives {so_far}." for month, number, so_far in rows)
    opening = rng.choice(OPENINGS).format(name=rng.choice(NAMES), things=things)
    return Problem(
        family=NAME,
        prompt=f"{opening} {told}. What is the {word} number of {things}?",
        example_response=f"{rng.choice(LEADS)} {worked}\n#### {best[-1]}",
        answer=str(best[-1]),
        signature=f"{numbers}|What is the {word} number of ?",
    )
