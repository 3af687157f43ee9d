"""DecodeState: clocks of each sequence, blocks, the sliding window and what a commit may touch."""

import pytest
import torch
from torch import Tensor

from core.state import NOT_YET, PROMPT, DecodeState

MASK, PAD = 9, 0


def two_sequences(sliding: bool = False) -> DecodeState:
    """Prompts of 3 and 1 tokens on a canvas of 3 + 8, blocks of 4."""
    state = DecodeState.empty(2, 3, 8, 4, sliding, PAD, torch.device("cpu"))
    state.admit(0, [5, 6, 7], MASK, PAD)
    state.admit(1, [8], MASK, PAD)
    return state


def commit(state: DecodeState, slot: int, *positions: int) -> None:
    chosen = torch.zeros_like(state.valid)
    chosen[slot, list(positions)] = True
    state.commit(chosen, torch.full_like(state.tokens, 4))


def where(mask: Tensor) -> list[int]:
    return mask.nonzero().flatten().tolist()


def test_prompts_are_left_padded_and_positions_count_valid_tokens() -> None:
    state = two_sequences()
    assert state.tokens[1].tolist() == [PAD, PAD, 8] + [MASK] * 8
    assert where(state.valid[1]) == list(range(2, 11))
    assert state.positions[0].tolist() == list(range(11))
    assert state.positions[1, 2:].tolist() == list(range(9))
    assert state.decoded_at[1].tolist() == [PROMPT] * 3 + [NOT_YET] * 8


def test_the_window_is_the_masks_of_the_first_unfinished_block() -> None:
    state = two_sequences()
    assert where(state.window[0]) == [3, 4, 5, 6]
    assert state.block_is_new.all()
    commit(state, 0, 3, 5)
    state.advance()
    assert where(state.window[0]) == [4, 6]
    assert where(state.in_block[0]) == [3, 4, 5, 6]
    assert not state.block_is_new.any()


def test_each_sequence_moves_to_its_next_block_on_its_own() -> None:
    state = two_sequences()
    commit(state, 0, 3, 4, 5, 6)
    commit(state, 1, 3)
    state.advance()
    assert where(state.window[0]) == [7, 8, 9, 10]
    assert where(state.window[1]) == [4, 5, 6]
    assert state.block_is_new.tolist() == [True, False]
    assert state.block_step.tolist() == [0, 1]
    assert state.step.tolist() == [1, 1]


def test_a_commit_never_changes_another_position() -> None:
    state = two_sequences()
    before = state.tokens.clone()
    commit(state, 0, 4)
    state.advance()
    commit(state, 1, 5)
    changed = state.tokens != before
    assert where(changed[0]) == [4]
    assert where(changed[1]) == [5]
    assert state.decoded_at[0, 4] == 0
    assert state.decoded_at[1, 5] == 1
    assert where(state.just_decoded[0]) == [4]


def test_an_idle_slot_has_no_window_and_its_clock_stands() -> None:
    state = DecodeState.empty(2, 3, 8, 4, False, PAD, torch.device("cpu"))
    state.admit(1, [5, 6], MASK, PAD)
    assert not state.window[0].any()
    state.advance()
    assert state.step.tolist() == [0, 1]


def test_a_slot_is_as_new_after_it_is_admitted_again() -> None:
    state = two_sequences()
    commit(state, 0, 3, 4, 5, 6)
    state.advance()
    state.admit(0, [2, 3], MASK, PAD)
    assert state.tokens[0].tolist() == [PAD, 2, 3] + [MASK] * 8
    assert where(state.window[0]) == [3, 4, 5, 6]
    assert state.step[0] == 0
    assert state.block_step[0] == 0
    assert state.block_is_new[0]
    assert not state.just_decoded[0].any()


def test_the_sliding_window_is_the_leftmost_masks() -> None:
    state = two_sequences(sliding=True)
    commit(state, 0, 4, 6)
    state.advance()
    assert where(state.window[0]) == [3, 5, 7, 8]
    commit(state, 0, 3)
    state.advance()
    assert where(state.window[0]) == [5, 7, 8, 9]
    assert where(state.in_block[0]) == [5, 6, 7, 8, 9]
    assert where(state.window[1]) == [3, 4, 5, 6]


@pytest.mark.parametrize("sliding", [False, True])
def test_admitting_a_sequence_leaves_the_clocks_of_its_neighbours_alone(sliding: bool) -> None:
    state = two_sequences(sliding)
    commit(state, 0, 3, 4, 5, 6)
    state.advance()
    clocks = ("step", "block_step", "block_start", "block_stop", "block_is_new", "window", "decoded_at")
    before = {name: getattr(state, name)[0].clone() for name in clocks}
    state.admit(1, [2], MASK, PAD)
    for name, value in before.items():
        assert torch.equal(getattr(state, name)[0], value), name
