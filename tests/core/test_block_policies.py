"""`none`, `prefix` and `dual` on hand-made histories: the exact positions they recompute."""

import pytest

from core import create_policy
from tests.core.states import Story


def story(name: str) -> Story:
    """Prompts of 3 and 2 tokens (canvas 3 + 8), blocks of 4."""
    return Story(create_policy(name), [3, 2], gen_length=8, block_length=4)


def test_none_recomputes_every_valid_position() -> None:
    told = story("none")
    for commits in ({0: 0.1}, {1: 0.1, 2: 9.0}, {3: 0.0}, {4: 0.0}):
        assert told.refresh(0) == list(range(11))
        assert told.refresh(1) == list(range(1, 11))
        told.step(commits, commits)


@pytest.mark.parametrize(
    ("name", "first", "second"), [("prefix", range(3, 11), range(7, 11)), ("dual", range(3, 7), range(7, 11))]
)
def test_a_block_begins_in_full_and_goes_on_in_part(name: str, first: range, second: range) -> None:
    told = story(name)
    assert told.refresh() == list(range(11))
    told.step({0: 0.1, 2: 0.1}, {0: 0.1})
    # Decoded positions of the block are recomputed with the masked ones.
    assert told.refresh() == list(first)
    assert told.reason() == "reuse"
    told.step({1: 0.1, 3: 9.0}, {1: 0.1})
    assert told.refresh() == list(range(11))
    assert told.reason() == "block start"
    told.step({4: 0.1}, {2: 0.1})
    assert told.refresh() == list(second)


@pytest.mark.parametrize("name", ["prefix", "dual"])
def test_each_sequence_has_its_own_blocks(name: str) -> None:
    told = story(name)
    told.step({0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1}, {0: 0.1})
    assert told.refresh(0) == list(range(11))
    assert told.refresh(1) != list(range(1, 11))
    told.step({4: 0.1}, {1: 0.1, 2: 0.1, 3: 0.1})
    assert told.refresh(0) != list(range(11))
    assert told.refresh(1) == list(range(1, 11))
