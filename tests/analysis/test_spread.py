"""Spread: quartiles where there are enough values for them."""

import numpy as np
import pytest

from analysis.spread import spread


@pytest.mark.parametrize("count", range(1, 12))
def test_few_values_have_a_range_and_more_have_quartiles(count: int) -> None:
    values = np.random.default_rng(count).permutation(count).astype(float)
    ends = (0.25, 0.75) if count >= 4 else (0, 1)
    assert spread(list(values)) == pytest.approx(tuple(np.quantile(values, ends)))
