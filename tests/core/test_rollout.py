"""d2Cache's attention rollout and certainty density against their definitions in plain Python."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from core import create_policy
from core.policies.d2_cache import matrix_rollout, vector_rollout
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


def test_density_is_the_gaussian_share_of_decoded_positions() -> None:
    """Left of the response counts as decoded, right of it as its last token does."""
    story = Story(create_policy("none"), [3], 12, 4)
    story.step({0: 0.1, 2: 0.1})
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
