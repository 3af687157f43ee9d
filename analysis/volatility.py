"""Volatility: how much a token's value vectors still move, by the number of steps since it was unmasked.

Only tokens committed early grow old within a run, so that the curve mixes age with the time of the commit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.drift import token_drift
from analysis.resampling import MIN_ROWS, resamples
from analysis.trace import Trace
from analysis.wording import counted

# Tokens that an age needs for its interval.
MIN_TOKENS = MIN_ROWS
TOKENS = {"answer": "answer token", "filler": "filler token", "all": "token"}


@dataclass(frozen=True, eq=False)
class Volatility:
    """Mean drift of generated tokens by age, the steps since the forward that first saw the token.

    ages: int [A], 0 is the jump from the mask's vectors to the token's. mean, low, high: float [A], the
    mean over the tokens observed at that age and its percentile bootstrap interval, see `resamples`: over
    prompts where there are enough of them, else over the tokens of these prompts, in blocks of such as were
    committed one after another. count: int [A], tokens observed.
    plateau: mean over the older half of the ages, plateau_high: how high one such age's mean may lie by
    chance; NaN below four ages. settled_age: the smallest age from which on no interval lies above
    plateau_high, None where there is no such age; it is no proof that nothing moves. recent: tokens committed
    within settled_age steps at this run's pace, the k that covers them. tokens: a name in TOKENS.
    """

    ages: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    count: np.ndarray
    plateau: float
    plateau_high: float
    settled_age: int | None
    recent: int | None
    num_prompts: int
    level: float
    tokens: str

    @property
    def described(self) -> tuple[str, str]:
        """From which age on the mean is in the noise of older ages, of how many tokens, by what measure."""
        if not len(self.ages):
            return "no token was watched long enough", f"an age counts from {MIN_TOKENS} tokens on"
        first, last = int(self.count[0]), int(self.count[-1])
        of = f"the mean over {counted(first, TOKENS[self.tokens])}, {last} at the oldest age"
        if math.isnan(self.plateau_high):
            return f"{of}: too few to tell where it settles", "a plateau takes the older half of four ages"
        plateau = (
            f"the plateau is the mean of ages {self.ages[len(self.ages) // 2]} to {self.ages[-1]}, "
            f"{self.plateau:.1e}"
        )
        if self.settled_age is None:
            return f"{of}, does not settle within this run", f"{plateau}; younger ages lie above its noise"
        return (
            f"{of}, is within the noise of older ages from age {self.settled_age}",
            f"{plateau}; from there on no {self.level:.0%} interval lies above {self.plateau_high:.1e}, "
            "the most that one age of it reaches by chance",
        )

    def to_frame(self) -> pd.DataFrame:
        """One row an age."""
        return pd.DataFrame(
            {"age": self.ages, "mean": self.mean, "low": self.low, "high": self.high, "count": self.count}
        )


def by_age(trace: Trace) -> np.ndarray:
    """Each generated token's drift at each age, float [Y, S]; NaN where it was not observed."""
    moved, _ = token_drift(trace)
    steps, decoded = len(trace.steps), trace.decoded_at
    aligned = np.full((trace.gen_length, steps), np.nan)
    for position in np.flatnonzero(decoded >= 0):
        # Committed after the forward of step d, the token is first seen by the forward of d + 1.
        later = moved[decoded[position] + 1 :, position]
        aligned[position, : len(later)] = later
    return aligned


def volatility(
    traces: Sequence[Trace],
    max_age: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    tokens: str = "answer",
) -> Volatility:
    """Pool tokens of traces by age. Raises ValueError where drift was not measured, or for bad `tokens`.

    tokens: a name in TOKENS; the answer's are those before the first end-of-text, and what follows it hardly
    moves. Ages observed on fewer than MIN_TOKENS tokens are left out: they come from the first tokens only.
    """
    if not traces:
        raise ValueError("traces is empty; allowed: at least one trace")
    if tokens not in TOKENS:
        raise ValueError(f"tokens is {tokens!r}; allowed: {', '.join(TOKENS)}")
    grids = [_in_order(trace, tokens) for trace in traces]
    width = min(max(grid.shape[1] for grid in grids), max_age + 1 if max_age is not None else 2**30)
    values = np.concatenate([_pad(grid, width) for grid in grids])
    prompt = np.repeat(np.arange(len(grids)), [len(grid) for grid in grids])
    count = (~np.isnan(values)).sum(axis=0)
    kept = np.flatnonzero(count >= MIN_TOKENS)
    ages = kept[kept == np.arange(len(kept))]
    values = values[:, ages]
    observed = ~np.isnan(values).all(axis=1)
    values, prompt = values[observed], np.unique(prompt[observed], return_inverse=True)[1]
    total, seen = np.nan_to_num(values), (~np.isnan(values)).astype(float)
    mean = _mean(total.sum(axis=0), seen.sum(axis=0))
    rng = np.random.default_rng(seed)
    drawn = [
        (weights @ total, weights @ seen) for weights in resamples(prompt, _deviations(values, mean), rng)
    ]
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.full((2, len(ages)), np.nan)
    plateau = plateau_high = math.nan
    old = slice(len(ages) // 2, None)
    if len(ages) >= 4:
        plateau = float(_mean(total[:, old].sum(), seen[:, old].sum()))
    if drawn and len(ages):
        sums, counts = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        low, high = np.nanquantile(_mean(sums, counts), ends, axis=0)
        if len(ages) >= 4:
            # The noise of one age's mean, not of the plateau's: each younger age is held against it.
            plateau_high = float(np.nanquantile(_mean(sums[:, old], counts[:, old]), ends[1]))
    settled = _settled(low[: len(ages) // 2], plateau_high)
    pace = np.mean([trace.num_committed.mean() for trace in traces])
    return Volatility(
        ages=ages,
        mean=mean,
        low=low,
        high=high,
        count=count[ages],
        plateau=plateau,
        plateau_high=plateau_high,
        settled_age=settled,
        recent=None if settled is None else math.ceil(settled * pace),
        num_prompts=len(traces),
        level=level,
        tokens=tokens,
    )


def _in_order(trace: Trace, tokens: str) -> np.ndarray:
    """`by_age` of some of a trace's tokens, in the order of their commits."""
    order = np.argsort(trace.decoded_at, kind="stable")
    inside = order < trace.answer_length
    chosen = {"answer": inside, "filler": ~inside, "all": inside | True}[tokens]
    return by_age(trace)[order[chosen]]


def _settled(low: np.ndarray, plateau_high: float) -> int | None:
    """The smallest young age from which on no interval lies above the plateau's."""
    if math.isnan(plateau_high) or not len(low):
        return None
    above = np.flatnonzero(low > plateau_high)
    settled = int(above[-1]) + 1 if len(above) else 0
    return settled if settled < len(low) else None


def _pad(grid: np.ndarray, width: int) -> np.ndarray:
    missing = max(width - grid.shape[1], 0)
    return np.pad(grid[:, :width], ((0, 0), (0, missing)), constant_values=np.nan)


def _deviations(values: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """How far values [R, A] lie off the means of their ages, in standard deviations; 0 where not observed."""
    off = np.nan_to_num(values - mean)
    spread = np.sqrt(_mean((off**2).sum(axis=0), (~np.isnan(values)).sum(axis=0)))
    return np.divide(off, spread, out=np.zeros_like(off), where=spread > 0)


def _mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    count = np.asarray(count, float)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
