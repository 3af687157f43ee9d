"""Tuning: the cheapest setting that keeps the answers, found by a race over prompts."""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, stdev

from analysis.comparison import agreement
from analysis.confirmation import REPEATS, as_long, confirmation, confirming_units, slow_gains, slow_units
from analysis.executors import Executor
from analysis.measure import Outcome, Unit, reference_of
from analysis.settings import Setting
from analysis.tuned import KEEPS as KEEPS
from analysis.tuned import OBJECTIVES as OBJECTIVES
from analysis.tuned import Candidate as Candidate
from analysis.tuned import Goal as Goal
from analysis.tuned import Tuning as Tuning
from analysis.tuned import pareto_front as pareto_front


class Search:
    """A race: the cheapest setting that may still keep the budget runs on, prompt after prompt.

    All settings are measured on a few prompts, which is enough to know their costs. Then the cheapest
    takes the prompts on which others lost most first, and is given up as soon as its losses exceed the
    whole budget. The first to pass every prompt is best once none is left that may be cheaper, compared
    on the same prompts. Successive halving spends the same but promotes by mean losses of few prompts,
    which told too little: on real prompts all of its finalists exceeded the budget, though settings
    within it existed.
    """

    def __init__(
        self,
        settings: Sequence[Setting],
        num_prompts: int,
        goal: Goal,
        eos_token_ids: Sequence[int],
        first_prompts: int = 4,
        seed: int = 0,
        width: int = 1,
        slowest: Setting | None = None,
    ) -> None:
        """slowest: one token a step without a cache, which the best is set beside at the end, if at all."""
        self.slowest = slowest
        self.settings = {setting.label: setting for setting in settings}
        self.goal, self.eos_token_ids, self.width = goal, eos_token_ids, width
        # Files of prompts are often sorted by kind.
        self.order = random.Random(seed).sample(range(num_prompts), num_prompts)
        self.first = self.order[:first_prompts]
        self.outcomes: dict[str, Outcome] = {}
        self.repeats: dict[str, Outcome] = {}
        self._losses: dict[str, float] = {}

    def recall(self, outcomes: Iterable[Outcome]) -> None:
        """Take over what was measured before; outcomes of other settings are left out."""
        references = [reference_of(setting) for setting in self.settings.values()]
        every = (*self.settings.values(), *references)
        known = {Unit(setting, prompt).key for setting in every for prompt in self.order}
        again = {
            Unit(setting, prompt, repeat).key
            for setting in (*every, *(as_long(self.slowest, one) for one in every if self.slowest))
            for prompt in self.order
            for repeat in range(1, REPEATS + 1)
        }
        for outcome in outcomes:
            if outcome.key in known:
                self.outcomes[outcome.key] = outcome
            elif outcome.key in again:
                self.repeats[outcome.key] = outcome

    def run(self, execute: Executor) -> Iterator[Outcome]:
        """Measure until the best is known, `width` settings at a time, each outcome as it comes.

        What `outcomes` holds is not measured again. Then the seconds of the best one are confirmed, and set
        beside those of the slowest.
        """
        settings = self.settings.values()
        references = {reference_of(setting).label: reference_of(setting) for setting in settings}
        start = []
        for prompt in self.order:
            # Next to each other in time, so that a machine that slows down slows both.
            beside = (*references.values(), *(settings if prompt in self.first else ()))
            start += [Unit(setting, prompt) for setting in beside]
        yield from self._measure(execute, start)
        while racing := self._racing():
            yield from self._measure(
                execute, [Unit(c.setting, self._hardest(c)) for c in racing[: self.width]]
            )
        for again in (self._confirming, self._slow):
            for outcome in execute([unit for unit in again() if unit.key not in self.repeats]):
                self.repeats[outcome.key] = outcome
                yield outcome

    def result(self) -> Tuning:
        """What is known by now."""
        ranked = self._ranked()
        finished = [candidate for candidate in ranked if candidate.prompts == len(self.order)]
        confirming, slow = self._confirming(), self._slow()
        return Tuning(
            candidates=tuple(ranked),
            best=next(iter(self._within(finished)), None),
            front=pareto_front(finished),
            goal=self.goal,
            measured=len(self.outcomes) + sum(unit.key in self.repeats for unit in (*confirming, *slow)),
            full_grid=self.full_grid,
            confirmed=confirmation(confirming, self.repeats),
            gains=tuple(slow_gains(slow, confirming, self.repeats)),
        )

    @property
    def choosing(self) -> list[Outcome]:
        """What choosing took: the race's outcomes and those that confirm the choice."""
        confirming = (self.repeats.get(unit.key) for unit in self._confirming())
        return [*self.outcomes.values(), *(found for found in confirming if found)]

    @property
    def full_grid(self) -> int:
        """Units that every setting on every prompt takes, references included."""
        references = {reference_of(setting).label for setting in self.settings.values()}
        return (len(self.settings) + len(references)) * len(self.order)

    @property
    def most_runs(self) -> int:
        """The full grid's units and those that confirm a choice and set it beside one token a step."""
        if self.goal.objective != "seconds":
            return self.full_grid
        again = confirming_units(next(iter(self.settings.values())), self.order, self.full_grid)
        return self.full_grid + len(again) + (len(slow_units(self.slowest, again)) if self.slowest else 0)

    def _confirming(self) -> list[Unit]:
        """What confirms the best one's seconds; none before the race is over."""
        if self.goal.objective != "seconds" or self._racing():
            return []
        finished = [found for found in self._ranked() if found.prompts == len(self.order)]
        best = next(iter(self._within(finished)), None)
        return confirming_units(best.setting, self.order, self.full_grid) if best else []

    def _slow(self) -> list[Unit]:
        """What sets the best one beside one token a step."""
        return slow_units(self.slowest, self._confirming()) if self.slowest else []

    def _measure(self, execute: Executor, units: list[Unit]) -> Iterator[Outcome]:
        for outcome in execute([unit for unit in units if unit.key not in self.outcomes]):
            self.outcomes[outcome.key] = outcome
            yield outcome

    def _racing(self) -> list[Candidate]:
        """Unfinished settings that may keep the budget and may cost less than the best finished one."""
        within = self._within(self._ranked())
        total = len(self.order)
        best = next((candidate for candidate in within if candidate.prompts == total), None)
        racing = [candidate for candidate in within if candidate.prompts < total]
        return [one for one in racing if best is None or self._may_beat(one.setting, best.setting)]

    def _may_beat(self, setting: Setting, best: Setting) -> bool:
        """Whether it is not dearer than the best, by more than a standard error, on its own prompts.

        Against the best's cost on all of them a few cheap or dear prompts would decide; without the
        allowance, the noise that made the best look cheapest on the first ones would.
        """
        ours, theirs = self._costs(setting), self._costs(best)
        ratios = [math.log(ours[prompt] / theirs[prompt]) for prompt in ours]
        error = stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else 0.0
        return mean(ratios) - error < 0

    def _costs(self, setting: Setting) -> dict[int, float]:
        """The objective over that without a cache, by prompt."""
        name = self.goal.objective
        return {
            prompt: getattr(ours, name) / getattr(theirs, name)
            for prompt, (ours, theirs) in self._pairs(setting).items()
        }

    def _within(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        # Sums of shares are not exact.
        return [candidate for candidate in candidates if candidate.loss <= self.goal.budget + 1e-9]

    def _hardest(self, candidate: Candidate) -> int:
        """The prompt, not yet tried by this setting, on which others have lost most so far."""
        lost: dict[int, list[float]] = {prompt: [] for prompt in self.order}
        for setting in self.settings.values():
            for prompt, (ours, theirs) in self._pairs(setting).items():
                lost[prompt].append(self._loss(ours, theirs))
        everywhere = mean(loss for losses in lost.values() for loss in losses)
        tried = self._pairs(candidate.setting)
        left = [prompt for prompt in self.order if prompt not in tried]
        # A prompt few have tried is taken to be about as hard as the others.
        return max(left, key=lambda prompt: (sum(lost[prompt]) + everywhere) / (len(lost[prompt]) + 1))

    def _ranked(self) -> list[Candidate]:
        """Those that may keep the budget by cost, then the others by loss; unmeasured ones are left out."""
        candidates = [found for setting in self.settings.values() if (found := self._candidate(setting))]
        within = self._within(candidates)
        others = [candidate for candidate in candidates if candidate not in within]
        return sorted(within, key=lambda c: c.cost) + sorted(others, key=lambda c: c.loss)

    def _candidate(self, setting: Setting) -> Candidate | None:
        pairs = self._pairs(setting)
        if not pairs:
            return None
        losses = [self._loss(ours, theirs) for ours, theirs in pairs.values()]
        reference = reference_of(setting)
        left = [prompt for prompt in self.order if prompt not in pairs]
        least = sum(losses) + sum(self._least_loss(self.outcomes.get(Unit(reference, p).key)) for p in left)
        objective = self.goal.objective
        spent = [(getattr(ours, objective), getattr(theirs, objective)) for ours, theirs in pairs.values()]
        total, whole = (sum(column) for column in zip(*spent, strict=True))
        ratios = self._costs(setting).values()
        loss = least / len(self.order)
        return Candidate(setting, total / whole, loss, len(pairs), min(ratios), max(ratios), max(losses))

    def _pairs(self, setting: Setting) -> dict[int, tuple[Outcome, Outcome]]:
        """(ours, reference's) outcomes by prompt, where both are known."""
        reference, pairs = reference_of(setting), {}
        for prompt in self.order:
            ours = self.outcomes.get(Unit(setting, prompt).key)
            theirs = self.outcomes.get(Unit(reference, prompt).key)
            if ours is not None and theirs is not None:
                pairs[prompt] = (ours, theirs)
        return pairs

    def _loss(self, ours: Outcome, theirs: Outcome) -> float:
        # Asked for again at every turn of the race.
        if ours.key not in self._losses:
            self._losses[ours.key] = self._measured_loss(ours, theirs)
        return self._losses[ours.key]

    def _measured_loss(self, ours: Outcome, theirs: Outcome) -> float:
        if self.goal.keep == "agreement":
            return 1 - agreement(ours.tokens, theirs.tokens, self.eos_token_ids)
        if ours.solved is None or theirs.solved is None:
            raise ValueError("keep is 'accuracy', but a prompt has no grader; allowed: agreement")
        return float(theirs.solved) - float(ours.solved)

    def _least_loss(self, theirs: Outcome | None) -> float:
        """The least that a prompt can add: a cache may solve what no cache does not."""
        return 0.0 if self.goal.keep == "agreement" or (theirs is not None and theirs.solved) else -1.0
