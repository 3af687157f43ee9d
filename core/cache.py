"""The K/V buffers and the per-layer increments that a partial pass reads and writes in place."""

import torch
from torch import Tensor

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
        # Zeros, never empty: a NaN behind an attention mask still poisons the output.
        self.k = torch.zeros(shape, device=device, dtype=dtype)
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

    def update(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.cache.q is not None:
            write_rows(self.cache.q[layer], self.rows, queries)
        self.cache.write(layer, self.rows, keys, values)
        return self.cache.read(layer)


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
    if rows.shape[0] == 1:
        buffer.index_copy_(2, rows[0], values)
    else:
        index = rows[:, None, :, None].expand(-1, buffer.shape[1], -1, buffer.shape[3])
        buffer.scatter_(2, index, values)
