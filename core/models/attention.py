"""Attention of the rows being computed over all keys, by the kernels that this device runs fastest."""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

# Scores held at a time by two products: with their softmax they stay in a processor's cache.
NUM_SCORES = 2**20


def attend(q: Tensor, keys: Tensor, values: Tensor, key_mask: Tensor | None = None) -> Tensor:
    """Mixed values [B, H, R, D] of queries [B, H, R, D] over keys and values [B, G, L, D].

    key_mask: bool [B, 1, 1, L], False where a key is not seen; None sees all, and keeps the fused kernel.
    """
    if multiplies(q.device, q.dtype) and not q.requires_grad:
        return _two_products(q, keys, values, key_mask)
    grouped = q.shape[1] != keys.shape[1]
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=key_mask, enable_gqa=grouped)


def multiplies(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether two products and a softmax are faster than PyTorch's fused kernel.

    They are in bfloat16 on processors that multiply it without tiles: the fused kernel's own products
    are slow there, and with tiles (AMX) they are fast. Decided by the processor, not by a timing, so that
    one machine always rounds alike in one dtype.
    """
    return device.type == "cpu" and dtype == torch.bfloat16 and _multiplies_without_tiles()


@cache
def _multiplies_without_tiles() -> bool:
    has = torch.cpu.get_capabilities()
    return bool(has.get("avx512_bf16") and not has.get("amx_bf16")) and torch.backends.mkldnn.is_available()


def _two_products(q: Tensor, keys: Tensor, values: Tensor, key_mask: Tensor | None) -> Tensor:
    """Scores are rounded to q's dtype before their softmax, which the fused kernel does not do."""
    batch, _, _, width = q.shape
    groups, length = keys.shape[1:3]
    # Query heads that share keys are rows of one product.
    queries = q.reshape(batch * groups, -1, width)
    turned, values = keys.flatten(0, 1).transpose(1, 2), values.flatten(0, 1)
    hidden = None if key_mask is None else ~key_mask[:, 0].repeat_interleave(groups, dim=0)
    mixed = torch.empty_like(queries)
    unused, scale = q.new_empty(1), width**-0.5
    rows = queries.shape[1]
    # All rows of one head before all heads of one row: keys are read once.
    heads_at_once = max(1, min(len(queries), NUM_SCORES // max(1, rows * length)))
    rows_at_once = max(1, min(rows, NUM_SCORES // (heads_at_once * length)))
    for head in range(0, len(queries), heads_at_once):
        some = slice(head, head + heads_at_once)
        for row in range(0, rows, rows_at_once):
            part = some, slice(row, row + rows_at_once)
            scores = torch.baddbmm(unused, queries[part], turned[some], beta=0, alpha=scale)
            if hidden is not None:
                scores.masked_fill_(hidden[some], float("-inf"))
            mixed[part] = torch.bmm(scores.softmax(dim=-1), values[some])
    return mixed.view(q.shape)


def attention_weights(q: Tensor, keys: Tensor, key_mask: Tensor | None) -> Tensor:
    """Softmax attention of every head in float32, [B, H, R, L]; slower than `attend`."""
    batch, heads, rows, width = q.shape
    scores = q.reshape(batch, keys.shape[1], -1, width) @ keys.transpose(-1, -2)
    scores = scores.view(batch, heads, rows, -1).float().mul_(width**-0.5)
    if key_mask is not None:
        scores.masked_fill_(~key_mask, float("-inf"))
    return scores.softmax(dim=-1)


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """Values [B, G, L, D] weighted by attention [B, H, R, L], as `attend` gives them: [B, H, R, D]."""
    batch, heads, rows, length = weights.shape
    grouped = weights.to(values.dtype).view(batch, values.shape[1], -1, length)
    return (grouped @ values).view(batch, heads, rows, -1)
