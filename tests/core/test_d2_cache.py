"""d2Cache's two stages on hand-made states, and its rollout against the definition in plain numpy."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from core import create_policy
from core.policies.base import Outcome
from core.policies.d2_cache import matrix_rollout, vector_rollout
from core.sampling import Proposal
from core.unmask import certainty_density
from tests.core.states import Story


def attention(seed: int, layers: int = 4, batch: int = 2, length: int = 9) -> list[tuple[Tensor, Tensor]]:
    """Head-mean weights [B, R, L] and rows [B, R] of some queries; the last row of sequence 1 is surplus."""
    generator = torch.Generator().manual_seed(seed)
    given = []
    for layer in range(layers):
        count = 3 + layer
        rows = torch.stack(
            [torch.randperm(length, generator=generator)[:count].sort().values for _ in range(batch)]
        )
        weights = torch.rand(batch, count, length, generator=generator).softmax(dim=-1)
        rows[1, -1], weights[1, -1] = length, 0
        given.append((weights, rows))
    return given


def rollout_by_definition(given: list[tuple[Tensor, Tensor]], sequence: int, length: int) -> np.ndarray:
    """Column sums of A'_N ... A'_1, A' = rownorm(A + I), a row without a query being the identity's."""
    product = np.eye(length)
    for weights, rows in given:
        matrix = np.eye(length)
        for place, row in enumerate(rows[sequence].tolist()):
            if row < length:
                matrix[row] = weights[sequence, place].numpy()
        matrix = matrix + np.eye(length)
        product = (matrix / matrix.sum(axis=1, keepdims=True)) @ product
    return product.sum(axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_both_forms_of_the_rollout_are_the_definition(seed: int) -> None:
    given = attention(seed)
    vector, matrix = vector_rollout(given, 9), matrix_rollout(given, 9)
    torch.testing.assert_close(vector, matrix, rtol=0, atol=1e-5)
    for sequence in range(2):
        wanted = rollout_by_definition(given, sequence, 9)
        np.testing.assert_allclose(vector[sequence].numpy(), wanted, atol=1e-5)
        assert vector[sequence].sum() == pytest.approx(9, abs=1e-4)


def told(**settings: object) -> Story:
    """A prompt of 3 and a generation of 12 in blocks of 4; nothing inflated unless asked for."""
    return Story(create_policy("d2cache", **({"inflate": 0} | settings)), [3], 12, 4)


def hear(story: Story, importance: dict[int, float], confidence: dict[int, float]) -> None:
    """What the last step saw: attention that gives these columns this importance, window confidences."""
    policy, length = story.policy, 15
    policy.importance = torch.zeros(1, length)  # type: ignore[attr-defined]
    policy.confidence = torch.zeros(1, length)  # type: ignore[attr-defined]
    for column, value in importance.items():
        policy.importance[0, column] = value  # type: ignore[attr-defined]
    for position, value in confidence.items():
        policy.confidence[0, 3 + position] = value  # type: ignore[attr-defined]


def observed(story: Story, commits: dict[int, float]) -> None:
    """One step in which every layer's queries were the window and attended evenly."""
    rows = story.state.window[0].nonzero().flatten()[None]
    weights = torch.full((1, 2, rows.shape[1], 15), 1 / 15)
    plan = story.plan()
    assert plan.on_attention is not None
    for layer in range(3):
        plan.on_attention(layer, weights, rows)
    story.step(commits)


def test_masks_of_the_highest_confidence_times_density_are_recomputed() -> None:
    story = told(current_k=2, rollout_p=0.0)
    observed(story, {0: 0.1})
    hear(story, {0: 1.0}, {1: 0.2, 2: 0.9, 3: 0.5})
    # Two masks, the token just committed (column 3) and the one most important of the rest.
    assert story.refresh() == [0, 3, 5, 6]


def test_density_prefers_masks_near_decoded_tokens() -> None:
    story = told(current_k=1, rollout_p=0.0, sigma=1.0)
    observed(story, {0: 0.1})
    hear(story, {0: 1.0}, {1: 0.5, 2: 0.5, 3: 0.5})
    assert story.refresh() == [0, 3, 4]


def test_equal_scores_go_to_the_earlier_position() -> None:
    story = told(current_k=2, rollout_p=0.0)
    observed(story, {0: 0.1})
    hear(story, {1: 1.0}, {})
    assert story.refresh() == [1, 3, 4, 5]


def test_the_window_s_masks_come_before_those_of_later_blocks() -> None:
    story = told(current_k=4, rollout_p=0.0)
    observed(story, {0: 0.1, 1: 0.1})
    hear(story, {0: 1.0}, {2: 0.1, 3: 0.1, 4: 0.9, 7: 0.8, 8: 0.99})
    # The fourth mask left is position 5: the search ends with its block, and 8 is out of reach.
    assert story.refresh() == [0, 3, 4, 5, 6, 7, 10]


def test_the_nucleus_holds_a_share_of_what_is_left_and_one_position_at_least() -> None:
    importance = {0: 5.0, 1: 3.0, 2: 2.0, 3: 90.0}
    chosen = {}
    for share in (0.0, 0.5, 0.8, 1.0):
        story = told(current_k=1, rollout_p=share)
        observed(story, {0: 0.1})
        hear(story, importance, {1: 0.9})
        chosen[share] = [column for column in story.refresh() if column < 3]
    # Column 3 was just committed: its 90 are not part of the rest's 10.
    assert chosen == {0.0: [0], 0.5: [0], 0.8: [0, 1], 1.0: [0, 1, 2]}


def test_equal_importance_goes_to_the_earlier_position() -> None:
    story = told(current_k=1, rollout_p=0.0)
    observed(story, {0: 0.1})
    hear(story, {1: 1.0, 2: 1.0}, {1: 0.9})
    assert story.refresh() == [1, 3, 4]


def test_gaps_up_to_the_inflation_are_filled() -> None:
    wanted = {0: [0, 3, 6], 2: [0, 3, 6], 3: [0, 1, 2, 3, 4, 5, 6]}
    for inflate, expected in wanted.items():
        story = told(current_k=1, rollout_p=0.0, inflate=inflate)
        observed(story, {0: 0.1})
        hear(story, {0: 1.0}, {3: 0.9})
        assert story.refresh() == expected


def test_only_recomputed_masks_may_be_decoded() -> None:
    story = told(current_k=1, rollout_p=0.0)
    observed(story, {0: 0.1})
    hear(story, {0: 1.0}, {2: 0.9})
    plan = story.plan()
    assert plan.decode is not None
    assert (plan.decode & story.state.window)[0].nonzero().flatten().tolist() == [5]


def test_confidence_is_updated_where_it_was_seen_and_kept_elsewhere() -> None:
    story = told()
    observed(story, {0: 0.1})
    hear(story, {}, {1: 0.3, 2: 0.6, 5: 0.4})
    plan = story.plan()
    assert plan.on_attention is not None
    for layer in range(3):
        plan.on_attention(layer, torch.full((1, 2, 1, 15), 1 / 15), torch.tensor([[4]]))
    positions = torch.tensor([[4, 5, 15]])
    seen = torch.tensor([[0.9, 0.8, 0.7]])
    given = Proposal(
        positions, positions < 15, positions * 0, seen, seen, seen, positions < 0, seen[..., None]
    )
    story.policy.observe(story.state, Outcome(positions < 0, given, torch.tensor([False]), positions))
    kept = story.policy.confidence[0]  # type: ignore[attr-defined]
    torch.testing.assert_close(kept[[4, 5, 8]], torch.tensor([0.9, 0.8, 0.4]))


def test_density_is_the_gaussian_share_of_decoded_positions() -> None:
    """Left of the response counts as decoded, right of it as its last token does."""
    story = told()
    observed(story, {0: 0.1, 2: 0.1})
    decoded = [True] * 4 + [False, True] + [False] * 9
    sigma, reach = 2.0, 8
    kernel = {offset: math.exp(-0.5 * (offset / sigma) ** 2) for offset in range(-reach, reach + 1)}
    wanted = [
        sum(
            weight * (decoded[at + offset] if 0 <= at + offset < 15 else at + offset < 0)
            for offset, weight in kernel.items()
        )
        / sum(kernel.values())
        for at in range(15)
    ]
    torch.testing.assert_close(
        certainty_density(story.state, sigma)[0], torch.tensor(wanted), rtol=0, atol=1e-5
    )
