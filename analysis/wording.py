"""Numbers, counts and settings as people read them, alike on a terminal and in a report."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.spread import FEWEST_FOR_QUARTILES

NOT_MEASURED = "not measured"


def figure(value: float | None, digits: int = 3) -> str:
    """A number in `digits` significant digits, or that it was not measured."""
    if value is None or value != value:
        return NOT_MEASURED
    if math.isinf(value):
        return str(value)
    if value == round(value) and abs(value) < 1e6:
        return str(round(value))
    return f"{value:.{digits}g}" if abs(value) < 1e3 else f"{value:.0f}"


def percent(value: float | None) -> str:
    return NOT_MEASURED if value is None or value != value else _zero_plain(f"{value:.1%}")


def signed(value: float, form: str = ".2f") -> str:
    """A coefficient or a difference with its sign; what rounds to zero has none."""
    return _zero_plain(f"{value:+{form}}")


def _zero_plain(text: str) -> str:
    return text if text.strip("+-0.%") else text.lstrip("+-")


def counted(number: int, noun: str) -> str:
    """1 prompt, 2 prompts."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def workforce(workers: int, threads: int) -> str:
    """Who measured: this process alone, or workers beside each other."""
    each = counted(threads, "thread")
    return f"{counted(workers, 'worker')} of {each} each" if workers else each


def quartiles(low: float, high: float, prompts: int, repeats: int) -> str:
    """A spread over prompts (see `analysis.spread`); of one prompt there is none."""
    if prompts >= FEWEST_FOR_QUARTILES:
        return f"{figure(low)}..{figure(high)}"
    if prompts > 1:
        return f"range {figure(low)}..{figure(high)}"
    return "one measurement" if repeats == 1 else "one prompt"


def saved(cost: float, objective: str) -> str:
    """What a cost relative to no cache means, in words."""
    return f"{percent(cost)} of the {objective} without a cache"


def own_order(policy: str, config: Mapping[str, Any]) -> str:
    """What a step commits under a policy with an order of its own; empty where the rule says it."""
    if not config.get("random_order"):
        return ""
    positions = config["tokens"]
    least = "1 position" if positions == 1 else f"up to {positions} positions"
    return f"commits {least} a step in {policy}'s drawn order"


def few_prompts(prompts: int, enough: int = 8) -> Sequence[str]:
    """A warning where a choice rests on too few prompts; empty otherwise."""
    if prompts >= enough:
        return ()
    return (f"warning: {counted(prompts, 'prompt')} can't be relied on for a choice; give at least {enough}",)
