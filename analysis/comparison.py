"""Comparison: settings side by side, speed against both baselines, tokens against no cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np
import pandas as pd

from analysis.measure import Outcome, reference_of, vanilla
from analysis.settings import Setting
from analysis.spread import spread
from analysis.wording import figure, quartiles
from core import GenerationConfig
from core.end_of_text import end_of_text
from core.training.evaluate import wilson


@dataclass(frozen=True)
class Summary:
    """One setting over its prompts and repeats; what repeats don't change is of a prompt's first run.

    tokens_per_second: median over prompts of the median over repeats; low, high: its spread over prompts.
    repeat_spread: median over prompts of (slowest - fastest) / median of the repeats' seconds, None with one
    repeat. speedup_*: median over prompts of the other's seconds / seconds, each the median of its repeats,
    so that prompts are compared with themselves; *_low, *_high: spread over prompts; None where the other was
    not measured. `vanilla` commits one token a step, `parallel` by the setting's own rule, both without a
    cache; `fastest` has the most tokens a second of all. Spreads are those of `analysis.spread`.

    Means over prompts: flops_ratio, operations over those of `parallel`; recompute_ratio; full_step_ratio;
    tokens_per_step, of every committed position, also such as only fill in what follows the end of the text;
    agreement, share of tokens equal to `parallel`'s up to the later end-of-text. decision_overhead: median
    over all runs. identical: share of prompts without any difference. solved of graded prompts; lost,
    gained: prompts that only `parallel` solves, and that only this setting does, None where none was graded.
    """

    setting: str
    prompts: int
    repeats: int
    tokens_per_second: float
    low: float
    high: float
    repeat_spread: float | None
    speedup_vanilla: float | None
    speedup_vanilla_low: float | None
    speedup_vanilla_high: float | None
    speedup_parallel: float | None
    speedup_parallel_low: float | None
    speedup_parallel_high: float | None
    speedup_fastest: float | None
    speedup_fastest_low: float | None
    speedup_fastest_high: float | None
    flops_ratio: float | None
    recompute_ratio: float
    full_step_ratio: float
    tokens_per_step: float
    decision_overhead: float
    agreement: float | None
    identical: float | None
    solved: int
    graded: int
    lost: int | None
    gained: int | None

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

    @property
    def changed_text(self) -> str:
        """How many prompts a cache has lost and gained against the same commits without one."""
        return "not graded" if self.lost is None else f"{self.lost}, {self.gained}"

    def speedup_text(self, against: str) -> str:
        """How many times as fast as `vanilla`, `parallel` or the `fastest`, with the spread over prompts."""
        ratio, low, high = (getattr(self, f"speedup_{against}{end}") for end in ("", "_low", "_high"))
        if ratio is None or self.prompts == 1:
            return figure(ratio)
        return f"{figure(ratio)} ({quartiles(low, high, self.prompts, self.repeats)})"


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
    fastest = max(by_setting.values(), key=lambda runs: median(_speeds(runs)), default={})
    summaries = [
        _summary(
            setting.label,
            by_setting[setting.label],
            {
                "vanilla": slowest,
                "parallel": by_setting.get(reference_of(setting).label, {}),
                "fastest": fastest,
            },
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


def _summary(label: str, runs: Runs, others: Mapping[str, Runs], eos: Sequence[int]) -> Summary:
    reference = others["parallel"]
    firsts = [of_prompt[0] for of_prompt in runs.values()]
    speeds = _speeds(runs)
    spreads = [_spread(of_prompt) for of_prompt in runs.values() if len(of_prompt) > 1]
    shared = [prompt for prompt in runs if prompt in reference]
    equal = [agreement(runs[p][0].tokens, reference[p][0].tokens, eos) for p in shared]
    graded = [run.solved for run in firsts if run.solved is not None]
    answers = [(runs[p][0].solved, reference[p][0].solved) for p in shared]
    known = [(ours, theirs) for ours, theirs in answers if ours is not None and theirs is not None]
    low, high = spread(speeds)
    speedups: dict[str, float | None] = {}
    for name, other in others.items():
        speedups |= _speedup(f"speedup_{name}", runs, other)
    return Summary(
        setting=label,
        prompts=len(runs),
        repeats=max(len(of_prompt) for of_prompt in runs.values()),
        tokens_per_second=median(speeds),
        low=low,
        high=high,
        repeat_spread=median(spreads) if spreads else None,
        **speedups,
        flops_ratio=mean(runs[p][0].flops / reference[p][0].flops for p in shared) if shared else None,
        recompute_ratio=mean(run.recompute_ratio for run in firsts),
        full_step_ratio=mean(run.full_steps / run.steps for run in firsts),
        tokens_per_step=mean(run.tokens_per_step for run in firsts),
        decision_overhead=median(run.decision_overhead for of in runs.values() for run in of),
        agreement=mean(equal) if equal else None,
        identical=mean(share == 1 for share in equal) if equal else None,
        solved=sum(graded),
        graded=len(graded),
        lost=sum(theirs and not ours for ours, theirs in known) if known else None,
        gained=sum(ours and not theirs for ours, theirs in known) if known else None,
    )


def _speeds(runs: Runs) -> list[float]:
    """Tokens a second of every prompt, the median of its repeats."""
    return [median(run.tokens_per_second for run in of_prompt) for of_prompt in runs.values()]


def _spread(runs: Sequence[Outcome]) -> float:
    seconds = [run.seconds for run in runs]
    return (max(seconds) - min(seconds)) / median(seconds)


def _speedup(name: str, runs: Runs, other: Runs) -> dict[str, float | None]:
    """The fields of that name: over the prompts of both, the other's seconds / seconds.

    Seconds of another number of tokens are no baseline.
    """
    ratios = [
        median(run.seconds for run in other[prompt]) / median(run.seconds for run in of_prompt)
        for prompt, of_prompt in runs.items()
        if prompt in other and len(other[prompt][0].tokens) == len(of_prompt[0].tokens)
    ]
    if not ratios:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    low, high = spread(ratios)
    return {name: median(ratios), f"{name}_low": low, f"{name}_high": high}
