"""Sparse-dLLM on hand-made attention: which rows are recomputed and which keys stay visible."""

import pytest
import torch
from torch import Tensor

from core import create_policy
from tests.core.states import SPEC, Story

BLOCK = [3, 4, 5, 6]


def told(**settings: object) -> Story:
    """A prompt of 3, a generation of 8 in blocks of 4: outside the first block lie 7 columns."""
    return Story(create_policy("sparse", **({"kernel": 1} | settings)), [3], 8, 4)


def visible(story: Story, layer: int = 0) -> list[int]:
    seen = story.plan().visible
    assert seen is not None
    return (seen[layer, 0] & story.state.valid[0]).nonzero().flatten().tolist()


def show(story: Story, *layers: dict[int, float]) -> None:
    """Attention of the block's queries in a full step: the columns' weights, by layer; the rest is 0.01."""
    plan = story.plan()
    assert plan.on_attention is not None
    rows = torch.arange(11)[None]
    for index in range(SPEC.num_layers):
        weights = torch.full((1, 2, 11, 11), 0.01)
        for column, value in layers[min(index, len(layers) - 1)].items():
            weights[:, :, BLOCK, column] = value
        plan.on_attention(index, weights, rows)


def second_step(story: Story) -> Story:
    story.step({0: 0.1})
    return story


def test_two_full_steps_then_the_block_alone() -> None:
    story = told()
    for expected in (range(11), range(11)):
        assert story.refresh() == list(expected)
        assert visible(story) == list(range(11))
        story.step({int(story.state.window[0].int().argmax()) - 3: 0.1})
    assert story.refresh() == BLOCK


def test_the_best_scored_half_outside_the_block_stays_visible() -> None:
    story = second_step(told(keep_ratio=0.5))
    show(story, {0: 0.2, 2: 0.05, 8: 0.3, 10: 0.04})
    story.step({1: 0.1})
    # floor(7 * 0.5) = 3 of columns 0, 1, 2, 7, 8, 9, 10, and the block itself.
    assert visible(story) == [0, 2, *BLOCK, 8]


def test_each_layer_keeps_its_own_keys() -> None:
    story = second_step(told(keep_ratio=0.15))
    show(story, {0: 0.2}, {8: 0.2}, {10: 0.2})
    story.step({1: 0.1})
    assert [visible(story, layer) for layer in range(3)] == [[0, *BLOCK], [*BLOCK, 8], [*BLOCK, 10]]


def test_equal_scores_go_to_the_earlier_position() -> None:
    story = second_step(told(keep_ratio=0.3))
    show(story, {})
    story.step({1: 0.1})
    assert visible(story) == [0, 1, *BLOCK]


def test_a_score_is_the_best_of_its_neighbours_but_not_across_the_block() -> None:
    story = second_step(told(keep_ratio=0.43, kernel=3))
    show(story, {1: 0.3, 4: 0.9})
    story.step({1: 0.1})
    # Column 1 lifts 0 and 2; the block's own column 4 lifts nobody.
    assert visible(story) == [0, 1, 2, *BLOCK]


def test_only_the_block_s_queries_score() -> None:
    story = second_step(told(keep_ratio=0.15))
    plan = story.plan()
    assert plan.on_attention is not None
    for index in range(SPEC.num_layers):
        weights = torch.full((1, 2, 11, 11), 0.01)
        weights[:, :, [0, 1, 2, 7, 8, 9, 10], 9] = 0.9
        weights[:, :, BLOCK, 2] = 0.05
        plan.on_attention(index, weights, torch.arange(11)[None])
    story.step({1: 0.1})
    assert visible(story) == [2, *BLOCK]


def test_evicted_keys_return_with_the_next_block() -> None:
    story = second_step(told(keep_ratio=0.15))
    show(story, {0: 0.2})
    for position in (1, 2, 3):
        story.step({position: 0.1})
    assert story.refresh() == list(range(11))
    assert visible(story) == list(range(11))
    story.step({4: 0.1})
    assert story.refresh() == list(range(11))


def test_padding_is_neither_kept_nor_counted() -> None:
    story = Story(create_policy("sparse", kernel=1, keep_ratio=0.5), [5, 1], 4, 4)
    story.step({0: 0.1}, {0: 0.1})
    plan = story.plan()
    assert plan.on_attention is not None
    for index in range(SPEC.num_layers):
        plan.on_attention(index, torch.full((2, 2, 9, 9), 0.1), torch.arange(9).expand(2, -1))
    story.step({1: 0.1}, {1: 0.1})
    seen = story.plan().visible
    assert seen is not None
    kept: list[Tensor] = [(seen[0, slot] & story.state.valid[slot]).nonzero().flatten() for slot in (0, 1)]
    # Outside the block: five prompt columns, or one; half of them, rounded down.
    assert kept[0].tolist() == [0, 1, 5, 6, 7, 8]
    assert kept[1].tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("step", [0, 2, 3])
def test_attention_is_watched_in_a_block_s_second_step_alone(step: int) -> None:
    story = told()
    for position in range(step):
        if step > 1 and position == 1:
            show(story, {})
        story.step({position: 0.1})
    assert story.plan().on_attention is None
