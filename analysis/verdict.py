"""Verdict: what a tuning chose, held against a full grid that was measured apart from it."""

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from analysis.measure import Outcome
from analysis.tuning import Candidate, Search, Tuning


@dataclass(frozen=True)
class Verdict:
    """A race and the full grid over the same settings, prompts and goal, each measured for itself.

    chosen: the race's choice, as the grid measured it; best: the grid's own choice. Either is None where
    nothing kept the budget. excess: how much more the choice costs than the grid's, as a share of the
    latter; None without both. runs, seconds: spent by the race, what confirms its choice included, and by the
    grid; both with their references.
    """

    chosen: Candidate | None
    best: Candidate | None
    runs: tuple[int, int]
    seconds: tuple[float, float]

    @property
    def excess(self) -> float | None:
        if self.chosen is None or self.best is None:
            return None
        return self.chosen.cost / self.best.cost - 1

    @property
    def runs_share(self) -> float:
        """Runs of the race over those of the grid."""
        return self.runs[0] / self.runs[1]

    @property
    def seconds_share(self) -> float:
        """Measured seconds of the race over those of the grid."""
        return self.seconds[0] / self.seconds[1]

    def to_frame(self) -> pd.DataFrame:
        """Two rows: the race and the full grid, both choices with the cost and loss the grid measured."""
        choices = (self.chosen, self.best)
        return pd.DataFrame(
            {
                "search": ["race", "full grid"],
                "runs": list(self.runs),
                "seconds": list(self.seconds),
                "setting": [choice and choice.setting.label for choice in choices],
                "cost": [choice and choice.cost for choice in choices],
                "loss": [choice and choice.loss for choice in choices],
            }
        )


def judge(race: Search, grid: Search) -> Verdict:
    """Compare a race with a grid. Raises ValueError where the grid was not measured to its end."""
    raced, full = race.result(), grid.result()
    held = len(grid.outcomes)
    if held < full.full_grid:
        raise ValueError(f"the grid holds {held} of its {full.full_grid} runs; measure the rest")
    spent = race.choosing
    return Verdict(
        chosen=_as_measured_by(full, raced.best),
        best=full.best,
        runs=(len(spent), held),
        seconds=(_seconds(spent), _seconds(grid.outcomes.values())),
    )


def _as_measured_by(full: Tuning, chosen: Candidate | None) -> Candidate | None:
    return next((c for c in full.candidates if chosen and c.setting.label == chosen.setting.label), None)


def _seconds(outcomes: Collection[Outcome]) -> float:
    return sum(outcome.seconds for outcome in outcomes)
