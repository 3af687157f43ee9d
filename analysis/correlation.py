"""Does entropy predict drift? Pairs of a step's signal with the next step's drift, and how they rank.

Decoding goes on behind an answer's end: the steps that fill in end-of-text are nearly certain and move nearly
nothing. Pooled with the others they make a contrast between answer and filler of what should be one within
the answer. So both are told: within the answer, and over all steps, as a protocol of a fixed length has it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from analysis.drift import drift
from analysis.ranks import RankCorrelation, spearman
from analysis.resampling import resamples
from analysis.roc import Detection, roc
from analysis.trace import Trace

# What a step could tell of the coming drift: EntropyCache's signal first, then its rivals.
SIGNALS = {
    "max_entropy": "largest entropy of the tokens committed (nats)",
    "mean_entropy": "mean entropy of the tokens committed (nats)",
    "max_doubt": "largest 1 - confidence of the tokens committed",
    "num_committed": "tokens committed",
    "since_full": "steps since the last full refresh",
    # Drift falls as a canvas fills up: the alarm that takes no look at the model is an early step.
    "earliness": "earliness (0 at the first step, falling by 1 each step)",
}


@dataclass(frozen=True, eq=False)
class DriftPairs:
    """Pairs (signals of step t, drift between the forwards of t and t+1), pooled over prompts.

    signals: name in SIGNALS to float [n]; drift: float [n]; step, prompt: int [n], step t and the index of
    the trace. in_answer: bool [n], step t committed a position before the first end-of-text of the text as it
    became, or as far as it is decoded. positions: which drift (see POSITION_SETS). every_position: see Drift.
    """

    signals: Mapping[str, np.ndarray]
    drift: np.ndarray
    step: np.ndarray
    prompt: np.ndarray
    in_answer: np.ndarray
    positions: str
    every_position: bool

    @property
    def num_prompts(self) -> int:
        return len(np.unique(self.prompt))

    @property
    def num_behind(self) -> int:
        """Pairs whose step only filled in what follows the end of the text."""
        return int((~self.in_answer).sum())

    def of_prompt(self, index: int) -> "DriftPairs":
        """The pairs of one trace."""
        return self.at(np.flatnonzero(self.prompt == index))

    def of_answer(self) -> "DriftPairs":
        """The pairs within the answer."""
        return self.at(np.flatnonzero(self.in_answer))

    def at(self, rows: np.ndarray) -> "DriftPairs":
        """Some of the pairs, int [m], in that order."""
        signals = {name: values[rows] for name, values in self.signals.items()}
        own = {name: getattr(self, name)[rows] for name in ("drift", "step", "prompt", "in_answer")}
        return replace(self, signals=signals, **own)

    def to_frame(self) -> pd.DataFrame:
        """One row a pair."""
        own = {"prompt": self.prompt, "step": self.step, "in_answer": self.in_answer}
        return pd.DataFrame({**own, **self.signals, "drift": self.drift})


def drift_pairs(traces: Sequence[Trace], positions: str = "cached") -> DriftPairs:
    """Pair each step's signals with the next step's drift. Raises ValueError where none was measured."""
    names = ("prompt", "step", "in_answer", "drift", *SIGNALS)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
    whole = True
    for index, trace in enumerate(traces):
        moved = drift(trace)
        whole &= moved.every_position
        signals = _signals(trace)
        for name in SIGNALS:
            columns[name].append(signals[name][:-1])
        columns["drift"].append(moved.by_step(positions)[1:])
        columns["prompt"].append(np.full(max(len(trace.steps) - 1, 0), index))
        columns["step"].append(np.array([step.step for step in trace.steps[:-1]], dtype=int))
        inside = [min(step.committed, default=0) < trace.answer_length for step in trace.steps[:-1]]
        columns["in_answer"].append(np.array(inside, dtype=bool))
    pooled = {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in columns.items()}
    kept = ~np.isnan(pooled["drift"]) & ~np.isnan(pooled["max_entropy"])
    pooled = {name: values[kept] for name, values in pooled.items()}
    return DriftPairs(
        signals={name: pooled[name].astype(float) for name in SIGNALS},
        drift=pooled["drift"],
        step=pooled["step"].astype(int),
        prompt=pooled["prompt"].astype(int),
        in_answer=pooled["in_answer"].astype(bool),
        positions=positions,
        every_position=whole,
    )


def _signals(trace: Trace) -> dict[str, np.ndarray]:
    """Every signal at every step, float [S]; NaN where nothing was committed."""
    steps = trace.steps
    full_at = np.maximum.accumulate([step.step if step.full else -1 for step in steps])
    return {
        "max_entropy": trace.max_entropy,
        "mean_entropy": np.array([np.mean(step.entropy) if step.entropy else np.nan for step in steps]),
        "max_doubt": np.array([1 - min(step.confidence, default=np.nan) for step in steps]),
        "num_committed": trace.num_committed.astype(float),
        "since_full": np.array([step.step for step in steps]) - full_at.astype(float),
        "earliness": -np.array([step.step for step in steps], dtype=float),
    }


@dataclass(frozen=True, eq=False)
class Correlation:
    """Spearman's coefficient of every signal with the coming drift.

    plain: by signal, pooled over prompts. partial: the same with the number committed partialled out
    (equal to plain where that number never varies). given_step: with the step partialled out, since both
    entropy and drift fall as a run goes on; not known of earliness, which is the step. per_prompt: mean over
    prompts of each prompt's own plain coefficient, NaN where none has one. without_tail: the same of the
    pairs within the answer, None where all are.
    """

    plain: Mapping[str, RankCorrelation]
    partial: Mapping[str, RankCorrelation]
    given_step: Mapping[str, RankCorrelation]
    per_prompt: Mapping[str, float]
    count_varies: bool
    without_tail: "Correlation | None" = None

    @property
    def answer(self) -> "Correlation":
        """Of the pairs within the answer: what tells whether a signal tells while the answer is written."""
        return self.without_tail or self

    def to_frame(self) -> pd.DataFrame:
        """One row a signal, over all pairs; `answer.to_frame()` has those within the answer."""
        rows = []
        for name, plain in self.plain.items():
            partial, given_step = self.partial[name], self.given_step[name]
            rows.append(
                {
                    "signal": name,
                    "rho": plain.rho,
                    "low": plain.low,
                    "high": plain.high,
                    "p": plain.p,
                    "per_prompt": self.per_prompt[name],
                    "partial": partial.rho,
                    "partial_low": partial.low,
                    "partial_high": partial.high,
                    "partial_p": partial.p,
                    "given_step": given_step.rho,
                    "given_step_low": given_step.low,
                    "given_step_high": given_step.high,
                    "n": plain.n,
                    "ties": plain.ties,
                    "prompts": plain.groups,
                }
            )
        return pd.DataFrame(rows)


def correlate(pairs: DriftPairs, signals: Sequence[str] = tuple(SIGNALS), seed: int = 0) -> Correlation:
    """Rank every signal against the coming drift: plainly, given the number committed, given the step.

    Over all pairs, and over those within the answer alone where there are others.
    """
    inside = _correlate(pairs.of_answer(), signals, seed) if pairs.num_behind else None
    return replace(_correlate(pairs, signals, seed), without_tail=inside)


def _correlate(pairs: DriftPairs, signals: Sequence[str], seed: int) -> Correlation:
    committed, step = pairs.signals["num_committed"], pairs.step.astype(float)
    varies = bool(len(committed) and np.ptp(committed) > 0)
    plain, partial, given_step, per_prompt = {}, {}, {}, {}
    for name in signals:
        values = pairs.signals[name]

        def rank(given: np.ndarray | None, values: np.ndarray = values) -> RankCorrelation:
            return spearman(values, pairs.drift, given, group=pairs.prompt, seed=seed)

        plain[name] = rank(None)
        partial[name] = rank(committed) if varies else plain[name]
        given_step[name] = rank(step)
        per_prompt[name] = _mean_of_prompts(pairs, name)
    return Correlation(plain, partial, given_step, per_prompt, count_varies=varies)


def _mean_of_prompts(pairs: DriftPairs, name: str) -> float:
    each = []
    for index in np.unique(pairs.prompt):
        of = pairs.of_prompt(index)
        ranks = np.stack([rankdata(values) for values in (of.signals[name], of.drift)])
        if len(of.drift) > 2 and (np.ptp(ranks, axis=1) > 0).all():
            each.append(float(np.corrcoef(ranks)[0, 1]))
    return float(np.mean(each)) if each else float("nan")


def detect(
    pairs: DriftPairs,
    signal: str = "max_entropy",
    top_share: float = 0.1,
    level: float = 0.95,
    seed: int = 0,
) -> Detection:
    """ROC of a signal as a detector of the steps that drift most; high is the alarm, whatever the data say.

    signal: a column of `DriftPairs.to_frame`. Raises ValueError for a bad share.
    """
    if not 0 < top_share < 1:
        raise ValueError(f"top_share is {top_share}; allowed: above 0 and below 1")
    moved = pairs.drift
    wanted = moved >= np.quantile(moved, 1 - top_share) if len(moved) else np.zeros(0, bool)
    prompt = np.unique(pairs.prompt, return_inverse=True)[1]
    # Blocks as long as the drift asks for, whatever the signal, so that areas can be held side by side.
    chance = resamples(prompt, rankdata(moved), np.random.default_rng(seed))
    return roc(signal, pairs.to_frame()[signal].to_numpy(float), wanted, chance, top_share, level)
