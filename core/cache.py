"""The K/V buffers and the per-layer increments that a partial pass reads and writes in place."""

import torch
from torch import Tensor

from core.models.attention import multiplies
from core.models.spec import ModelSpec


class KVCache:
    """k, v: [N, B, G, L+1, D], zero at first; k is stored after rope since positions never move.

    Column L is a trash slot that surplus rows write to and nobody attends. Buffers keep their addresses.
    q: [N, B, H, L+1, D] after rope, kept only for a policy that looks at past queries, else None.
    """

    def __init__(
        self,
        spec: ModelSpec,
        num_slots: int,
        length: int,
        device: torch.device,
        dtype: torch.dtype,
        keep_queries: bool = False,
    ) -> None:
        shape = (spec.num_layers, num_slots, spec.num_kv_heads, length + 1, spec.head_dim)
        # As the product with the queries reads them: positions innermost.
        turned = (*shape[:3], spec.head_dim, length + 1) if multiplies(device, dtype) else None
        # Zeros, never empty: a NaN behind an attention mask still poisons the output.
        self.k = torch.zeros(turned or shape, device=device, dtype=dtype)
        if turned:
            self.k = self.k.transpose(3, 4)
        self.v = torch.zeros(shape, device=device, dtype=dtype)
        heads = (*shape[:2], spec.num_heads, *shape[3:])
        self.q = torch.zeros(heads, device=device, dtype=dtype) if keep_queries else None
        self.length = length

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Views of K and V, [B, G, L, D] each."""
        return self.k[layer, :, :, : self.length], self.v[layer, :, :, : self.length]

    def write(self, layer: int, rows: Tensor, keys: Tensor, values: Tensor) -> None:
        """Overwrite rows int [B, R] with keys, values [B, G, R, D]."""
        write_rows(self.k[layer], rows, keys)
        write_rows(self.v[layer], rows, values)


class RowStore:
    """The KVStore of a partial pass: write the rows being computed, attend to the whole buffer."""

    def __init__(self, cache: KVCache, rows: Tensor) -> None:
        self.cache, self.rows = cache, rows
        # Ascending rows that end with position L - 1 and count L are all of them: a plain copy.
        full = rows.shape[1] == cache.length and not rows.is_cuda
        self.whole = full and bool((rows[:, -1] == cache.length - 1).all())

    def update(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        seen_keys, seen_values = self.cache.read(layer)
        if self.cache.q is not None:
            write_rows(self.cache.q[layer], self.rows, queries)
        if self.whole:
            seen_keys.copy_(keys)
            seen_values.copy_(values)
        else:
            self.cache.write(layer, self.rows, keys, values)
        return seen_keys, seen_values


class DeltaCache:
    """increments: [N, B, L+1, d], what each layer last added to each position's residual stream."""

    def __init__(
        self, spec: ModelSpec, num_slots: int, length: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        shape = (spec.num_layers, num_slots, length + 1, spec.hidden_size)
        self.increments = torch.zeros(shape, device=device, dtype=dtype)
        self.length = length

    def update(self, layer: int, rows: Tensor, increments: Tensor) -> Tensor:
        """Store increments [B, R, d] at rows [B, R]; return all of the layer's, [B, L, d]."""
        write_rows(self.increments[layer].unsqueeze(1), rows, increments.unsqueeze(1))
        return self.increments[layer, :, : self.length]


def write_rows(buffer: Tensor, rows: Tensor, values: Tensor) -> None:
    """buffer [B, G, L+1, D] at rows [B, R] becomes values [B, G, R, D]."""
    axis = 2
    if buffer.stride(3) != 1:
        buffer, values, axis = buffer.transpose(2, 3), values.transpose(2, 3).contiguous(), 3
    if rows.shape[0] == 1:
        buffer.index_copy_(axis, rows[0], values)
    else:
        index = rows[:, None, :, None] if axis == 2 else rows[:, None, None]
        buffer.scatter_(axis, index.expand_as(values), values)
