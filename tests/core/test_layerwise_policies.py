"""dLLM-Cache and Elastic-Cache before a hand-made layer: which rows each layer recomputes."""

import pytest
import torch
from torch import Tensor

from core import create_policy
from tests.core.states import SPEC, Story


class HandMadeLayer:
    """A LayerView over given tensors. cached, fresh: [B, G, L, D]; past: attention [B, H, L]."""

    def __init__(self, cached: Tensor, fresh: Tensor, past: Tensor) -> None:
        self.cached, self.fresh, self.past = cached, fresh, past
        self.asked: list[list[int]] = []

    def values(self, start: int) -> Tensor:
        return self.cached[:, :, start:]

    def swap_values(self, start: int) -> Tensor:
        self.cached[:, :, start:] = self.fresh[:, :, start:]
        return self.fresh[:, :, start:]

    def attention_rows(self, position: Tensor) -> Tensor:
        self.asked.append(position.tolist())
        return self.past


def columns(mask: Tensor) -> list[int]:
    return mask.nonzero().flatten().tolist()


# dLLM-Cache: a prompt of 3, a response of 8.


def turned(angles: list[float]) -> Tensor:
    """Two-dimensional values of 11 positions, the response's turned by these angles: [1, 1, 11, 2]."""
    angle = torch.tensor([0.0] * 3 + angles)
    return torch.stack((angle.cos(), angle.sin()), dim=-1)[None, None]


def layer(angles: list[float]) -> HandMadeLayer:
    return HandMadeLayer(turned([0.0] * 8), turned(angles), torch.zeros(1, 2, 11))


def dllm(**settings: object) -> Story:
    """In its second step, with nothing due: kp and kr are long."""
    story = Story(create_policy("dllm-cache", **({"kp": 100, "kr": 100} | settings)), [3], 8, 4)
    story.step({0: 0.1})
    return story


def asked(story: Story, index: int, view: HandMadeLayer) -> list[int]:
    per_layer = story.plan().per_layer
    assert per_layer is not None
    return columns(per_layer(index, view)[0])


def test_the_response_rows_that_turned_most_are_recomputed() -> None:
    view = layer([0.1, 0.9, 0.2, 0.8, 0.0, 0.3, 1.0, 0.05])
    assert asked(dllm(ratio=0.25), 1, view) == [4, 9]
    assert asked(dllm(ratio=0.5), 1, layer([0.1, 0.9, 0.2, 0.8, 0.0, 0.3, 1.0, 0.05])) == [4, 6, 8, 9]
    # All fresh V of the response are kept, those of rows that stay cached too; the prompt's are not.
    assert torch.equal(view.cached, view.fresh)


def test_equal_turns_go_to_the_earlier_position_and_the_count_is_rounded_down() -> None:
    assert asked(dllm(ratio=0.4), 1, layer([0.0, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.0])) == [4, 5, 7]
    assert asked(dllm(ratio=0.1), 1, layer([0.0] * 8)) == []


def test_length_does_not_count_only_direction_does() -> None:
    view = layer([0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0])
    view.fresh[:, :, 3:5] *= 100
    assert asked(dllm(ratio=0.125), 1, view) == [5]


def test_the_first_layer_is_recomputed_entirely_at_every_step() -> None:
    assert asked(dllm(ratio=0.25), 0, layer([0.5] * 8)) == list(range(11))


def test_a_ratio_of_nothing_only_reuses() -> None:
    assert asked(dllm(ratio=0.0), 1, layer([0.5] * 8)) == []


def test_prompt_and_response_have_intervals_of_their_own() -> None:
    story = Story(create_policy("dllm-cache", kp=3, kr=2, ratio=0.0), [3], 8, 4)
    seen = []
    for position in range(7):
        seen.append((asked(story, 1, layer([0.0] * 8)), story.reason()))
        story.step({position: 0.1})
    prompt, response = [0, 1, 2], list(range(3, 11))
    assert seen == [
        (prompt + response, "both intervals"),
        ([], "reuse"),
        (response, "response interval"),
        (prompt, "prompt interval"),
        (response, "response interval"),
        ([], "reuse"),
        (prompt + response, "both intervals"),
    ]


# Elastic-Cache: a prompt of 3, blocks of 4, two heads.


def elastic(gamma: float = 0.9) -> Story:
    """In its third step: positions 0 and 2 are decoded, 2 just now."""
    story = Story(create_policy("elastic", gamma=gamma), [3], 8, 4)
    story.step({0: 0.1})
    story.step({2: 0.1})
    return story


def attention(*heaviest: int) -> Tensor:
    """Attention [1, H, 11] of one row, a head a position to which it goes."""
    return torch.stack([torch.eye(11)[position] for position in heaviest])[None]


def run_layers(
    story: Story, past: Tensor, now: list[Tensor], window_looks_at: list[Tensor]
) -> list[list[int]]:
    """Rows asked of each layer. now: the tracked row's attention; window_looks_at: the window's, [11]."""
    plan = story.plan()
    assert plan.per_layer is not None
    assert plan.on_attention is not None
    asked_rows = []
    for index in range(SPEC.num_layers):
        view = HandMadeLayer(torch.zeros(1, 2, 11, 4), torch.zeros(1, 2, 11, 4), past)
        wanted = plan.per_layer(index, view)
        rows = wanted[0].nonzero().flatten()[None]
        asked_rows.append(rows[0].tolist())
        weights = window_looks_at[index].expand(1, 2, rows.shape[1], 11).clone()
        tracked = rows[0].tolist().index(view.asked[0][0])
        weights[:, :, tracked] = now[index]
        plan.on_attention(index, weights, rows)
    return asked_rows


STILL = [attention(1, 1)] * 3
AT_PROMPT = [torch.eye(11)[2]] * 3


def test_window_last_commits_and_the_tracked_token_are_recomputed_while_nothing_drifts() -> None:
    # Tracked at first: the last prompt token, column 2. Masks of the block: columns 4 and 6; just decoded: 5.
    assert run_layers(elastic(), attention(1, 1), STILL, AT_PROMPT) == [[2, 4, 5, 6]] * 3


def test_drift_in_a_layer_recomputes_everything_from_the_next_one_on() -> None:
    everything, some = list(range(11)), [2, 4, 5, 6]
    for first in range(3):
        now = list(STILL)
        now[first] = attention(0, 0)
        wanted = [some if index <= first else everything for index in range(3)]
        assert run_layers(elastic(), attention(1, 1), now, AT_PROMPT) == wanted


def test_similarity_is_the_mean_over_heads() -> None:
    now = [attention(1, 0), *STILL[1:]]
    past = attention(1, 1)
    # One head unmoved, one turned away: similarity one half.
    assert run_layers(elastic(gamma=0.4), past, now, AT_PROMPT)[1] == [2, 4, 5, 6]
    assert run_layers(elastic(gamma=0.6), past, now, AT_PROMPT)[1] == list(range(11))
    # Not below gamma is no drift.
    assert run_layers(elastic(gamma=0.5), past, now, AT_PROMPT)[1] == [2, 4, 5, 6]


def test_the_decoded_token_most_attended_to_by_the_window_is_tracked_next() -> None:
    story = elastic()
    looks = [torch.zeros(11) for _ in range(3)]
    looks[0][[0, 8]] = torch.tensor([0.3, 0.7])  # column 8 is a mask: it cannot be tracked
    looks[1][[3, 0]] = 0.5  # a tie: the earlier position
    looks[2][5] = 1.0
    run_layers(story, attention(1, 1), STILL, looks)
    story.step({1: 0.1})
    # Just decoded: column 4; mask left: 6; tracked, one a layer: 0, 0 and 5.
    assert story.refresh() == [0, 4, 5, 6]


@pytest.mark.parametrize("slot", [0, 1])
def test_the_first_step_of_a_sequence_recomputes_every_layer(slot: int) -> None:
    story = Story(create_policy("elastic"), [3, 2], 8, 4)
    plan = story.plan()
    assert plan.per_layer is not None
    view = HandMadeLayer(torch.zeros(2, 2, 11, 4), torch.zeros(2, 2, 11, 4), torch.zeros(2, 2, 11))
    for index in range(SPEC.num_layers):
        assert plan.per_layer(index, view)[slot].all()
