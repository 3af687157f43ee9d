"""What the buffers keep: only refreshed rows are written, and nothing unwritten is ever attended to."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from core import CachePolicy, LanguageModel
from core.cache import DeltaCache, KVCache
from core.state import DecodeState
from tests.invariants.runs import Run, config, decode, eager_policy
from tests.tiny import PROMPTS


class WriteProbe:
    """Counts, for every position, the layers whose K (and V) changed since the step before."""

    def __init__(self) -> None:
        self.before: tuple[Tensor, Tensor] | None = None
        self.writes: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def measure(self, state: DecodeState, cache: KVCache, refreshed: Tensor) -> dict[str, np.ndarray]:
        now = cache.k.clone(), cache.v.clone()
        if self.before is not None:
            keys, values = (
                (old != new).any(dim=-1).any(dim=2).sum(dim=0).numpy()
                for old, new in zip(self.before, now, strict=True)
            )
            self.writes.append((keys, values, refreshed.numpy().copy()))
        self.before = now
        return {}


@pytest.mark.parametrize("rule", ["one a step", "threshold"])
def test_rows_outside_the_refreshed_set_stay_bit_identical(
    model: LanguageModel, policy: CachePolicy, rule: str
) -> None:
    probe = WriteProbe()
    decode(model, PROMPTS, config(rule), policy, [probe])
    assert len(probe.writes) > 3
    for keys, values, refreshed in probe.writes:
        assert (keys <= refreshed).all()
        # A layerwise method may store fresh V for rows whose K and output it keeps.
        assert policy.layerwise or (values <= refreshed).all()
    assert any(keys.any() for keys, _, _ in probe.writes)


def fill(monkeypatch: pytest.MonkeyPatch, value: float) -> None:
    """Every buffer starts out filled with `value` instead of zeros."""
    for kind, names in ((KVCache, ("k", "v")), (DeltaCache, ("increments",))):
        original = kind.__init__

        def filled(self, *args, original=original, names=names, **kwargs) -> None:  # type: ignore[no-untyped-def]
            original(self, *args, **kwargs)
            for name in names:
                getattr(self, name).fill_(value)

        monkeypatch.setattr(kind, "__init__", filled)


def same_numbers(ours: list[Run], theirs: list[Run]) -> bool:
    return all(
        np.array_equal(a.entropy, b.entropy, equal_nan=True) and np.array_equal(a.tokens, b.tokens)
        for one, two in zip(ours, theirs, strict=True)
        for a, b in zip(one.steps, two.steps, strict=True)
    )


def test_an_unwritten_key_is_never_attended_to(
    model: LanguageModel, policy_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN anywhere in an attended slot would spread to every number of the run."""
    prompts = [PROMPTS[0], PROMPTS[0][::-1]]
    clean = decode(model, prompts, config(), eager_policy(policy_name))
    with monkeypatch.context() as patch:
        fill(patch, math.nan)
        dirty = decode(model, prompts, config(), eager_policy(policy_name), row_bucket=7)
    assert all(np.isfinite(step.entropy[step.targets]).all() for run in dirty for step in run.steps)
    assert [run.tokens for run in dirty] == [run.tokens for run in clean]


def test_padding_is_never_attended_to(
    model: LanguageModel, policy_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large numbers behind the padding mask leave every number as it was."""
    clean = decode(model, PROMPTS, config(), eager_policy(policy_name))
    with monkeypatch.context() as patch:
        fill(patch, 1000.0)
        dirty = decode(model, PROMPTS, config(), eager_policy(policy_name))
    assert same_numbers(clean, dirty)


def test_a_filled_buffer_would_be_noticed(
    models: dict[str, LanguageModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two tests above can fail: without the full first pass the filling reaches the logits."""
    model = models["llada"]
    fill(monkeypatch, math.nan)
    cache = KVCache(model.spec, 1, 6, torch.device("cpu"), torch.float32)
    assert cache.k.isnan().all()
