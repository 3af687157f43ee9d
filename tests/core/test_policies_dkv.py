"""`dkv` and `dkv-greedy` on hand-made histories: the exact positions they recompute."""

import random

import pytest
import torch

from core import create_policy
from tests.core.states import Story

EVERYTHING = list(range(11))


def told(name: str = "dkv", window: str = "block", **settings: object) -> Story:
    """Prompts of 3 and 2 tokens (canvas 3 + 8), blocks of 4."""
    return Story(create_policy(name, **settings), [3, 2], gen_length=8, block_length=4, window=window)


def test_two_full_steps_a_block_then_every_interval() -> None:
    story = told(interval=3)
    seen = []
    for position in range(8):
        seen.append((story.refresh() == EVERYTHING, story.reason()))
        story.step({position: 0.1}, {position: 0.1})
    # The engine calls step 0 "first step"; here it is the block's start.
    block = [(True, "block start"), (True, "block start"), (False, "reuse"), (True, "interval")]
    assert seen == block * 2


def test_a_partial_step_recomputes_all_masks_and_what_was_just_decoded() -> None:
    story = told(interval=100)
    story.step({0: 0.1}, {3: 0.1})
    story.step({2: 0.1}, {0: 0.1})
    # Masks of the second block are recomputed in the first one's steps.
    assert story.refresh(0) == [4, 5, 6, 7, 8, 9, 10]
    assert story.refresh(1) == [3, 4, 5, 7, 8, 9, 10]


def test_a_longer_delay_keeps_a_token_longer_and_never_reaches_the_prompt() -> None:
    story = told(interval=100, delay=2)
    for position in (0, 1, 2):
        story.step({position: 0.1}, {position: 0.1})
    assert story.refresh() == [4, 5, 6, 7, 8, 9, 10]
    story = told(interval=100, delay=50)
    story.step({0: 0.1}, {0: 0.1})
    story.step({1: 0.1}, {1: 0.1})
    assert story.refresh() == EVERYTHING[3:]


def test_without_delay_only_masks_are_recomputed() -> None:
    story = told(interval=100, delay=0)
    story.step({0: 0.1}, {0: 0.1})
    story.step({1: 0.1}, {1: 0.1})
    assert story.refresh() == [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("shift", "expected"),
    # Masks at 4, 6..10, just decoded 5: `un` asks for the positions left of these.
    [("right", [4, 5, 6, 7, 8, 9, 10]), ("un", [3, 4, 5, 6, 7, 8, 9]), ("un_right", list(range(3, 11)))],
)
def test_shifts_ask_the_token_itself_its_right_neighbour_or_both(shift: str, expected: list[int]) -> None:
    story = told(interval=100, shift=shift)
    story.step({0: 0.1}, {0: 0.1})
    story.step({2: 0.1}, {2: 0.1})
    assert story.refresh() == expected


def test_each_sequence_counts_its_own_steps_of_a_block() -> None:
    story = told(interval=100)
    story.step({0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1}, {0: 0.1})
    story.step({4: 0.1}, {1: 0.1})
    assert story.refresh(0) == EVERYTHING
    assert story.refresh(1) == [4, 5, 6, 7, 8, 9, 10]
    assert story.reason(0) == "block start"


def test_in_a_sliding_window_the_generation_is_one_block() -> None:
    story = told(window="sliding", interval=100)
    kinds = []
    for position in range(7):
        kinds.append(story.refresh() == EVERYTHING)
        story.step({position: 0.1}, {position: 0.1})
    assert kinds == [True, True] + [False] * 5


@pytest.mark.parametrize("interval", [2, 3, 5])
def test_it_is_a_limit_of_entropy_away_from_its_second_full_step(interval: int) -> None:
    """One block, no entropy trigger, no recents, a full pass every `interval` steps: the same rows."""
    dice = random.Random(interval)
    settings = {
        "entropy_threshold": float("inf"),
        "recent": 0,
        "max_partial_run": interval - 1,
    }
    pair = [
        Story(policy, [3], gen_length=18, block_length=18)
        for policy in (create_policy("dkv", interval=interval), create_policy("entropy", **settings))
    ]
    left, step = set(range(18)), 0
    while left:
        ours, theirs = (story.refresh() for story in pair)
        assert step == 1 or ours == theirs
        chosen = dict.fromkeys(dice.sample(sorted(left), min(len(left), dice.randint(1, 3))), 0.1)
        for story in pair:
            story.step(chosen)
        left -= set(chosen)
        step += 1


def nearest(center: int, masks: set[int], count: int) -> set[int]:
    """Walk outwards from the centre, left first, until `count` masks are found."""
    found: list[int] = []
    for distance in range(1, 100):
        for at in (center - distance, center + distance):
            if at in masks and len(found) < count:
                found.append(at)
    return set(found)


def drawn(story: Story, window: set[int], count: int) -> set[int]:
    """The window's next `count` generated positions in the policy's order."""
    order = story.policy.order[story.prompt_len :].tolist()
    return set(sorted(window, key=lambda at: order[at])[:count])


@pytest.mark.parametrize("center", ["next", "last"])
@pytest.mark.parametrize("window", [0, 1, 4, 100])
@pytest.mark.parametrize("tokens", [1, 3, 100])
def test_greedy_recomputes_last_next_and_their_nearest_masks(tokens: int, window: int, center: str) -> None:
    policy = create_policy("dkv-greedy", interval=100, neighbours=window, tokens=tokens, center=center)
    story = Story(policy, [3], gen_length=18, block_length=6)
    left, last = set(range(18)), set()
    while left:
        block = {at for at in left if at // 6 == min(left) // 6}
        coming = drawn(story, block, tokens)
        plan = story.plan()
        assert plan.decode is not None
        assert set((plan.decode & story.state.window)[0].nonzero().flatten().tolist()) == {
            3 + at for at in coming
        }
        if story.state.block_step[0] > 0:
            centers = coming if center == "next" else last
            around = set().union(*(nearest(at, left - coming, window) for at in centers))
            assert story.refresh() == sorted(3 + at for at in last | coming | around)
            assert len(story.refresh()) <= len(last) + len(coming) + len(centers) * window
        else:
            assert story.refresh() == list(range(21))
        story.step(dict.fromkeys(coming, 0.1))
        left, last = left - coming, coming


def test_greedy_draws_one_order_from_the_seed_whatever_the_batch() -> None:
    alone = Story(create_policy("dkv-greedy"), [2], gen_length=8, block_length=4, seed=3)
    batch = Story(create_policy("dkv-greedy"), [5, 2], gen_length=8, block_length=4, seed=3)
    other = Story(create_policy("dkv-greedy"), [2], gen_length=8, block_length=4, seed=4)
    assert torch.equal(alone.policy.order[2:], batch.policy.order[5:])
    assert not torch.equal(alone.policy.order, other.policy.order)


def test_greedy_in_the_rule_s_order_offers_window_masks_near_the_last_commit() -> None:
    policy = create_policy("dkv-greedy", interval=100, neighbours=2, center="last", random_order=False)
    story = Story(policy, [3, 2], gen_length=8, block_length=4)
    story.step({1: 0.1}, {3: 0.1})
    plan = story.plan()
    # Window 3, 5, 6 around 4, and 3, 4, 5 left of 6; masks of the next block are no candidates.
    assert story.refresh(0) == [3, 4, 5]
    assert story.refresh(1) == [4, 5, 6]
    assert plan.decode is not None
    assert torch.equal(plan.decode, plan.refresh)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"random_order": False}, "center"),
        ({"random_order": False, "center": "last", "neighbours": 0}, "neighbours"),
    ],
)
def test_greedy_refuses_settings_that_leave_nothing_to_decode(settings: dict, named: str) -> None:
    with pytest.raises(ValueError, match=f"{named}.*random_order is false"):
        create_policy("dkv-greedy", **settings)
