"""Tuning: the cheapest setting that keeps the answers, found by successive halving over prompts."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import pandas as pd

from analysis.comparison import agreement
from analysis.executors import Executor
from analysis.measure import Outcome, Unit, reference_of
from analysis.settings import Setting

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
    """A setting as measured so far. cost: objective over that without a cache, below 1 saves.

    loss: share of agreement or accuracy lost, loss_error its standard error. prompts: measured on.
    """

    setting: Setting
    cost: float
    loss: float
    loss_error: float
    prompts: int


@dataclass(frozen=True)
class Tuning:
    """candidates: all, as measured when they were given up. best: None where no setting keeps the budget.

    front: those measured on every prompt that no other such one beats in both cost and loss, cheapest
    first. measured: units decoded, full_grid: units a full grid would have taken.
    """

    candidates: tuple[Candidate, ...]
    best: Candidate | None
    front: tuple[Candidate, ...]
    goal: Goal
    measured: int
    full_grid: int

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate."""
        best = self.best.setting.label if self.best else None
        return pd.DataFrame(
            [
                {
                    "setting": candidate.setting.label,
                    "cost": candidate.cost,
                    "loss": candidate.loss,
                    "loss_error": candidate.loss_error,
                    "prompts": candidate.prompts,
                    "on_front": candidate in self.front,
                    "best": candidate.setting.label == best,
                }
                for candidate in self.candidates
            ]
        )


class Search:
    """Successive halving: all settings on a few prompts, the better third on more, and so on.

    Prompts are taken in an order drawn once, since files are often sorted by kind. A setting that can't be
    told from one that keeps the budget, at one standard error, counts as keeping it until the last round.
    """

    def __init__(
        self,
        settings: Sequence[Setting],
        num_prompts: int,
        goal: Goal,
        eos_token_ids: Sequence[int],
        keep_one_in: int = 3,
        first_prompts: int = 4,
        seed: int = 0,
    ) -> None:
        self.settings = list({setting.label: setting for setting in settings}.values())
        self.goal, self.eos_token_ids = goal, eos_token_ids
        self.keep_one_in, self.first_prompts = keep_one_in, first_prompts
        self.order = random.Random(seed).sample(range(num_prompts), num_prompts)
        self.outcomes: dict[str, Outcome] = {}

    def rounds(self) -> list[tuple[int, int]]:
        """(settings, prompts) of each round; the last one has every prompt."""
        plan, left, total = [], len(self.settings), len(self.order)
        prompts = min(self.first_prompts, total)
        while prompts < total:
            plan.append((left, prompts))
            left = max(math.ceil(left / self.keep_one_in), min(2, left))
            prompts = min(prompts * self.keep_one_in, total)
        return [*plan, (left, total)]

    @property
    def planned(self) -> int:
        """Units that all rounds measure, references included, less those already in `outcomes`."""
        references = len({reference_of(setting).label for setting in self.settings})
        total = before = 0
        for size, prompts in self.rounds():
            total += (size + references) * (prompts - before)
            before = prompts
        return max(total - len(self.outcomes), 0)

    def run(self, execute: Executor) -> Iterator[Outcome]:
        """Measure round by round, each outcome as it comes; what `outcomes` holds is not measured again."""
        alive = self.settings
        for index, (size, prompts) in enumerate(self.rounds()):
            if index:
                alive = [candidate.setting for candidate in self._ranked(alive, slack=True)[:size]]
            wanted = {setting.label: setting for setting in (*map(reference_of, alive), *alive)}
            units = [Unit(setting, prompt) for prompt in self.order[:prompts] for setting in wanted.values()]
            for outcome in execute([unit for unit in units if unit.key not in self.outcomes]):
                self.outcomes[outcome.key] = outcome
                yield outcome

    def result(self) -> Tuning:
        """What is known by now; `best` and `front` only count settings measured on every prompt."""
        ranked = self._ranked(self.settings, slack=False)
        finished = [candidate for candidate in ranked if candidate.prompts == len(self.order)]
        best = next((c for c in finished if c.loss <= self.goal.budget), None)
        references = {reference_of(setting).label for setting in self.settings}
        return Tuning(
            candidates=tuple(ranked),
            best=best,
            front=pareto_front(finished),
            goal=self.goal,
            measured=len(self.outcomes),
            full_grid=(len(self.settings) + len(references)) * len(self.order),
        )

    def _ranked(self, settings: Sequence[Setting], slack: bool) -> list[Candidate]:
        """Those that keep the budget by cost, then the others by loss; unmeasured ones are left out."""
        candidates = [candidate for setting in settings if (candidate := self._candidate(setting))]

        def rank(candidate: Candidate) -> tuple[bool, float]:
            loss = candidate.loss - (candidate.loss_error if slack else 0.0)
            over = loss > self.goal.budget
            return over, candidate.loss if over else candidate.cost

        return sorted(candidates, key=rank)

    def _candidate(self, setting: Setting) -> Candidate | None:
        pairs = []
        for prompt in self.order:
            ours = self.outcomes.get(Unit(setting, prompt).key)
            theirs = self.outcomes.get(Unit(reference_of(setting), prompt).key)
            if ours is not None and theirs is not None:
                pairs.append((ours, theirs))
        if not pairs:
            return None
        losses = [self._loss(ours, theirs) for ours, theirs in pairs]
        objective = self.goal.objective
        spent, reference = (sum(getattr(run, objective) for run in runs) for runs in zip(*pairs, strict=True))
        error = stdev(losses) / math.sqrt(len(losses)) if len(losses) > 1 else math.inf
        return Candidate(setting, spent / reference, mean(losses), error, len(pairs))

    def _loss(self, ours: Outcome, theirs: Outcome) -> float:
        if self.goal.keep == "agreement":
            return 1 - agreement(ours.tokens, theirs.tokens, self.eos_token_ids)
        if ours.solved is None or theirs.solved is None:
            raise ValueError("keep is 'accuracy', but a prompt has no grader; allowed: agreement")
        return float(theirs.solved) - float(ours.solved)


def pareto_front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Candidates that no other beats in both cost and loss, cheapest first."""
    front: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.cost, c.loss)):
        if not front or candidate.loss < front[-1].loss:
            front.append(candidate)
    return tuple(front)
