"""dKV-Cache on hand-made histories: the delay, the interval, the neighbours of the greedy form."""

import pytest

from core import create_policy
from tests.core.states import Story


def told(name: str = "dkv", gen_length: int = 12, block_length: int = 6, **settings: object) -> Story:
    """A prompt of 3, so that generated position i stands in column 3 + i."""
    return Story(create_policy(name, **settings), [3], gen_length, block_length)


def full(story: Story) -> bool:
    return story.refresh() == list(range(15))


def generated(story: Story) -> set[int]:
    """Recomputed positions counted from the start of the generation; the prompt is negative."""
    return {at - 3 for at in story.refresh()}


def test_a_block_s_first_two_steps_and_every_interval_are_full() -> None:
    story, kinds = told(interval=3), []
    for position in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10):
        kinds.append((full(story), story.reason()))
        story.step({position: 0.1})
    first, second = [True, True, False, True, False, False], [True, True, False, True, False]
    assert [kind for kind, _ in kinds] == first + second
    assert [reason for _, reason in kinds[:6]] == ["block start"] * 2 + ["reuse", "interval"] + ["reuse"] * 2


def test_a_partial_step_recomputes_all_masks_and_what_was_just_decoded() -> None:
    story = told(interval=100)
    story.step({0: 0.1, 3: 0.1})
    story.step({1: 0.1, 4: 0.1})
    # 0 and 3 entered the cache as tokens in the full step 1; masks of the next block are recomputed too.
    assert generated(story) == {1, 4, 2, 5, *range(6, 12)}
    story.step({2: 0.1})
    assert generated(story) == {2, 5, *range(6, 12)}


@pytest.mark.parametrize("delay", [0, 1, 2, 50])
def test_the_delay_counts_steps_and_never_reaches_the_prompt(delay: int) -> None:
    story = told(interval=100, delay=delay)
    for position in range(4):
        story.step({position: 0.1})
    assert generated(story) == {4, 5, *range(6, 12)} | set(range(max(0, 4 - delay), 4))


@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        ("right", {2, 3, 5, *range(6, 12)}),
        # The right neighbour decides: 1 predicts the mask 2, 4 is cached once 5 is decoded.
        ("un", {1, 2, 4, *range(5, 11)}),
        ("un_right", {1, 2, 3, 4, 5, *range(6, 12)}),
    ],
)
def test_shift_says_whose_decoding_lets_a_position_be_cached(shift: str, expected: set[int]) -> None:
    story = told(interval=100, shift=shift)
    story.step({0: 0.1, 1: 0.1})
    story.step({4: 0.1})
    story.step({3: 0.1})
    # Masks left: 2, 5 and the next block; 3 was just decoded.
    assert generated(story) == expected


def test_each_sequence_counts_its_own_block_steps() -> None:
    story = Story(create_policy("dkv", interval=100), [3, 3], 12, 6)
    for position in range(3):
        story.step({position: 0.1}, {2 * position: 0.1, 2 * position + 1: 0.1})
    assert len(story.refresh(0)) < 15
    assert story.refresh(1) == list(range(15))


# The greedy form.


def order_of(story: Story) -> list[int]:
    """The order in which the policy will decode, read off its own plans with one token a step."""
    order = []
    for _ in range(12):
        [position] = (story.plan().decode & story.state.window)[0].nonzero().flatten().tolist()
        order.append(position - 3)
        story.step({position - 3: 0.1})
    return order


def test_the_order_is_random_within_blocks_and_the_seed_s() -> None:
    order = order_of(told("dkv-greedy"))
    assert sorted(order[:6]) == list(range(6))
    assert sorted(order[6:]) == list(range(6, 12))
    assert order == order_of(told("dkv-greedy"))
    assert len({tuple(order_of(told_with_seed(seed))) for seed in range(5)}) > 1


def told_with_seed(seed: int) -> Story:
    return Story(create_policy("dkv-greedy"), [3], 12, 6, seed=seed)


def nearest(candidates: set[int], centers: set[int], window: int) -> set[int]:
    """The `window` candidates nearest to each centre, left before right, in plain Python."""
    return {
        at
        for center in centers
        for at in sorted(candidates, key=lambda at: (abs(at - center), at > center))[:window]
    }


@pytest.mark.parametrize("center", ["next", "last"])
@pytest.mark.parametrize("window", [0, 1, 2, 4, 30])
def test_greedy_recomputes_last_next_and_their_neighbours(window: int, center: str) -> None:
    story = told("dkv-greedy", interval=100, window=window, center=center)
    masked, last = set(range(12)), set()
    for step in range(12):
        [column] = (story.plan().decode & story.state.window)[0].nonzero().flatten().tolist()
        coming = {column - 3}
        if story.state.block_step[0] == 0:
            assert full(story)
        else:
            around = nearest(masked - coming, coming if center == "next" else last, window)
            assert generated(story) == last | coming | around, step
        story.step(dict.fromkeys(coming, 0.1))
        masked, last = masked - coming, coming


def test_greedy_is_full_at_every_interval_of_a_block() -> None:
    story, kinds = told("dkv-greedy", interval=2, window=0), []
    for _ in range(12):
        kinds.append(full(story))
        [column] = (story.plan().decode & story.state.window)[0].nonzero().flatten().tolist()
        story.step({column - 3: 0.1})
    assert kinds == [True, False] * 6


def test_greedy_takes_several_tokens_a_step_and_the_rest_of_a_block() -> None:
    story = told("dkv-greedy", tokens=4)
    sizes = []
    while story.state.window.any():
        chosen = (story.plan().decode & story.state.window)[0].nonzero().flatten().tolist()
        sizes.append(len(chosen))
        story.step({column - 3: 0.1 for column in chosen})
    assert sizes == [4, 2, 4, 2]


def test_without_its_random_order_only_recomputed_masks_of_the_window_are_targets() -> None:
    story = told("dkv-greedy", interval=100, window=2, center="last", random_order=False)
    assert (story.plan().decode & story.state.window)[0].nonzero().flatten().tolist() == list(range(3, 9))
    story.step({2: 0.1})
    assert generated(story) == {2, 1, 3}
    targets = (story.plan().decode & story.state.window)[0].nonzero().flatten().tolist()
    assert targets == [4, 6]
