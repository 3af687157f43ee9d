"""Comparison: settings side by side, speed against both baselines, tokens against no cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np
import pandas as pd

from analysis.measure import Outcome, reference_of, vanilla
from analysis.settings import Setting
from core import GenerationConfig
from core.end_of_text import end_of_text
from core.training.evaluate import wilson


@dataclass(frozen=True)
class Summary:
    """One setting over its prompts and repeats.

    tokens_per_second: median over prompts of the median over repeats, low and high the quartiles over
    prompts. repeat_spread: median over prompts of (slowest - fastest) / median of the repeats' seconds,
    None with one repeat. speedup_*: median over prompts of baseline seconds / seconds, None where the
    baseline was not measured: `vanilla` commits one token a step, `parallel` by the setting's own rule,
    both without a cache. flops_ratio: operations over those of `parallel`. agreement: mean share of
    tokens equal to `parallel`'s up to the later end-of-text, identical: share of prompts without any
    difference. solved of graded prompts. Other ratios are means over prompts.
    """

    setting: str
    prompts: int
    repeats: int
    tokens_per_second: float
    low: float
    high: float
    repeat_spread: float | None
    speedup_vanilla: float | None
    speedup_parallel: float | None
    flops_ratio: float | None
    recompute_ratio: float
    full_step_ratio: float
    tokens_per_step: float
    decision_overhead: float
    agreement: float | None
    identical: float | None
    solved: int
    graded: int

    @property
    def accuracy(self) -> float | None:
        return self.solved / self.graded if self.graded else None

    @property
    def accuracy_interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the accuracy."""
        return wilson(self.solved, self.graded) if self.graded else None

    @property
    def solved_text(self) -> str:
        """How many were solved, with the interval of the share."""
        if self.accuracy_interval is None:
            return "not graded"
        low, high = self.accuracy_interval
        return f"{self.solved} of {self.graded}, {low:.0%}..{high:.0%}"


@dataclass(frozen=True)
class Comparison:
    """Summaries in the order of the settings."""

    summaries: tuple[Summary, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row a setting."""
        return pd.DataFrame([{**vars(summary), "accuracy": summary.accuracy} for summary in self.summaries])


def summarise(
    outcomes: Sequence[Outcome],
    settings: Sequence[Setting],
    base: GenerationConfig,
    eos_token_ids: Sequence[int],
) -> Comparison:
    """Reduce outcomes to a row a setting; settings without an outcome are left out."""
    by_setting: dict[str, dict[int, list[Outcome]]] = {}
    for outcome in outcomes:
        by_setting.setdefault(outcome.setting, {}).setdefault(outcome.prompt, []).append(outcome)
    slowest = by_setting.get(vanilla(base).label, {})
    summaries = [
        _summary(
            setting.label,
            by_setting[setting.label],
            slowest,
            by_setting.get(reference_of(setting).label, {}),
            eos_token_ids,
        )
        for setting in settings
        if setting.label in by_setting
    ]
    return Comparison(tuple(summaries))


def agreement(ours: Sequence[int], theirs: Sequence[int], eos_token_ids: Sequence[int]) -> float:
    """Share of equal tokens up to and including the later of the two first end-of-text tokens."""
    length = 1 + max(end_of_text(ours, eos_token_ids), end_of_text(theirs, eos_token_ids))
    return float(np.mean(np.array(ours[:length]) == np.array(theirs[:length])))


Runs = Mapping[int, list[Outcome]]


def _summary(label: str, runs: Runs, slowest: Runs, reference: Runs, eos: Sequence[int]) -> Summary:
    firsts = [of_prompt[0] for of_prompt in runs.values()]
    speeds = [median(run.tokens_per_second for run in of_prompt) for of_prompt in runs.values()]
    spreads = [_spread(of_prompt) for of_prompt in runs.values() if len(of_prompt) > 1]
    shared = [prompt for prompt in runs if prompt in reference]
    equal = [agreement(runs[p][0].tokens, reference[p][0].tokens, eos) for p in shared]
    graded = [run.solved for run in firsts if run.solved is not None]
    low, high = np.quantile(speeds, [0.25, 0.75])
    return Summary(
        setting=label,
        prompts=len(runs),
        repeats=max(len(of_prompt) for of_prompt in runs.values()),
        tokens_per_second=median(speeds),
        low=float(low),
        high=float(high),
        repeat_spread=median(spreads) if spreads else None,
        speedup_vanilla=_speedup(runs, slowest),
        speedup_parallel=_speedup(runs, reference),
        flops_ratio=mean(runs[p][0].flops / reference[p][0].flops for p in shared) if shared else None,
        recompute_ratio=mean(run.recompute_ratio for run in firsts),
        full_step_ratio=mean(run.full_steps / run.steps for run in firsts),
        tokens_per_step=mean(run.tokens_per_step for run in firsts),
        decision_overhead=median(run.decision_overhead for of in runs.values() for run in of),
        agreement=mean(equal) if equal else None,
        identical=mean(share == 1 for share in equal) if equal else None,
        solved=sum(graded),
        graded=len(graded),
    )


def _spread(runs: Sequence[Outcome]) -> float:
    seconds = [run.seconds for run in runs]
    return (max(seconds) - min(seconds)) / median(seconds)


def _speedup(runs: Runs, baseline: Runs) -> float | None:
    """Median over the prompts of both of baseline seconds / seconds, each the median of its repeats."""
    ratios = [
        median(run.seconds for run in baseline[prompt]) / median(run.seconds for run in of_prompt)
        for prompt, of_prompt in runs.items()
        if prompt in baseline
    ]
    return median(ratios) if ratios else None
