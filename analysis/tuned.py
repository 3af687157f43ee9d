"""Tuned: what a search is asked for and what it found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import pandas as pd

from analysis.confirmation import Confirmation
from analysis.settings import Setting
from analysis.wording import counted, saved

KEEPS = ("agreement", "accuracy")
OBJECTIVES = ("seconds", "flops")


@dataclass(frozen=True)
class Goal:
    """What to keep and what to save.

    keep: `agreement` with the tokens of the same decoding without a cache, or graded `accuracy`. budget:
    how much of it may be lost, a share. objective: `seconds` or `flops`, over those without a cache.
    """

    keep: str = "agreement"
    budget: float = 0.05
    objective: str = "seconds"

    def __post_init__(self) -> None:
        if self.keep not in KEEPS:
            raise ValueError(f"keep is {self.keep!r}; allowed: {', '.join(KEEPS)}")
        if not 0 <= self.budget < 1:
            raise ValueError(f"budget is {self.budget!r}; allowed: a share from 0 up to 1")
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective is {self.objective!r}; allowed: {', '.join(OBJECTIVES)}")


@dataclass(frozen=True)
class Candidate:
    """A setting as measured so far, on `prompts` prompts.

    cost: objective over that without a cache, below 1 saves. loss: mean share of agreement or accuracy
    lost over all prompts; where not all were measured, the least that it can still come to. low, high:
    the smallest and largest cost on one prompt, each measured once. worst: the largest loss on one prompt.
    """

    setting: Setting
    cost: float
    loss: float
    prompts: int
    low: float | None = None
    high: float | None = None
    worst: float | None = None

    def least(self, num_prompts: int) -> str:
        """What stands before a loss that is only the least that it can come to."""
        return "≥ " if self.prompts < num_prompts else ""


@dataclass(frozen=True)
class Tuning:
    """candidates: those that may keep the budget by cost, then the others by loss. best: the cheapest that
    keeps it on every prompt, None where none does.

    front: those measured on every prompt that no other such one beats in both cost and loss, cheapest
    first. measured: units decoded, full_grid: units a full grid would have taken. confirmed: the best one's
    seconds measured again beside those without a cache; None of operations, which are exact. gains: how many
    times as fast as one token a step without a cache the best one was, on a few prompts; empty where that
    was not measured.
    """

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    front: tuple[Candidate, ...]
    goal: Goal
    measured: int
    full_grid: int
    confirmed: Confirmation | None = None
    gains: tuple[float, ...] = ()

    @property
    def saves(self) -> bool:
        """Whether the best one costs less than no cache; of seconds only what was confirmed counts."""
        if self.best is None or self.goal.objective == "flops":
            return self.best is not None and self.best.cost < 1
        return self.confirmed is not None and self.confirmed.saves

    @property
    def spent(self) -> str:
        """What the best one takes, in words; of seconds as confirmed. Empty without a best one."""
        if self.best is None:
            return ""
        if self.confirmed is not None:
            return f"{self.confirmed.described}{self._beside_slowest}"
        text = saved(self.best.cost, self.goal.objective)
        return text if self.goal.objective == "flops" else f"{text}, not confirmed"

    @property
    def _beside_slowest(self) -> str:
        if not self.gains:
            return ""
        least, most = min(self.gains), max(self.gains)
        spread = f"{least:.1f} to {most:.1f} on {counted(len(self.gains), 'prompt')}"
        return f"; {median(self.gains):.1f} times as fast as one token a step ({spread})"

    @property
    def runs(self) -> str:
        """Runs of the race beside those of the full grid, and apart from them what confirmed the choice."""
        confirming = 2 * self.confirmed.pairs if self.confirmed else 0
        race, slow = self.measured - confirming - len(self.gains), len(self.gains)
        grid = f"the full grid takes {self.full_grid}"
        if self.confirmed is None:
            begun = self.best is not None and self.goal.objective == "seconds"
            cut = "; any of a confirmation cut short are counted in" if begun else ""
            return f"the race measured {counted(race, 'run')}, {grid}{cut}"
        more = f"{counted(confirming, 'more run')} to confirm the choice"
        more += f" and {slow} of one token a step" if slow else ""
        return f"the race measured {counted(race, 'run')}, {grid}; {more}"

    @property
    def told(self) -> tuple[Candidate, ...]:
        """The candidates, the best one's cost as confirmed, low and high then its interval: of many noisy
        costs that of the race is the least, and too low.
        """
        if self.best is None or self.confirmed is None:
            return self.candidates
        found = self.confirmed
        best = replace(self.best, cost=found.cost, low=found.low, high=found.high)
        return tuple(best if candidate is self.best else candidate for candidate in self.candidates)

    def listed(self, num_prompts: int | None = None) -> tuple[Candidate, ...]:
        """`told` in the order of a table: the best one, the others measured on every prompt by cost, then
        those on fewer, whose cost is of those prompts alone and stands beside no other's.

        num_prompts: how many there are in all, the most of any candidate unless given.
        """
        most = num_prompts or max((candidate.prompts for candidate in self.candidates), default=0)
        return tuple(sorted(self.told, key=lambda c: (not self.is_best(c), c.prompts < most, c.cost)))

    def is_best(self, candidate: Candidate) -> bool:
        """Whether it is the best one, whichever of its costs it is told with."""
        return self.best is not None and candidate.setting == self.best.setting

    def is_on_front(self, candidate: Candidate) -> bool:
        """Whether it is on the front, whichever of its costs it is told with."""
        return any(candidate.setting == one.setting for one in self.front)

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate."""
        best = self.best.setting.label if self.best else None
        return pd.DataFrame(
            [
                {
                    "setting": candidate.setting.label,
                    "cost": candidate.cost,
                    "cost_low": candidate.low,
                    "cost_high": candidate.high,
                    "loss": candidate.loss,
                    "loss_worst": candidate.worst,
                    "prompts": candidate.prompts,
                    "on_front": candidate in self.front,
                    "best": candidate.setting.label == best,
                }
                for candidate in self.candidates
            ]
        )


def pareto_front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Candidates that no other beats in both cost and loss, cheapest first."""
    front: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.cost, c.loss)):
        if not front or candidate.loss < front[-1].loss:
            front.append(candidate)
    return tuple(front)
