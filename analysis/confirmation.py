"""Confirmation: a race's choice measured anew: the least of many noisy costs is biased low."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean, mean, stdev

from scipy.stats import t as students_t

from analysis.measure import Outcome, Unit, reference_of
from analysis.settings import Setting
from analysis.wording import counted, percent, saved

REPEATS = 3
MAX_SHARE = 0.2
FEWEST_PROMPTS = 3
# One token a step without a cache takes many times a choice's own seconds.
SLOW_PROMPTS = 3


@dataclass(frozen=True)
class Confirmation:
    """cost: geometric mean over prompts, each the geometric mean of its pairs of neighbouring runs, of
    seconds over those without a cache.

    low, high: its 95 % interval by Student's t of the prompts' mean logarithms, so that repeats of a prompt
    do not count as prompts; of fewer than three prompts, of the pairs' logarithms, which is the noise of
    the timing alone. pairs, prompts: how many there are; prompts is None in files of before they were kept,
    whose intervals are of pairs.
    """

    cost: float
    low: float
    high: float
    pairs: int
    prompts: int | None = None

    @property
    def saves(self) -> bool:
        """Whether less time than without a cache is beyond the noise."""
        return self.high < 1

    @property
    def described(self) -> str:
        """The ratio with its interval and what that is of, in words."""
        some = "some" if self.prompts is None else str(self.prompts)
        few = self.prompts is None or self.prompts < FEWEST_PROMPTS
        of = f"{some} of the prompts that the choice was made on"
        noise = " of timing noise only" if few else ""
        return (
            f"{saved(self.cost, 'seconds')} (geometric mean over prompts, 95 % interval "
            f"{percent(self.low)} to {percent(self.high)}{noise}, "
            f"from {counted(self.pairs, 'pair')} of runs on {of}; other prompts may differ)"
        )


def confirming_units(setting: Setting, prompts: Sequence[int], full_grid: int) -> list[Unit]:
    """The choice and its reference in turn, in as many pairs as a fifth of a full grid's runs has room for.

    prompts: in the order of the race, taken from its end, since all settings were compared on the first.
    Many prompts tell more than many repeats: each has one at least, up to `REPEATS` where there is room.
    Never fewer than three pairs. Repeat 0 is the race's own.
    """
    room = int(MAX_SHARE * full_grid / 2)
    chosen = prompts[::-1][: max(room, FEWEST_PROMPTS)]
    least = math.ceil(FEWEST_PROMPTS / len(chosen))
    repeats = max(least, min(REPEATS, room // len(chosen)))
    pair = (reference_of(setting), setting)
    return [
        Unit(one, prompt, repeat)
        for repeat in range(1, repeats + 1)
        for index, prompt in enumerate(chosen)
        for one in (pair if (repeat + index) % 2 else pair[::-1])
    ]


def slow_units(slowest: Setting, confirming: Sequence[Unit]) -> list[Unit]:
    """One run of one token a step without a cache on a few of the prompts that confirm the choice.

    None where no cache decodes so anyway: the confirmation has told that.
    """
    prompts = list(dict.fromkeys(unit.prompt for unit in confirming))
    beside = next((one.setting for one in confirming if one.setting != reference_of(one.setting)), None)
    if beside is None or as_long(slowest, beside) == reference_of(beside):
        return []
    return [Unit(as_long(slowest, beside), prompt, 1) for prompt in prompts[:SLOW_PROMPTS]]


def as_long(slowest: Setting, beside: Setting) -> Setting:
    """One token a step for as many tokens as another setting generates, in its blocks."""
    shape = ("gen_length", "block_length")
    own = {name: value for name, value in beside.generation.items() if name in shape}
    # Where no cache is one token a step anyway, its steps are not set but follow the length.
    if "gen_length" in own and "steps" in slowest.generation:
        own["steps"] = own["gen_length"]
    return replace(slowest, generation={**slowest.generation, **own})


def slow_gains(slow: Sequence[Unit], confirming: Sequence[Unit], known: Mapping[str, Outcome]) -> list[float]:
    """Seconds of the slow units over the choice's, prompt by prompt, of those known; repeats count as one."""
    gains, ours = [], [unit for unit in confirming if unit.setting != reference_of(unit.setting)]
    for unit in slow:
        runs = [one for one in ours if one.prompt == unit.prompt]
        if runs and all(one.key in known for one in (unit, *runs)):
            gains.append(known[unit.key].seconds / geometric_mean(known[one.key].seconds for one in runs))
    return gains


def confirmation(units: Sequence[Unit], known: Mapping[str, Outcome]) -> Confirmation | None:
    """What the units tell, None before all of them are known."""
    if not units or any(unit.key not in known for unit in units):
        return None
    ratios: dict[int, list[float]] = {}
    for first, second in zip(units[::2], units[1::2], strict=True):
        ours, theirs = (second, first) if first.setting == reference_of(first.setting) else (first, second)
        ratio = math.log(known[ours.key].seconds / known[theirs.key].seconds)
        ratios.setdefault(ours.prompt, []).append(ratio)
    pairs = [ratio for of_prompt in ratios.values() for ratio in of_prompt]
    independent = (
        [mean(of_prompt) for of_prompt in ratios.values()] if len(ratios) >= FEWEST_PROMPTS else pairs
    )
    half = (
        float(students_t.ppf(0.975, len(independent) - 1)) * stdev(independent) / math.sqrt(len(independent))
    )
    centre = mean(independent)
    low, high = math.exp(centre - half), math.exp(centre + half)
    return Confirmation(math.exp(centre), low, high, len(pairs), len(ratios))
