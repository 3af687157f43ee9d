"""Observation: both of the paper's observations on one group of no-cache traces, taken together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.correlation import Correlation, DriftPairs, correlate, detect, drift_pairs
from analysis.roc import Detection
from analysis.trace import Trace
from analysis.volatility import Volatility, volatility

# Without a cache every step is a full one, so the steps since the last of them never vary.
SIGNALS = ("max_entropy", "mean_entropy", "max_doubt", "num_committed", "earliness")
SPANS = {"answer": "within the answer", "all": "all steps"}
# `cached` pools the other three, whose drifts differ by orders of magnitude: each is told by itself, too.
KINDS = ("cached", "prompt", "decoded", "later")
MIN_MISMATCHED = 10


@dataclass(frozen=True, eq=False)
class Span:
    """What some of the pairs of a group showed. drift: their mean drift, NaN without a pair.

    detections: by signal, of the top decile of drift, each as a threshold on the signal.
    """

    pairs: int
    drift: float
    correlation: Correlation
    detections: Mapping[str, Detection]

    def to_frame(self) -> pd.DataFrame:
        """One row a signal: the columns of Correlation and the area under the ROC."""
        frame = self.correlation.to_frame()
        found = [self.detections[signal] for signal in frame["signal"]]
        frame["area"] = [one.area for one in found]
        frame["area_low"], frame["area_high"] = [one.low for one in found], [one.high for one in found]
        return frame


@dataclass(frozen=True, eq=False)
class Observation:
    """What a group of prompts showed under one commit rule.

    rule: the traces' commit rule; pace: tokens committed a step. spans: by name in SPANS. kinds: by name in
    KINDS, then by span, of the largest entropy alone. mismatched: by span, the largest entropy of each
    prompt beside the drift of the next one, see `mismatched`; empty below MIN_MISMATCHED prompts.
    volatility: of the answers' tokens; filler: of those after the end of the text.
    """

    group: str
    rule: str
    prompts: int
    pace: float
    spans: Mapping[str, Span]
    kinds: Mapping[str, Mapping[str, Span]]
    mismatched: Mapping[str, Span]
    volatility: Volatility
    filler: Volatility

    @property
    def share_behind(self) -> float:
        """Share of all pairs whose step only filled in what follows the end of the text."""
        pairs = self.spans["all"].pairs
        return 1 - self.spans["answer"].pairs / pairs if pairs else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """One row a span and signal: the columns of Span, and what they are of."""
        frames = [span.to_frame().assign(span=name) for name, span in self.spans.items()]
        frame = pd.concat(frames, ignore_index=True).assign(group=self.group, rule=self.rule)
        first = ["group", "rule", "span"]
        return frame[[*first, *(name for name in frame.columns if name not in first)]]


def summarise_drift(traces: Sequence[Trace], group: str = "prompts", seed: int = 0) -> Observation:
    """Both observations of traces that a ValueDriftProbe watched. Raises ValueError where none did."""
    pairs = drift_pairs(traces)
    beside, spans = mismatched(pairs), _spans(pairs, SIGNALS, seed)
    others = {kind: _spans(drift_pairs(traces, kind), SIGNALS[:1], seed) for kind in KINDS[1:]}
    return Observation(
        group=group,
        rule=str(traces[0].generation["unmask"]),
        prompts=len(traces),
        pace=float(np.mean([trace.num_committed.mean() for trace in traces])),
        spans=spans,
        kinds={KINDS[0]: spans, **others},
        mismatched={} if beside is None else _spans(beside, SIGNALS[:1], seed),
        volatility=volatility(traces, seed=seed),
        filler=volatility(traces, seed=seed, tokens="filler"),
    )


def distinct_signals(pairs: DriftPairs) -> list[str]:
    """The signals, less those that repeat another: at one token a step mean and largest entropy coincide."""
    kept: list[str] = []
    for name in SIGNALS:
        if not any(np.array_equal(pairs.signals[name], pairs.signals[other]) for other in kept):
            kept.append(name)
    return kept


def mismatched(pairs: DriftPairs) -> DriftPairs | None:
    """Each prompt's signals beside the next prompt's drift at the same steps: what the steps alone explain.

    A coefficient that these reach, too, is owed to a course that all prompts share. Steps that only one of
    the two has are left out, and those count as within the answer that are so in both. None below
    MIN_MISMATCHED prompts.
    """
    prompts = np.unique(pairs.prompt)
    if len(prompts) < MIN_MISMATCHED:
        return None
    own, others = [], []
    for index, other in zip(prompts, np.roll(prompts, -1), strict=True):
        mine, theirs = np.flatnonzero(pairs.prompt == index), np.flatnonzero(pairs.prompt == other)
        _, left, right = np.intersect1d(pairs.step[mine], pairs.step[theirs], True, return_indices=True)
        own.append(mine[left])
        others.append(theirs[right])
    signals, drift = pairs.at(np.concatenate(own)), pairs.at(np.concatenate(others))
    return replace(signals, drift=drift.drift, in_answer=signals.in_answer & drift.in_answer)


def _spans(pairs: DriftPairs, signals: Sequence[str], seed: int) -> dict[str, Span]:
    """The pairs within the answer, and all of them."""
    ranked, answer = correlate(pairs, signals, seed), pairs.of_answer()
    of_all = _span(pairs, replace(ranked, without_tail=None), signals, seed)
    if ranked.without_tail is None:
        return dict.fromkeys(SPANS, of_all)
    return {"answer": _span(answer, ranked.without_tail, signals, seed), "all": of_all}


def _span(pairs: DriftPairs, ranked: Correlation, signals: Sequence[str], seed: int) -> Span:
    found = {signal: detect(pairs, signal, seed=seed) for signal in signals}
    return Span(len(pairs.drift), float(pairs.drift.mean()) if len(pairs.drift) else np.nan, ranked, found)
