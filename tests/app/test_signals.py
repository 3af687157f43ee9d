"""Signals: only what varies is a rival, and the best is named with those it cannot be told from."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from analysis.correlation import DriftPairs
from analysis.observation import SIGNALS
from app import explain
from app.drift import measure_drift
from app.explain import signals_panel
from app.job import Job
from app.perform import perform
from app.runs import RunRecord
from app.workshop import Workshop

Make = Callable[..., Job]


@pytest.fixture
def record(workshop: Workshop, job: Make) -> RunRecord:
    record = workshop.runs.new(job("none"))
    for _ in perform(workshop, record, workshop.turns.join("me")):
        pass
    for _ in measure_drift(workshop, record, workshop.turns.join("me")):
        pass
    return record


def drawn(record: RunRecord) -> dict[str, Any]:
    [variant] = json.loads(signals_panel(record))["variants"]
    return variant


def test_a_signal_that_never_varies_is_no_rival(record: RunRecord) -> None:
    # Every step of a pass without a cache is a full one, and commits one token.
    names = [curve["name"] for curve in drawn(record)["figure"]["data"] if curve["name"] != "chance"]
    assert names
    assert not [name for name in names if "full" in name or "committed" in name]
    assert not [name for name in names if name.startswith("mean entropy")], "of one token it is the largest"
    assert any(name.startswith("earliness ") for name in names)
    assert not any("[" in name for name in names), "too few steps for an interval"
    assert drawn(record)["headline"][0].endswith("too few to tell: 10 steps to find are needed")


@pytest.mark.parametrize(
    ("doubt", "said"),
    [
        ("blind", "the most is found by largest entropy, area 1.00"),
        ("like", "no clear best: largest entropy, area 1.00"),
        ("none", "none differs from chance"),
    ],
)
def test_the_best_signal_is_named_with_those_it_cannot_be_told_from(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch, doubt: str, said: str
) -> None:
    moved, noise, other, blind, dull = np.random.default_rng(3).normal(size=(5, 300))
    signals = {name: np.ones(300) for name in SIGNALS}
    signals["max_entropy"] = blind if doubt == "none" else moved + noise / 9
    signals["max_doubt"] = {"like": moved + other / 9, "blind": blind, "none": dull}[doubt]
    pairs = DriftPairs(
        signals, moved, np.arange(300), np.zeros(300, int), np.ones(300, bool), "cached", every_position=True
    )
    monkeypatch.setattr(explain, "drift_pairs", lambda _: pairs)
    [headline] = drawn(record)["headline"]
    assert headline.startswith("within the answer, n = 300 steps of the second pass: ")
    assert said in headline
    assert ("within noise" in headline) == (doubt != "none")
    assert ("no other within noise" in headline) == (doubt == "blind")


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        ((-1, 0), "none finds more than chance; the other way round, below chance: largest entropy 0.0"),
        ((-1, 1), "the most is found by largest doubt, area 1.00"),
        ((1, 0.1), "above chance too: largest doubt 0."),
        ((-1, -0.1), "below chance: largest entropy 0.0"),
    ],
)
def test_every_signal_told_from_chance_is_named_on_whichever_side(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch, sides: tuple[float, float], said: str
) -> None:
    """An area far below one half is no chance: it finds the steps the other way round."""
    moved, noise, other = np.random.default_rng(3).normal(size=(3, 300))
    signals = {name: np.ones(300) for name in SIGNALS}
    signals["max_entropy"] = sides[0] * moved + noise / 9
    signals["max_doubt"] = sides[1] * moved + other / 9
    pairs = DriftPairs(
        signals, moved, np.arange(300), np.zeros(300, int), np.ones(300, bool), "cached", every_position=True
    )
    monkeypatch.setattr(explain, "drift_pairs", lambda _: pairs)
    [headline] = drawn(record)["headline"]
    assert said in headline
    assert "none is told" not in headline
    assert ("the other way round" in headline) == (min(sides) < 0)
    assert headline.count("largest doubt") == (sides[1] != 0)
