"""Probes on tiny models: they change nothing, drift is what two plain passes say, unobserved is NaN."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from analysis import TraceRecorder
from analysis.drift import POSITION_CLASSES, drift
from analysis.observe import no_cache_trace, run_trace
from analysis.plots import staleness_figure
from analysis.probes import StalenessProbe, ValueDriftProbe, cosine_distance
from analysis.staleness import staleness, summarise_staleness
from core import GenerationConfig, LanguageModel, StepEvent, create_policy, generate, stream
from core.models.transformer import FreshKV
from tests import tiny

CONFIG = GenerationConfig(gen_length=16, block_length=8, threshold=0.4)


def plain_values(model: LanguageModel, tokens: list[int]) -> Tensor:
    """V of every layer and position in a pass over the whole canvas, [N, L, G * D]."""
    backbone = model.backbone
    found: list[Tensor] = []

    class Keep(FreshKV):
        def update(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
            found.append(values[0].transpose(0, 1).flatten(1))
            return super().update(layer, queries, keys, values)

    ids = torch.tensor([tokens])
    hidden = backbone.embedding(ids)
    rotary = backbone.rotary(torch.arange(len(tokens))[None])
    for index in range(model.spec.num_layers):
        hidden = hidden + backbone.layer_delta(index, hidden, rotary, Keep())
    return torch.stack(found)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("policy", ["none", "entropy"])
def test_probes_do_not_change_tokens(model: LanguageModel, policy: str, temperature: float) -> None:
    config = GenerationConfig(gen_length=16, block_length=8, threshold=0.4, temperature=temperature)

    def tokens(probes: list) -> list[tuple[int, ...]]:
        chosen = create_policy(policy)
        return [g.tokens for g in generate(model, tiny.PROMPTS, config, chosen, probes)]

    assert tokens([]) == tokens([ValueDriftProbe(), StalenessProbe(model)])


@torch.inference_mode()
def test_drift_is_that_between_two_plain_passes(model: LanguageModel) -> None:
    trace = no_cache_trace(model, tiny.PROMPTS[0], CONFIG, one_token=False)
    moved = drift(trace)
    assert moved.every_position
    prompt, decoded_at = list(trace.prompt_ids), trace.decoded_at
    values = []
    for step in range(len(trace.steps)):
        known = np.where((decoded_at >= 0) & (decoded_at < step), trace.tokens, tiny.MASK)
        values.append(plain_values(model, [*prompt, *known.tolist()]))
    for step in range(1, len(trace.steps)):
        distance = cosine_distance(values[step], values[step - 1])
        expected = distance[:, : len(prompt)].mean(dim=1)
        at = POSITION_CLASSES.index("prompt")
        np.testing.assert_allclose(moved.values[step, :, at], expected, rtol=2e-2, atol=1e-6)
        by_token = distance.mean(dim=0)[len(prompt) :]
        measured = trace.steps[step].measurements["token_drift"]
        np.testing.assert_allclose(measured, by_token, rtol=2e-2, atol=1e-6)
        changed = np.flatnonzero(trace.steps[step].measurements["token_changed"])
        assert changed.tolist() == np.flatnonzero(decoded_at == step - 1).tolist()


def test_each_position_is_in_one_class(model: LanguageModel) -> None:
    trace = no_cache_trace(model, tiny.PROMPTS[1], CONFIG)
    for step in trace.steps[1:]:
        assert (step.measurements["value_drift_count"].sum(axis=1) == trace.canvas_length).all()
    assert not trace.steps[0].measurements["value_drift_count"].any()


def test_under_a_policy_only_refreshed_positions_are_observed(model: LanguageModel) -> None:
    trace = run_trace(
        model,
        tiny.PROMPTS[0],
        CONFIG,
        create_policy("entropy", entropy_threshold=float("inf")),
        [ValueDriftProbe()],
    )
    prompt = len(trace.prompt_ids)
    for step in trace.steps[1:]:
        assert (step.measurements["value_drift_count"].sum(axis=1) == (step.refreshed > 0).sum()).all()
        seen = ~np.isnan(step.measurements["token_drift"])
        np.testing.assert_array_equal(seen, step.refreshed[prompt:] > 0)
    assert not drift(trace).every_position


def test_padding_is_in_no_class(model: LanguageModel) -> None:
    recorder = TraceRecorder()
    for event in stream(model, tiny.PROMPTS, CONFIG, create_policy("none"), [ValueDriftProbe()]):
        recorder.observe(event)
    alone = [no_cache_trace(model, prompt, CONFIG, one_token=False) for prompt in tiny.PROMPTS]
    for batched, single in zip(recorder.traces(), alone, strict=True):
        assert len(batched.steps) == len(single.steps)
        for ours, its in zip(batched.steps, single.steps, strict=True):
            for name in ("value_drift_count", "token_changed"):
                np.testing.assert_array_equal(ours.measurements[name], its.measurements[name])
            for name in ("value_drift", "token_drift"):
                np.testing.assert_allclose(
                    ours.measurements[name], its.measurements[name], rtol=2e-2, atol=1e-5
                )


def test_nothing_is_stale_without_a_cache(model: LanguageModel) -> None:
    trace = run_trace(model, tiny.PROMPTS[0], CONFIG, create_policy("none"), [StalenessProbe(model)])
    for step in trace.steps:
        assert step.measurements["value_staleness"].max() < 1e-6
        assert step.measurements["hidden_staleness"] < 1e-6
        assert step.measurements["flipped"] == 0


def test_a_cache_never_refreshed_goes_stale_and_only_looked_at_steps_say_so(model: LanguageModel) -> None:
    policy = create_policy("entropy", entropy_threshold=float("inf"), recent=0)
    trace = run_trace(model, tiny.PROMPTS[0], CONFIG, policy, [StalenessProbe(model, every=2)])
    stale = np.array([step.measurements["value_staleness"].mean() for step in trace.steps])
    assert np.isnan(stale[1::2]).all()
    assert stale[0] < 1e-6
    assert stale[2::2].min() > 1e-5
    looked = staleness(trace)
    assert looked.step.tolist() == list(range(0, len(trace.steps), 2))
    pooled = summarise_staleness([trace, trace])
    assert pooled.value == pytest.approx(np.nanmean(stale[2::2]), rel=1e-5)
    assert pooled.steps == 2 * (len(looked.step) - 1)
    drawn = staleness_figure(looked).data
    np.testing.assert_allclose(drawn[1].y[1:], stale[2::2], rtol=1e-6)
    # What a share is of stands beside it: one mask in one changes often.
    masks, size = [], CONFIG.block_length
    for step in trace.steps:
        left = [at for at, when in enumerate(trace.decoded_at) if when >= step.step]
        masks.append(sum(at // size == left[0] // size for at in left))
    assert looked.masks.tolist() == masks[::2]
    assert drawn[3].customdata[0] == f"{masks[0]} masks"


def test_full_steps_are_no_zeros_that_a_figure_leaves_out(model: LanguageModel) -> None:
    """They are at 0 by definition, and were counted beside what a cache kept exactly."""
    policy = create_policy("entropy", entropy_threshold=float("inf"), recent=0)
    trace = run_trace(model, tiny.PROMPTS[0], CONFIG, policy, [StalenessProbe(model)])
    looked = staleness(trace)
    assert looked.full.tolist() == [True] + [False] * (len(trace.steps) - 1)
    # What rounding leaves of a full step would stretch the axis.
    assert np.isnan(staleness_figure(looked).data[2].y[0])
    zero, one = np.zeros_like(looked.hidden), np.ones_like(looked.hidden)
    kept = replace(looked, key=one[:, None], value=one[:, None], hidden=np.where(looked.full, 0, one))
    assert "not drawn" not in staleness_figure(kept).layout.yaxis.title.text
    kept = replace(kept, hidden=zero)
    counted = len(zero) - 1
    told = f"({counted} of {3 * counted} values of partial steps at exactly 0 not drawn)"
    assert told in staleness_figure(kept).layout.yaxis.title.text
    with pytest.raises(ValueError, match="every"):
        StalenessProbe(model, every=0)


@pytest.mark.parametrize("name", ["prefix", "dual", "dkv", "sparse", "entropy"])
def test_choices_that_a_full_pass_would_change_are_those_of_the_run(model: LanguageModel, name: str) -> None:
    """What a policy hides from its own attention is hidden from what stands for it, too."""
    settings = {"sparse": {"keep_ratio": 0.2}, "entropy": {"entropy_threshold": float("inf"), "recent": 0}}
    policy, prompt = create_policy(name, **settings.get(name, {})), list(tiny.PROMPTS[0])
    canvas = torch.tensor([[*prompt, *[tiny.MASK] * CONFIG.gen_length]])
    changed = 0
    for event in stream(model, [prompt], CONFIG, policy, [StalenessProbe(model)]):
        if not isinstance(event, StepEvent):
            continue
        logits = model.full_logits(canvas)[0].roll(model.spec.logit_shift, dims=0).clone()
        logits[:, tiny.MASK] = -torch.inf
        at = event.targets[0].nonzero()[0]
        differ = logits.argmax(dim=-1).numpy()[at] != event.tokens[0][at]
        assert event.measurements["flipped"][0] == pytest.approx(differ.mean(), abs=1e-4)
        changed += differ.sum()
        canvas[0][torch.from_numpy(event.committed[0])] = torch.from_numpy(
            event.tokens[0][event.committed[0]]
        )
    assert changed


def test_under_guidance_choices_are_not_observed(model: LanguageModel) -> None:
    config = replace(CONFIG, cfg_scale=1.0)
    trace = run_trace(model, tiny.PROMPTS[0], config, create_policy("dual"), [StalenessProbe(model)])
    for step in trace.steps:
        assert np.isnan(step.measurements["flipped"])
        assert np.isfinite(step.measurements["value_staleness"]).all()
