"""Projection: with the recorded settings it is the recorded run; with others it follows the rule."""

import numpy as np
import pytest

from analysis.observe import no_cache_trace, run_trace
from analysis.plots import projection_figure, token_map_figure
from analysis.projection import project
from analysis.trace import Trace
from core import GenerationConfig, LanguageModel, create_policy
from tests import tiny

PROMPT = tiny.PROMPTS[0]
SETTINGS = (
    {"entropy_threshold": 2.5, "recent": 3},
    {"entropy_threshold": 3.0, "recent": 0},
    {"entropy_threshold": float("inf"), "recent": 64},
    {"entropy_threshold": -1.0, "recent": 4},
    {"entropy_threshold": 3.0, "recent": 5, "scope": "global"},
    {"entropy_threshold": float("inf"), "recent": 2, "refresh_on_block_start": True},
    {"entropy_threshold": 3.5, "recent": 2, "max_partial_run": 3},
)
DECODINGS = (
    GenerationConfig(gen_length=24, block_length=8, threshold=0.2),
    GenerationConfig(gen_length=24, block_length=8, unmask="quota"),
    GenerationConfig(gen_length=24, block_length=8, threshold=0.2, window="sliding"),
)


def record(model: LanguageModel, generation: GenerationConfig, **config: object) -> Trace:
    return run_trace(model, PROMPT, generation, create_policy("entropy", **config))


@pytest.mark.parametrize(
    ("config", "generation"),
    [
        (config, generation)
        for config in SETTINGS
        for generation in DECODINGS
        # A sliding window has no blocks to refresh at.
        if generation.window == "block" or not config.get("refresh_on_block_start")
    ],
)
def test_projection_with_the_recorded_settings_is_the_recorded_run(
    model: LanguageModel, config: dict, generation: GenerationConfig
) -> None:
    trace = record(model, generation, **config)
    projected = project(trace, config["entropy_threshold"], config["recent"])
    assert np.array_equal(projected.refreshed, trace.refreshed > 0)
    assert np.array_equal(projected.full, projected.recorded_full)
    assert projected.recompute_ratio == pytest.approx(trace.totals["recompute_ratio"])
    assert projected.recorded_ratio == pytest.approx(trace.totals["recompute_ratio"])


def test_a_partial_step_that_happens_to_recompute_everything_is_still_a_partial_one(
    models: dict[str, LanguageModel],
) -> None:
    """What was decided counts, as in the policy. A shifted model's window has the row before it."""
    generation = GenerationConfig(gen_length=12, block_length=12, unmask="quota")
    seen = 0
    for token in range(20, 40):
        policy = create_policy("entropy", entropy_threshold=float("inf"))
        trace = run_trace(models["dream"], (token,), generation, policy)
        projected = project(trace, float("inf"), 64)
        assert np.array_equal(projected.refreshed, trace.refreshed > 0)
        whole = [step.full for step in trace.steps]
        seen += 0 < sum(whole[1:]) < len(whole) - 1
    assert seen


def test_lower_tau_is_full_more_often_and_larger_k_recomputes_more(models: dict[str, LanguageModel]) -> None:
    trace = record(models["llada"], DECODINGS[0])
    fulls = [int(project(trace, tau, 4).full.sum()) for tau in (-1.0, 2.0, 3.0, float("inf"))]
    assert fulls == sorted(fulls, reverse=True)
    assert fulls[0] == len(trace.steps)
    assert fulls[-1] == 1
    rows = [int(project(trace, float("inf"), k).rows.sum()) for k in (0, 2, 8, 64)]
    assert rows == sorted(rows)


def test_path_of_another_policy_can_be_projected_too(models: dict[str, LanguageModel]) -> None:
    trace = run_trace(models["llada"], PROMPT, DECODINGS[0], create_policy("none"))
    projected = project(trace, float("inf"), 4)
    assert projected.full.tolist() == [True] + [False] * (len(trace.steps) - 1)
    assert projected.recorded_ratio == 1
    assert list(projected.to_frame().columns)[:4] == ["step", "max_entropy", "full", "num_refreshed"]


def test_bad_settings_are_named() -> None:
    trace = Trace({"num_layers": 1}, {"config": {}}, {"block_length": 2}, None, (1,), (1, 2), None, ())
    with pytest.raises(ValueError, match="threshold is nan"):
        project(trace, float("nan"), 1)
    with pytest.raises(ValueError, match="recent is -1"):
        project(trace, 1.0, -1)


def test_figure_shows_projected_rows_over_recorded_ones(models: dict[str, LanguageModel]) -> None:
    projected = project(record(models["llada"], DECODINGS[0]), 2.5, 4)
    figure = projection_figure(projected)
    bars = {bar.name: bar.y for bar in figure.data if bar.type == "bar"}
    assert sum(map(sum, bars.values())) == projected.rows.sum()
    recorded = next(trace for trace in figure.data if trace.name == "recorded")
    assert list(recorded.y) == list(projected.recorded_rows)
    assert "\u03c4 = 2.5" in [note.text for note in figure.layout.annotations]


def test_token_map_leaves_out_what_was_not_observed(models: dict[str, LanguageModel]) -> None:
    trace = no_cache_trace(models["llada"], PROMPT, DECODINGS[0])
    heat = token_map_figure(trace).data[0]
    assert heat.z.shape == (24, len(trace.steps))
    assert np.isnan(heat.z[:, 0]).all()
    with pytest.raises(ValueError, match="token_drift"):
        token_map_figure(record(models["llada"], DECODINGS[0]))
