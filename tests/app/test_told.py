"""What figures say they are of: every setting that decides, how many, how spread, and what is not drawn."""

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from analysis.plots import recompute_map_figure, token_map_figure
from analysis.plots.theme import LOOK
from analysis.timeline import timeline
from analysis.volatility import MIN_TOKENS, volatility
from app.cards import about, cards, rule_text
from app.explain import layers_panel, map_panel, measure_staleness, staleness_panel, whatif_panel
from app.figures import timeline_panel, volatility_panel
from app.job import Job, LaneSpec
from app.perform import perform
from app.runs import RunRecord
from app.workshop import Workshop
from core import GenerationConfig

Make = Callable[..., Job]
USUAL = GenerationConfig()
OTHERS = {
    "gen_length": 64,
    "block_length": 16,
    "unmask": "klass",
    "threshold": 0.8,
    "steps": 64,
    "temperature": 0.5,
    "seed": 3,
    "stop_at_eos": True,
    "factor": 2.0,
    "entropy_bound": 0.2,
    "kl_threshold": 0.02,
    "kl_history": 3,
    "window": "sliding",
    "order": "density",
    "top_k": 5,
    "top_p": 0.9,
    "cfg_scale": 1.0,
    "eos": "last",
}


@pytest.fixture
def record(workshop: Workshop, job: Make) -> RunRecord:
    record = workshop.runs.new(job("entropy", "dual", observe="one"))
    for _ in perform(workshop, record, workshop.turns.join("me")):
        pass
    return record


def headlines(value: str) -> list[str]:
    return [" | ".join(variant["headline"]) for variant in json.loads(value)["variants"]]


@pytest.mark.parametrize("unmask", ["quota", "threshold", "factor", "entropy-bound", "klass"])
def test_a_caption_tells_every_setting_that_is_another_one(unmask: str) -> None:
    """But for the length, which stands beside the prompt's."""
    assert set(OTHERS) == {field.name for field in fields(GenerationConfig)}
    base = replace(USUAL, unmask=unmask, temperature=0.1)
    told = rule_text(base.to_dict())
    for name, value in OTHERS.items():
        if name != "gen_length" and value != getattr(base, name):
            assert rule_text(replace(base, **{name: value}).to_dict()) != told, name
    greedy = replace(base, temperature=0.0)
    assert rule_text(replace(greedy, seed=5).to_dict()) != rule_text(greedy.to_dict())


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (1, "commits 1 position a step in dkv-greedy's drawn order"),
        (4, "commits up to 4 positions a step in dkv-greedy's drawn order, of these by confidence ≥ 0.0"),
    ],
)
def test_a_caption_tells_the_commits_that_the_policy_really_makes(
    workshop: Workshop, job: Make, tokens: int, said: str
) -> None:
    """An order of the policy's own leaves the rule only so many positions a step, however sure all are."""
    asked = job("dkv-greedy", generation=GenerationConfig(gen_length=16, block_length=8, threshold=0.0))
    spec = LaneSpec("dkv-greedy", (("tokens", tokens),))
    record = workshop.runs.new(replace(asked, lanes=(spec, LaneSpec("dual", ()))))
    for _ in perform(workshop, record, workshop.turns.join("me")):
        pass
    greedy, dual = record.traces
    assert max(greedy.num_committed) == tokens < max(dual.num_committed)
    assert said in about(record)
    assert "commits by confidence ≥ 0.0" in about(record)


def test_every_figure_of_a_run_names_it_where_it_is_saved_alone(record: RunRecord) -> None:
    labels = [lane.label for lane in record.lanes]
    for value in (timeline_panel(record), whatif_panel(record, 1.0, 8), map_panel(record)):
        told = headlines(value)
        assert [line.split(" | ")[0] for line in told] == labels * (len(told) // len(labels))
    for part in ("float32 on cpu", "1 thread", "prompt 3 + 16 tokens", "batch 1", "blocks of 8"):
        assert part in about(record)
    assert "1 thread" in cards(record)["about"]


def test_volatility_says_of_how_many_tokens_and_by_what_measure(record: RunRecord) -> None:
    assert record.observation is not None
    measured = volatility([record.observation])
    [line] = headlines(volatility_panel(record))
    assert f"mean over {measured.count[0]} answer tokens, {measured.count[-1]} at the oldest age" in line
    assert f"{measured.plateau:.1e}" in line
    for settled, said in (
        (3, "within the noise of older ages from age 3"),
        (None, "does not settle"),
    ):
        assert said in replace(measured, settled_age=settled).described[0]
    few = volatility([replace(record.observation, steps=record.observation.steps[: MIN_TOKENS + 2])])
    assert "too few to tell where it settles" in few.described[0]
    assert math.isnan(few.plateau_high)


def test_no_move_at_all_is_told_from_what_was_not_observed(record: RunRecord) -> None:
    trace = record.observation
    assert trace is not None
    steps = list(trace.steps)
    drift = np.array(steps[3].measurements["token_drift"])
    drift[:2] = 0.0, np.nan
    steps[3] = replace(steps[3], measurements={**steps[3].measurements, "token_drift": drift})
    heat, still, _ = token_map_figure(replace(trace, steps=tuple(steps))).data
    assert still.name == "no move at all"
    assert (still.z[0, 3], np.isnan(still.z[1, 3])) == (0, True)
    assert np.isnan(heat.z[:2, 3]).all()
    assert still.colorscale[0][1] not in [colour for _, colour in heat.colorscale]
    [line] = headlines(layers_panel(record))
    assert f"means over {len(steps) - 1} pairs of successive steps" in line


def test_colours_of_the_recompute_map_stand_in_its_legend(record: RunRecord) -> None:
    figure = recompute_map_figure(timeline(record.traces[0]))
    colours = {entry.name: entry.marker.color for entry in figure.data if entry.name}
    assert (colours["full step"], colours["partial step"]) == (LOOK.full, LOOK.partial)
    assert colours["from the cache"] == LOOK.background


def test_staleness_comes_with_its_spread(workshop: Workshop, record: RunRecord) -> None:
    for _ in measure_staleness(workshop, record, workshop.turns.join("me")):
        pass
    partial = [line for line in headlines(staleness_panel(record)) if "partial" in line]
    assert partial
    assert all("median distance of V" in line and "quartiles" in line for line in partial)
