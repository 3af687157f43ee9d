"""From a boolean mask of positions to padded row indices."""

import torch
from torch import Tensor


def to_rows(mask: Tensor, num_rows: int) -> Tensor:
    """Positions set in bool [B, L] as int64 [B, num_rows], ascending; surplus entries equal L.

    num_rows must be at least the largest count of a sequence.
    """
    batch, length = mask.shape
    if batch == 1 and mask.is_cuda:
        return mask[0].nonzero_static(size=num_rows, fill_value=length).view(1, num_rows)
    if batch == 1:
        # The same in half the time, where a size that depends on data costs no synchronisation.
        rows = mask[0].nonzero().view(1, -1)
    else:
        columns = torch.arange(length, device=mask.device)
        rows = torch.where(mask, columns, length).sort(dim=1).values[:, :num_rows].contiguous()
    missing = num_rows - rows.shape[1]
    return torch.nn.functional.pad(rows, (0, missing), value=length) if missing > 0 else rows


def row_index(rows: Tensor, positions: Tensor) -> Tensor:
    """Where each of `positions` [B, T] stands in `rows` [B, R], ascending; int64 [B, T].

    Some place of another row for a position that is not among them.
    """
    return torch.searchsorted(rows, positions).clamp(max=rows.shape[1] - 1)


def gather_rows(values: Tensor, rows: Tensor) -> Tensor:
    """values [B, L, ...] at rows [B, R]; surplus entries read the last position."""
    clamped = rows.clamp(max=values.shape[1] - 1)
    if values.shape[0] == 1:
        return values[0].index_select(0, clamped[0])[None]
    index = clamped.view(*clamped.shape, *(1,) * (values.dim() - 2))
    return values.gather(1, index.expand(*clamped.shape, *values.shape[2:]))


def round_up(count: int, bucket: int, limit: int) -> int:
    """count rounded up to a multiple of bucket, at least 1 and at most limit."""
    return min(max(1, -(-count // bucket) * bucket), limit)
