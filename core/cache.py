"""The K/V buffers and the per-layer increments that a partial pass reads and writes in place."""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.models.spec import ModelSpec


class RowBuffer:
    """rows: [N, B, G, L, D], zero at first, without a gap in each layer, so that products read it in place.

    Behind a layer's rows lies one more, which surplus entries write to and nobody reads.
    """

    def __init__(
        self,
        num_layers: int,
        num_slots: int,
        groups: int,
        length: int,
        width: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        count = num_slots * groups * length
        # Zeros, never empty: a NaN behind an attention mask still poisons the output.
        self._flat = torch.zeros(num_layers, count + 1, width, device=device, dtype=dtype)
        self.rows = self._flat[:, :count].view(num_layers, num_slots, groups, length, width)

    def places(self, rows: Tensor) -> Tensor:
        """Where rows int [B, R], surplus ones equal to L, are written in each layer: int [B * G * R]."""
        _, batch, groups, length, _ = self.rows.shape
        first = torch.arange(0, batch * groups * length, length, device=rows.device).view(batch, groups, 1)
        at = torch.where(rows < length, rows, batch * groups * length)[:, None]
        return (at + first).clamp_(max=batch * groups * length).flatten()

    def write(self, layer: int, places: Tensor, values: Tensor) -> None:
        """Overwrite `places` with values [B, G, R, D]."""
        self._flat[layer].index_copy_(0, places, values.reshape(-1, values.shape[-1]))


class KVCache:
    """k, v: [N, B, G, L, D]; k is stored after rope since positions never move. Buffers keep their addresses.

    q: [N, B, H, L, D] after rope, kept only for a policy that looks at past queries, else None. key_masks:
    what the last pass let each layer see, bool [B, 1, 1, L] or None for all; empty before any.
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
        def buffer(heads: int) -> RowBuffer:
            return RowBuffer(spec.num_layers, num_slots, heads, length, spec.head_dim, device, dtype)

        self.keys, self.values = buffer(spec.num_kv_heads), buffer(spec.num_kv_heads)
        self.queries = buffer(spec.num_heads) if keep_queries else None
        self.k, self.v = self.keys.rows, self.values.rows
        self.q = self.queries.rows if self.queries else None
        self.length = length
        self.key_masks: Sequence[Tensor | None] = ()

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Views of K and V, [B, G, L, D] each."""
        return self.k[layer], self.v[layer]


class RowStore:
    """The KVStore of a partial pass: write the rows being computed, attend to the whole buffer."""

    def __init__(self, cache: KVCache, rows: Tensor) -> None:
        self.cache = cache
        # Ascending rows that end with position L - 1 and count L are all of them: a plain copy.
        full = rows.shape[1] == cache.length and not rows.is_cuda
        self.whole = full and bool((rows[:, -1] == cache.length - 1).all())
        self.places = cache.keys.places(rows)
        self.query_places = cache.queries.places(rows) if cache.queries else None

    def update(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        cache = self.cache
        if cache.queries is not None and self.query_places is not None:
            cache.queries.write(layer, self.query_places, queries)
        seen_keys, seen_values = cache.read(layer)
        if self.whole:
            seen_keys.copy_(keys)
            seen_values.copy_(values)
        else:
            cache.keys.write(layer, self.places, keys)
            cache.values.write(layer, self.places, values)
        return seen_keys, seen_values


class DeltaCache:
    """increments: [N, B, L, d], what each layer last added to each position's residual stream."""

    def __init__(
        self, spec: ModelSpec, num_slots: int, length: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._buffer = RowBuffer(spec.num_layers, num_slots, 1, length, spec.hidden_size, device, dtype)
        self.increments = self._buffer.rows[:, :, 0]

    def update(self, layer: int, rows: Tensor, increments: Tensor) -> Tensor:
        """Store increments [B, R, d] at rows [B, R]; return all of the layer's, [B, L, d]."""
        self._buffer.write(layer, self._buffer.places(rows), increments)
        return self.increments[layer]
