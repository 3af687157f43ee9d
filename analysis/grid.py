"""Grids of settings: every combination of listed values, or random draws from lists and ranges."""

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.settings import Setting, parse_value


@dataclass(frozen=True)
class Axis:
    """A setting's name and its values, or the ends of a range to draw from."""

    name: str
    values: tuple[Any, ...]
    is_range: bool = False

    @classmethod
    def parse(cls, text: str) -> "Axis":
        """Read NAME=VALUE,VALUE,... or NAME=LOW..HIGH. Raises ValueError for another form."""
        name, mark, rest = text.partition("=")
        name = name.strip().replace("-", "_")
        parts = [part.strip() for part in rest.split(",")]
        if not mark or not name or not all(parts):
            raise ValueError(f"grid is {text!r}; allowed: NAME=VALUE,VALUE,... or NAME=LOW..HIGH")
        low, dots, high = rest.partition("..")
        if not dots:
            values = tuple(parse_value(part) for part in parts)
            if len(set(values)) < len(values):
                raise ValueError(f"grid {name} lists a value twice")
            return cls(name, values)
        ends = (parse_value(low.strip()), parse_value(high.strip()))
        numbers = all(type(end) in (int, float) and math.isfinite(end) for end in ends)
        if not numbers or ends[0] >= ends[1]:
            raise ValueError(f"grid {name} is {rest!r}; allowed: LOW..HIGH, two numbers that rise")
        return cls(name, ends, is_range=True)

    def draw(self, rng: random.Random) -> Any:
        """One value: of the list, or between the ends (an integer where both are)."""
        if not self.is_range:
            return rng.choice(self.values)
        low, high = self.values
        if isinstance(low, int) and isinstance(high, int):
            return rng.randint(low, high)
        return float(f"{rng.uniform(low, high):.4g}")


def grid_settings(policy: str, axes: Sequence[Axis]) -> list[Setting]:
    """Every combination, the last axis fastest. Raises ValueError for a range or a bad setting."""
    for axis in axes:
        if axis.is_range:
            raise ValueError(f"grid {axis.name} is a range; list its values, or draw at random")
    _check_names(axes)
    combinations = itertools.product(*(axis.values for axis in axes))
    names = [axis.name for axis in axes]
    return [Setting.of(policy, dict(zip(names, values, strict=True))) for values in combinations]


def random_settings(policy: str, axes: Sequence[Axis], count: int, seed: int) -> list[Setting]:
    """`count` different draws, the same for the same seed; fewer where there are no more.

    Raises ValueError for a count below 1 or a bad setting.
    """
    if count < 1:
        raise ValueError(f"count is {count}; allowed: at least 1")
    _check_names(axes)
    rng = random.Random(seed)
    drawn: dict[tuple[Any, ...], Setting] = {}
    misses = 0
    # Were there one more among so many, fifty draws for each would have met it.
    while len(drawn) < count and misses <= 50 * (len(drawn) + 1):
        setting = Setting.of(policy, {axis.name: axis.draw(rng) for axis in axes})
        misses = misses + 1 if setting.identity in drawn else 0
        drawn.setdefault(setting.identity, setting)
    return list(drawn.values())


def _check_names(axes: Sequence[Axis]) -> None:
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"grid names {name} twice")
