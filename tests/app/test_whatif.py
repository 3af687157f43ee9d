"""What if?: the projection starts from the run's own tau and k, and says which it shows."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import gradio as gr
import pytest

from app.explain import whatif_panel
from app.job import Job, LaneSpec
from app.perform import perform
from app.runs import RunRecord
from app.tabs.decode import _projected_policy
from app.tabs.explain import Explanations, chosen_tau
from app.workshop import Workshop


def run_with(workshop: Workshop, job: Job, tau: float, k: int) -> RunRecord:
    spec = LaneSpec("entropy", (("entropy_threshold", tau), ("recent", k)))
    record = workshop.runs.new(replace(job, lanes=(spec,)))
    for _ in perform(workshop, record, workshop.turns.join("me")):
        pass
    return record


@pytest.mark.parametrize(("tau", "k"), [(math.inf, 200), (5.5, 129), (0.3, 0), (1.0, 64), (-1.0, 8)])
def test_run_projected_onto_its_own_settings_is_itself(
    workshop: Workshop, job: Callable[..., Job], tau: float, k: int
) -> None:
    record = run_with(workshop, job("entropy"), tau, k)
    with gr.Blocks():
        part = Explanations(record)
    drawn = part.afterwards()
    slider, never, most = drawn[part.tau](record), drawn[part.never](record), drawn[part.k](record)
    assert slider.minimum <= slider.value <= slider.maximum
    assert most.value <= most.maximum
    assert (chosen_tau(slider.value, never), most.value) == (tau, k)
    policy, value = _projected_policy(slider.value, never, most.value)
    assert policy == "entropy"
    shown = {"inf": math.inf}.get(entry := json.loads(value)["config"]["entropy_threshold"])
    assert (shown or float(entry), int(json.loads(value)["config"]["recent"])) == (tau, k)
    [variant] = json.loads(drawn[part.whatif](record))["variants"]
    _, projected, recorded = variant["headline"]
    assert projected.startswith(f"with τ {tau:g}, k {k}: projected ")
    assert projected.split(", ")[-1].split(" %")[0] == recorded.split(", ")[-1].split(" %")[0]


def test_projection_says_the_settings_it_was_made_with(workshop: Workshop, job: Callable[..., Job]) -> None:
    record = run_with(workshop, job("entropy"), 1.0, 4)
    [variant] = json.loads(whatif_panel(record, math.inf, 300))["variants"]
    assert variant["headline"][1].startswith("with τ inf, k 300: projected 1 of ")
