"""Attention by two products is attention, in every split of the scores and over every layout of the keys."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from core.cache import KVCache, RowStore
from core.models import attention
from core.models.attention import attend, multiplies
from core.models.spec import ModelSpec
from core.rows import to_rows

SPEC = ModelSpec("llada", 70, 32, 48, 2, 4, 2, 8, 10000.0, 1e-5, 64, 69, (1,), 1)


def tensors(rows: int, length: int, heads: int = 4, groups: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(rows)
    shapes = ((2, heads, rows, 8), (2, groups, length, 8), (2, groups, length, 8))
    q, keys, values = (torch.randn(shape) for shape in shapes)
    return q, keys, values


@pytest.mark.parametrize("held", [1, 40, 200, 10**6])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_two_products_are_the_fused_attention(
    monkeypatch: pytest.MonkeyPatch, held: int, masked: bool, groups: int
) -> None:
    monkeypatch.setattr(attention, "multiplies", lambda device, dtype: True)
    monkeypatch.setattr(attention, "NUM_SCORES", held)
    q, keys, values = tensors(5, 19, groups=groups)
    mask = None
    if masked:
        mask = torch.ones(2, 1, 1, 19, dtype=torch.bool)
        mask[0, ..., :7] = False
    fused = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
    torch.testing.assert_close(attend(q, keys, values, mask), fused)


def test_no_rows_mix_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "multiplies", lambda device, dtype: True)
    q, keys, values = tensors(0, 19)
    assert attend(q, keys, values).shape == (2, 4, 0, 8)


def test_bfloat16_attention_is_float32s_up_to_rounding() -> None:
    q, keys, values = (x.bfloat16() for x in tensors(33, 150))
    exact = F.scaled_dot_product_attention(q.double(), keys.double(), values.double(), enable_gqa=True)
    torch.testing.assert_close(attend(q, keys, values).double(), exact, rtol=0, atol=0.03)


def test_attention_stays_differentiable() -> None:
    q, keys, values = (x.bfloat16() for x in tensors(5, 19))
    attend(q.requires_grad_(), keys, values).float().sum().backward()
    assert q.grad is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("count", [3, 12])
def test_rows_written_are_read_back_and_no_others_change(dtype: torch.dtype, batch: int, count: int) -> None:
    cache = KVCache(SPEC, batch, 12, torch.device("cpu"), dtype)
    assert cache.k.shape == cache.v.shape == (2, batch, 2, 12, 8)
    before = torch.randn(cache.k.shape).to(dtype)
    cache.k.copy_(before)
    cache.v.copy_(-before)
    chosen = torch.zeros(batch, 12, dtype=torch.bool)
    chosen[:, -count:] = True
    # One sequence has fewer rows than the other, and its surplus goes to the row that nobody reads.
    chosen[-1, 9] = batch == 1
    rows = to_rows(chosen, count)
    keys, values = torch.randn(2, batch, 2, count, 8).to(dtype)
    seen_keys, seen_values = RowStore(cache, rows).update(1, keys, keys, values)
    assert torch.equal(cache.k[0], before[0])
    assert seen_keys.is_contiguous()
    assert seen_values.is_contiguous()
    for sequence in range(batch):
        real = rows[sequence] < 12
        at = rows[sequence, real]
        assert torch.equal(seen_keys[sequence][:, at], keys[sequence][:, real])
        assert torch.equal(seen_values[sequence][:, at], values[sequence][:, real])
        rest = ~chosen[sequence]
        assert torch.equal(seen_keys[sequence][:, rest], before[1, sequence][:, rest])


def test_only_bfloat16_on_a_cpu_is_multiplied_apart() -> None:
    assert not multiplies(torch.device("cpu"), torch.float32)
    assert not multiplies(torch.device("cuda"), torch.bfloat16)
