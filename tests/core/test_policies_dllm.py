"""`dllm-cache`: its two intervals, and the response rows that moved most, by hand-made value vectors."""

import pytest
import torch
from torch import Tensor

from core import GenerationConfig, LanguageModel, StepEvent, create_policy, stream
from tests.core.states import Story
from tests.tiny import LAYERS, PROMPTS


class Values:
    """A LayerView of hand-made value vectors [B, G, L, D] of the response."""

    def __init__(self, before: Tensor, now: Tensor) -> None:
        self.before, self.now, self.swapped = before, now, False

    def values(self, start: int) -> Tensor:
        return self.before

    def swap_values(self, start: int) -> Tensor:
        self.before.copy_(self.now)
        self.swapped = True
        return self.now

    def attention_rows(self, position: Tensor) -> Tensor:
        raise AssertionError("dllm-cache looks at values only")


def told(**settings: object) -> Story:
    """Prompts of 3 and 2 tokens, canvas 3 + 8."""
    return Story(create_policy("dllm-cache", **settings), [3, 2], gen_length=8, block_length=8)


def turned(angles: list[float]) -> Tensor:
    """Unit value vectors of one head at the given angles, [1, 1, L, 2]."""
    at = torch.tensor(angles)
    return torch.stack((at.cos(), at.sin()), dim=-1)[None, None]


def moved(*angles: list[float]) -> Values:
    """One list a sequence: how far each of the response's value vectors has turned, in radians."""
    now = torch.cat([turned(one) for one in angles])
    return Values(torch.cat([turned([0.0] * len(one)) for one in angles]), now)


def rows(story: Story, layer: int, view: Values, slot: int = 0) -> list[int]:
    per_layer = story.plan().per_layer
    assert per_layer is not None
    return (per_layer(layer, view) & story.state.valid)[slot].nonzero().flatten().tolist()


STILL = [0.0] * 8


def test_prompt_and_response_have_their_own_intervals() -> None:
    story = told(kp=4, kr=3, ratio=0.0)
    kinds = []
    for position in range(8):
        kinds.append((rows(story, 1, moved(STILL, STILL)), story.reason()))
        story.step({position: 0.1}, {position: 0.1})
    prompt, response = [0, 1, 2], list(range(3, 11))
    assert [kind for kind, _ in kinds] == [
        prompt + response, [], [], response, prompt, [], response, [],
    ]  # fmt: skip
    assert [reason for _, reason in kinds[1:6]] == [
        "reuse", "reuse", "response interval", "prompt interval", "reuse",
    ]  # fmt: skip


def test_the_first_layer_is_always_recomputed_and_never_asks_for_values() -> None:
    story = told(ratio=0.25)
    story.step({0: 0.1}, {0: 0.1})
    view = moved(STILL, STILL)
    assert rows(story, 0, view, slot=0) == list(range(11))
    assert rows(story, 0, view, slot=1) == list(range(1, 11))
    assert not view.swapped


def test_between_intervals_the_rows_of_lowest_cosine_are_recomputed() -> None:
    story = told(ratio=0.25)
    story.step({0: 0.1}, {0: 0.1})
    view = moved([0.1, 0.9, 0.2, 0.3, 1.5, 0.0, 0.4, 0.5], [3.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    assert rows(story, 1, view, slot=0) == [3 + 1, 3 + 4]
    view = moved([0.1, 0.9, 0.2, 0.3, 1.5, 0.0, 0.4, 0.5], [3.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    assert rows(story, 2, view, slot=1) == [3 + 0, 3 + 7]
    # All of the response's V is now this step's.
    assert torch.equal(view.before, view.now)


@pytest.mark.parametrize(("ratio", "count"), [(0.1, 0), (0.25, 2), (0.3, 2), (0.99, 7), (1.0, 8)])
def test_ties_never_choose_more_than_the_ratio_and_go_to_earlier_positions(ratio: float, count: int) -> None:
    story = told(ratio=ratio)
    story.step({0: 0.1}, {0: 0.1})
    for view in (moved(STILL, STILL), moved([0.5] * 8, [0.5] * 8)):
        assert rows(story, 1, view) == list(range(3, 3 + count))


def test_without_adaptive_updates_values_are_left_alone() -> None:
    story = told(ratio=0.0)
    story.step({0: 0.1}, {0: 0.1})
    view = moved([1.0] * 8, [1.0] * 8)
    assert rows(story, 1, view) == []
    assert not view.swapped


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_rows_computed_are_exactly_what_the_intervals_and_the_ratio_allow(
    model: LanguageModel, ratio: float
) -> None:
    config = GenerationConfig(gen_length=24, block_length=8, threshold=0.35)
    policy = create_policy("dllm-cache", kp=5, kr=4, ratio=ratio)
    prompt = len(PROMPTS[0])
    for event in stream(model, PROMPTS[:1], config, policy):
        if isinstance(event, StepEvent):
            step, refreshed = int(event.step[0]), event.refreshed[0]
            inner = LAYERS if step % 5 == 0 else 1
            assert (refreshed[:prompt] == inner).all()
            response = 24 if step % 4 == 0 else int(ratio * 24)
            assert (refreshed[prompt:] - 1).sum() == (LAYERS - 1) * response
