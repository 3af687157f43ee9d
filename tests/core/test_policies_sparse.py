"""`sparse`: which keys a layer keeps, when they are chosen, and what stays visible."""

import pytest
import torch
from torch import Tensor

from core import GenerationConfig, LanguageModel, StepEvent, create_policy, stream
from core.rows import to_rows
from tests.core.states import SPEC, Story
from tests.tiny import LAYERS, PROMPTS

LENGTH, HEADS = 15, 2


def told(prompts: tuple[int, ...] = (3,), **settings: object) -> Story:
    """Canvas 3 + 12, blocks of 4."""
    return Story(create_policy("sparse", **settings), list(prompts), gen_length=12, block_length=4)


def visible(story: Story, layer: int = 0, slot: int = 0) -> list[int]:
    seen = story.plan().visible
    assert seen is not None
    return (seen[layer, slot] & story.state.valid[slot]).nonzero().flatten().tolist()


def build(story: Story, scores: Tensor) -> None:
    """Hand over each layer's attention, whose logs are `scores` [N, B, L] for every query of the block."""
    plan = story.plan()
    assert plan.on_attention is not None
    rows = to_rows(story.rows(), int(story.rows().sum(dim=1).max()))
    block = torch.nn.functional.pad(story.state.in_block, (0, 1)).gather(1, rows)
    for layer, wanted in enumerate(scores):
        weights = wanted[:, None, None].expand(-1, HEADS, rows.shape[1], -1).exp()
        # Rows outside the block attend the other way round; they must not count.
        plan.on_attention(layer, torch.where(block[:, None, :, None], weights, 1 / weights), rows)


def same(scores: list[float]) -> Tensor:
    """The same scores in every layer, one sequence."""
    return torch.tensor(scores).expand(SPEC.num_layers, 1, LENGTH)


def test_two_full_steps_then_the_block_alone() -> None:
    story = told()
    for position in range(2):
        assert story.refresh() == list(range(LENGTH))
        assert visible(story) == list(range(LENGTH))
        assert story.reason() == "block start"
        story.step({position: 0.1})
    assert story.refresh() == [3, 4, 5, 6]
    assert story.reason() == "reuse"


def test_attention_is_asked_for_at_a_block_s_second_step_only() -> None:
    story = told()
    asked = []
    for position in range(8):
        watched = story.plan().watched
        assert watched is not None
        asked.append(watched.tolist() == [True])
        story.step({position: 0.1})
    assert asked == [False, True, False, False] * 2


def test_the_best_scored_half_stays_visible_with_the_block() -> None:
    story = told(kernel=1)
    story.step({0: 0.1})
    # Outside the block 3..6: positions 0, 1, 2 and 7..14, eleven of them, five stay.
    scores = [0.5, 0.1, 0.9, 9.0, 9.0, 9.0, 9.0, 0.8, 0.2, 0.7, 0.3, 0.0, 0.6, 0.1, 0.4]
    build(story, same(scores))
    story.step({1: 0.1})
    assert visible(story) == [0, 2, 3, 4, 5, 6, 7, 9, 12]


@pytest.mark.parametrize(
    ("ratio", "kept"), [(0.001, 0), (0.09, 0), (0.1, 1), (0.5, 5), (0.99, 10), (1.0, 11)]
)
def test_ties_never_keep_more_than_the_ratio_and_go_to_earlier_positions(ratio: float, kept: int) -> None:
    story = told(keep_ratio=ratio)
    story.step({0: 0.1})
    build(story, same([0.5] * LENGTH))
    story.step({1: 0.1})
    outside = [0, 1, 2, *range(7, 15)]
    assert visible(story) == sorted([*outside[:kept], 3, 4, 5, 6])


def test_pooling_lifts_the_neighbours_of_a_high_score_and_stops_at_the_block() -> None:
    story = told(kernel=3, keep_ratio=0.3)
    story.step({0: 0.1})
    scores = [0.0] * LENGTH
    scores[10], scores[3] = 5.0, 9.0
    build(story, same(scores))
    story.step({1: 0.1})
    # Three of eleven: 10 and its neighbours; the block's own score lifts neither 2 nor 7.
    assert visible(story) == [3, 4, 5, 6, 9, 10, 11]


def test_layers_and_sequences_keep_their_own_keys() -> None:
    story = told(prompts=(3, 2), kernel=1, keep_ratio=0.1)
    story.step({0: 0.1}, {0: 0.1})
    scores = torch.zeros(SPEC.num_layers, 2, LENGTH)
    scores[0, 0, 9], scores[1, 0, 2], scores[2, 0, 14] = 1.0, 1.0, 1.0
    # Padding of the second sequence can't be kept, whatever it scores.
    scores[:, 1, 0], scores[:, 1, 8] = 5.0, 1.0
    build(story, scores)
    story.step({1: 0.1}, {1: 0.1})
    block = [3, 4, 5, 6]
    assert [visible(story, layer) for layer in range(3)] == [[*block, 9], [2, *block], [*block, 14]]
    assert visible(story, 0, slot=1) == [*block, 8]


def test_evicted_keys_return_with_the_next_block() -> None:
    story = told(keep_ratio=0.1)
    story.step({0: 0.1})
    build(story, same([0.5] * LENGTH))
    story.step({1: 0.1})
    assert visible(story) == [0, 3, 4, 5, 6]
    story.step({2: 0.1, 3: 0.1})
    assert visible(story) == list(range(LENGTH))
    assert story.refresh() == list(range(LENGTH))


def test_a_block_finished_in_one_step_builds_nothing() -> None:
    story = told(prompts=(3, 3), keep_ratio=0.1)
    for block in range(2):
        story.step(dict.fromkeys(range(4 * block, 4 * block + 4), 0.1), {4 * block: 0.1})
        assert visible(story, slot=0) == list(range(LENGTH))
        assert story.refresh(0) == list(range(LENGTH))
        story.step({}, dict.fromkeys(range(4 * block + 1, 4 * block + 4), 0.1))


def test_another_sequence_s_choice_is_left_alone() -> None:
    story = told(prompts=(3, 3), keep_ratio=0.1, kernel=1)
    story.step({0: 0.1}, dict.fromkeys(range(4), 0.1))
    build(story, torch.zeros(SPEC.num_layers, 2, LENGTH))
    story.step({1: 0.1}, {4: 0.1})
    before = visible(story, slot=0)
    scores = torch.zeros(SPEC.num_layers, 2, LENGTH)
    scores[:, :, 14] = 1.0
    build(story, scores)
    story.step({2: 0.1}, {5: 0.1})
    assert visible(story, slot=0) == before == [0, 3, 4, 5, 6]
    assert visible(story, slot=1) == [7, 8, 9, 10, 14]


def test_logs_of_weights_rank_as_the_mean_of_q_k() -> None:
    """The published score, the mean of q.k over block queries and heads, keeps the same positions."""
    generator = torch.Generator().manual_seed(2)
    for _ in range(20):
        story = told(kernel=1, keep_ratio=0.5)
        story.step({0: 0.1})
        q = torch.randn(1, HEADS, LENGTH, 4, generator=generator)
        k = torch.randn(1, HEADS, LENGTH, 4, generator=generator)
        scores = q @ k.transpose(2, 3)
        rows = torch.arange(LENGTH)[None]
        kept = story.policy.best((scores / 2).softmax(dim=-1), rows, story.state)[0]
        outside = [0, 1, 2, *range(7, 15)]
        mean = scores[0, :, 3:7].mean(dim=(0, 1))
        wanted = sorted(outside, key=lambda at: -float(mean[at]))[:5]
        assert kept.nonzero().flatten().tolist() == sorted(wanted)


def test_a_real_run_recomputes_the_block_and_its_sources_only(model: LanguageModel) -> None:
    config = GenerationConfig(gen_length=24, block_length=8, unmask="quota")
    start, shift = len(PROMPTS[0]), model.spec.logit_shift
    for event in stream(model, PROMPTS[:1], config, create_policy("sparse")):
        if isinstance(event, StepEvent):
            block, inside = divmod(int(event.step[0]), 8)
            rows = event.refreshed[0].nonzero()[0].tolist()
            assert set(event.refreshed[0].tolist()) <= {0, LAYERS}
            assert event.full[0] == (inside < 2)
            if inside >= 2:
                begin = start + 8 * block
                allowed = set(range(begin, begin + 8)) | {at - shift for at in event.targets[0].nonzero()[0]}
                assert set(range(begin, begin + 8)) <= set(rows) <= allowed
