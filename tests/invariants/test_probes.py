"""Looking changes nothing, and a run can be left at any step."""

import numpy as np
import pytest
import torch
from torch import Tensor

from core import CachePolicy, LanguageModel, StepEvent, stream
from core.cache import KVCache
from core.state import DecodeState
from tests.invariants.runs import HEAT, config, decode, eager_policy
from tests.tiny import LAYERS, MASK, PROMPTS


class Onlooker:
    """Copies everything it is shown and draws random numbers, which must be its own affair."""

    def __init__(self) -> None:
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []

    def measure(self, state: DecodeState, cache: KVCache, refreshed: Tensor) -> dict[str, np.ndarray]:
        self.seen.append((state.tokens.numpy().copy(), refreshed.numpy().copy()))
        torch.rand(3)
        return {"norm": cache.v.float().norm(dim=-1).sum(dim=(0, 2)).numpy()}


@pytest.mark.parametrize("heat", HEAT)
def test_a_probe_does_not_change_the_run(model: LanguageModel, policy_name: str, heat: str) -> None:
    plain = decode(model, PROMPTS, config(heat=heat), eager_policy(policy_name))
    watched = decode(model, PROMPTS, config(heat=heat), eager_policy(policy_name), [Onlooker(), Onlooker()])
    assert [run.tokens for run in watched] == [run.tokens for run in plain]
    assert [run.committed for run in watched] == [run.committed for run in plain]
    assert [run.computed for run in watched] == [run.computed for run in plain]


def test_a_probe_sees_the_canvas_of_the_forward_and_the_rows_it_wrote(
    model: LanguageModel, policy: CachePolicy
) -> None:
    probe = Onlooker()
    events = [e for e in stream(model, PROMPTS, config(), policy, [probe]) if isinstance(e, StepEvent)]
    assert len(probe.seen) == len(events)
    for event, (tokens, refreshed) in zip(events, probe.seen, strict=True):
        assert (tokens[event.committed] == MASK).all()
        np.testing.assert_array_equal(refreshed, event.refreshed)
        assert event.measurements["norm"].shape[0] == len(PROMPTS)
        assert set(event.seconds) == {"plan", "forward", "decode"}
        assert all(seconds >= 0 for seconds in event.seconds.values())
    assert (probe.seen[0][1][0] == LAYERS).all()


def test_a_slow_probe_is_in_none_of_the_seconds(models: dict[str, LanguageModel]) -> None:
    import time

    class Slow:
        def measure(self, state: DecodeState, cache: KVCache, refreshed: Tensor) -> dict[str, np.ndarray]:
            time.sleep(0.05)
            return {}

    generation = config("quota")
    events = stream(models["llada"], PROMPTS[:1], generation, eager_policy("entropy"), [Slow()])
    steps = [event for event in events if isinstance(event, StepEvent)]
    # The median, since another program may take the core during one of the steps.
    assert np.median([sum(step.seconds.values()) for step in steps]) < 0.05


def test_closing_the_stream_ends_the_run_and_leaks_nothing(model: LanguageModel, policy: CachePolicy) -> None:
    expected = decode(model, PROMPTS, config(), policy)
    events = stream(model, PROMPTS, config(), policy)
    for event in events:
        # The consumer's own tensors must stay ordinary ones between steps.
        assert not torch.is_inference_mode_enabled()
        if isinstance(event, StepEvent) and event.step.max() == 1:
            break
    events.close()  # type: ignore[attr-defined]
    assert next(events, None) is None
    again = decode(model, PROMPTS, config(), policy)
    assert [run.tokens for run in again] == [run.tokens for run in expected]


def test_two_runs_side_by_side_do_not_meet(models: dict[str, LanguageModel], policy_name: str) -> None:
    generation = config(heat="sampled")
    alone = {
        family: decode(models[family], PROMPTS, generation, eager_policy(policy_name)) for family in models
    }
    streams = {f: stream(models[f], PROMPTS, generation, eager_policy(policy_name)) for f in models}
    finished = {}
    while streams:
        for family in list(streams):
            event = next(streams[family], None)
            if event is None:
                del streams[family]
            else:
                finished[family] = event
    for family, runs in alone.items():
        assert [list(g.tokens) for g in finished[family].generations] == [run.tokens for run in runs]
