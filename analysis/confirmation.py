"""Confirmation: a race's choice measured again beside no cache; the least of many noisy costs is too low."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from scipy.stats import t as students_t

from analysis.measure import Outcome, Unit, reference_of
from analysis.settings import Setting
from analysis.wording import counted, percent, saved

REPEATS = 3
MAX_SHARE = 0.2


@dataclass(frozen=True)
class Confirmation:
    """cost: geometric mean, over pairs of neighbouring runs, of seconds over those without a cache.

    low, high: its 95 % interval by Student's t of the logarithms. pairs: how many there are.
    """

    cost: float
    low: float
    high: float
    pairs: int

    @property
    def saves(self) -> bool:
        """Whether less time than without a cache is beyond the noise."""
        return self.high < 1

    @property
    def described(self) -> str:
        """The ratio with its interval, in words."""
        return (
            f"{saved(self.cost, 'seconds')}, 95 % interval {percent(self.low)} to {percent(self.high)}, "
            f"from {counted(self.pairs, 'pair')} of runs measured again"
        )


def confirming_units(setting: Setting, prompts: Sequence[int], full_grid: int) -> list[Unit]:
    """The choice and its reference in turn, each `REPEATS` times on as many of the prompts as a fifth of a
    full grid's runs has room for, at least one. Repeat 0 is the race's own.
    """
    room = max(1, int(MAX_SHARE * full_grid / (2 * REPEATS)))
    pair = (reference_of(setting), setting)
    return [
        Unit(one, prompt, repeat)
        for repeat in range(1, REPEATS + 1)
        for index, prompt in enumerate(prompts[:room])
        for one in (pair if (repeat + index) % 2 else pair[::-1])
    ]


def confirmation(units: Sequence[Unit], known: Mapping[str, Outcome]) -> Confirmation | None:
    """What the units tell, None before all of them are known."""
    if not units or any(unit.key not in known for unit in units):
        return None
    ratios = []
    for first, second in zip(units[::2], units[1::2], strict=True):
        ours, theirs = (second, first) if first.setting == reference_of(first.setting) else (first, second)
        ratios.append(math.log(known[ours.key].seconds / known[theirs.key].seconds))
    half = float(students_t.ppf(0.975, len(ratios) - 1)) * stdev(ratios) / math.sqrt(len(ratios))
    centre = mean(ratios)
    return Confirmation(math.exp(centre), math.exp(centre - half), math.exp(centre + half), len(ratios))
