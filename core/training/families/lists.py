"""List manipulation with a worked step for each item."""

from collections.abc import Callable
from random import Random

from core.training.problem import Problem
from core.training.words import ITEMS

NAME = "list"
MAX_SIZE = 8

Worked = tuple[str, str, list[str]]


def joined(items: list[str]) -> str:
    return ", ".join(items) if items else "none"


def reverse(rng: Random, size: int) -> Worked:
    items = rng.sample(ITEMS, size)
    wording = rng.choice(("Reverse this list:", "Write this list backwards:"))
    told = rng.choice(("From the end we read", "Going backwards we get"))
    return f"{wording} {joined(items)}.", f"{told} {joined(items[::-1])}.", items[::-1]


def keep_parity(rng: Random, size: int) -> Worked:
    numbers = [rng.randint(1, 99) for _ in range(size)]
    wanted = rng.choice(("even", "odd"))
    steps, kept = [], []
    for number in numbers:
        parity = "odd" if number % 2 else "even"
        fate = keep(rng) if parity == wanted else drop(rng)
        steps.append(f"{number} is {parity}, {fate}.")
        kept += [str(number)] * (parity == wanted)
    verb = rng.choice(("Keep", "Select"))
    prompt = f"{verb} the {wanted} numbers of this list: {joined([str(n) for n in numbers])}."
    return prompt, " ".join(steps), kept


def keep_greater(rng: Random, size: int) -> Worked:
    bound = 10 * rng.randint(2, 8)
    numbers = [rng.choice([n for n in range(10, 100) if n != bound]) for _ in range(size)]
    wanted = rng.choice(("greater", "smaller"))
    steps, kept = [], []
    for number in numbers:
        relation = "greater" if number > bound else "smaller"
        fate = keep(rng) if relation == wanted else drop(rng)
        steps.append(f"{number} is {relation}, {fate}.")
        kept += [str(number)] * (relation == wanted)
    verb = rng.choice(("Keep", "Select"))
    prompt = f"{verb} the numbers {wanted} than {bound} in this list: {joined([str(n) for n in numbers])}."
    return prompt, " ".join(steps), kept


def keep(rng: Random) -> str:
    return rng.choice(("keep it", "it stays"))


def drop(rng: Random) -> str:
    return rng.choice(("drop it", "it goes"))


def remove(rng: Random, size: int) -> Worked:
    items, target = with_repeats(rng, size)
    told = [f"{i} {'goes' if i == target else rng.choice(('stays', 'remains'))}." for i in items]
    verb = rng.choice(("Remove", "Delete"))
    prompt = f"{verb} every {target} from this list: {joined(items)}."
    return prompt, " ".join(told), [i for i in items if i != target]


def substitute(rng: Random, size: int) -> Worked:
    items, target = with_repeats(rng, size)
    new = rng.choice([i for i in ITEMS if i not in items])
    told = [
        f"{i} becomes {new}." if i == target else f"{i} {rng.choice(('stays', 'remains'))}." for i in items
    ]
    verb = rng.choice(("Replace", "Exchange"))
    prompt = f"{verb} every {target} with {new} in this list: {joined(items)}."
    return prompt, " ".join(told), [new if i == target else i for i in items]


def with_repeats(rng: Random, size: int) -> tuple[list[str], str]:
    """Items of which one may come several times, and that one."""
    items = rng.sample(ITEMS, size)
    target = rng.choice(items)
    for index in range(size):
        if rng.random() < 0.2:
            items[index] = target
    return items, target


def ascending(rng: Random, size: int) -> Worked:
    digits = rng.sample(range(1, 10), min(size, 7))
    ordered = [str(d) for d in sorted(digits)]
    wording = rng.choice(("Sort these numbers:", "Put these numbers in order:"))
    told = f"The smallest is {ordered[0]}." + "".join(
        f" {rng.choice(('Next', 'Then'))} comes {d}." for d in ordered[1:]
    )
    return f"{wording} {joined([str(d) for d in digits])}.", told, ordered


TASKS: tuple[Callable[[Random, int], Worked], ...] = (
    reverse,
    keep_parity,
    keep_greater,
    remove,
    substitute,
    ascending,
)


def draw(rng: Random, size: int) -> Problem:
    """A task on a list of `size` items."""
    task = rng.choice(TASKS)
    prompt, told, result = task(rng, size)
    answer = joined(result)
    return Problem(
        family=NAME,
        prompt=prompt,
        example_response=f"{told}\n#### {answer}",
        answer=answer,
        signature=f"{task.__name__}|{prompt.split(':')[1]}|{answer}",
    )
