"""Key-value look-up: facts about people, then questions about one to three of them."""

from dataclasses import dataclass
from random import Random

from core.training.problem import Problem
from core.training.words import CITIES, COLORS, JOBS, NAMES

NAME = "lookup"
MAX_SIZE = 16


@dataclass(frozen=True)
class Attribute:
    """How one kind of fact is stated and asked about."""

    values: tuple[str, ...]
    states: str
    asks: str
    asks_many: str


ATTRIBUTES = (
    Attribute(CITIES, "lives in", "Where does {who} live?", "Where do {who} live?"),
    Attribute(COLORS, "likes", "Which color does {who} like?", "Which colors do {who} like?"),
    Attribute(JOBS, "works as a", "Which job does {who} have?", "Which jobs do {who} have?"),
)
LEADS = ("The text says:", "We can read:", "The facts are:")


def draw(rng: Random, size: int) -> Problem:
    """`size` people, each with one or two facts."""
    people = rng.sample(NAMES, size)
    attributes = rng.sample(ATTRIBUTES, rng.choice((1, 1, 1, 2)))
    facts = [{a.states: rng.choice(a.values) for a in attributes} for _ in people]
    table = dict(zip(people, facts, strict=True))
    lines = []
    for person, known in table.items():
        lines.append(person + " " + " and ".join(f"{states} {value}" for states, value in known.items()))
    text = ". ".join(lines) + "."
    who_asked = rng.random() < 0.15 and unique_fact(rng, table, attributes)
    if who_asked:
        question, told, answer = ask_backwards(rng, table, attributes, *who_asked)
    else:
        question, told, answer = ask_forwards(rng, table, rng.choice(attributes))
    return Problem(
        family=NAME,
        prompt=f"{text} {question}" if rng.random() < 0.8 else f"{question} {text}",
        example_response=f"{rng.choice(LEADS)} {told}\n#### {answer}",
        answer=answer,
        signature=f"{text}|{question}",
    )


def ask_forwards(rng: Random, table: dict[str, dict[str, str]], attribute: Attribute) -> tuple[str, str, str]:
    """Question, worked sentences and answer about the attribute of one to three people."""
    asked = rng.sample(list(table), min(len(table), rng.randint(1, 3)))
    who = asked[0] if len(asked) == 1 else ", ".join(asked[:-1]) + " and " + asked[-1]
    wording = attribute.asks if len(asked) == 1 else attribute.asks_many
    found = [table[person][attribute.states] for person in asked]
    told = " ".join(
        f"{person} {attribute.states} {value}." for person, value in zip(asked, found, strict=True)
    )
    return wording.format(who=who), told, ", ".join(found)


def unique_fact(
    rng: Random, table: dict[str, dict[str, str]], attributes: list[Attribute]
) -> tuple[str, str, str] | None:
    """(person, states, value) of a value nobody else has, if there is one."""
    states = attributes[0].states
    values = [known[states] for known in table.values()]
    alone = [(person, states, v) for person, v in zip(table, values, strict=True) if values.count(v) == 1]
    return rng.choice(alone) if alone else None


def ask_backwards(
    rng: Random,
    table: dict[str, dict[str, str]],
    attributes: list[Attribute],
    person: str,
    states: str,
    value: str,
) -> tuple[str, str, str]:
    """Who has this value, or, with two facts each, what else is known of the person who has it."""
    if len(attributes) == 1 or rng.random() < 0.5:
        return f"Who {states} {value}?", f"{person} {states} {value}.", person
    other = attributes[1]
    found = table[person][other.states]
    question = other.asks.format(who=f"the person who {states} {value}")
    return question, f"{person} {states} {value}. {person} {other.states} {found}.", found
