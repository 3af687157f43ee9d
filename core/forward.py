"""One pass of the transformer over the rows that a plan asks for."""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.cache import DeltaCache, KVCache, RowStore
from core.models.attention import attention_weights
from core.models.transformer import OnAttention, Rotary, Transformer
from core.policies.base import OnRows, PerLayer
from core.rows import gather_rows, round_up, row_index, to_rows

KeyMasks = Sequence[Tensor | None]


def forward_rows(
    model: Transformer,
    tokens: Tensor,
    rotary: Rotary,
    rows: Tensor,
    sources: Tensor,
    cache: KVCache,
    key_masks: KeyMasks,
    on_attention: OnAttention | None = None,
) -> Tensor:
    """Final hidden states [B, T, d] of `sources`; K/V of `rows` are written in place, no others.

    tokens: int [B, L]. rotary: of all L positions. rows: int [B, R], ascending. sources: int [B, T], some
    of the rows: those that predict. key_masks: one a layer, bool [B, 1, 1, L] or None (see layer_delta).
    """
    hidden, turned = model.embedding(gather_rows(tokens, rows)), rotary.at(rows)
    store, places = RowStore(cache, rows), row_index(rows, sources)
    *layers, last = range(model.spec.num_layers)
    for layer in layers:
        hidden = hidden + model.layer_delta(layer, hidden, turned, store, key_masks[layer], on_attention)
    # What the last layer makes of other rows nobody reads, unless its attention is looked at.
    outputs = places if on_attention is None else None
    increment = model.layer_delta(last, hidden, turned, store, key_masks[last], on_attention, outputs)
    if outputs is None:
        increment = gather_rows(increment, places)
    return gather_rows(hidden, places) + increment


class OnRowAttention:
    """Hands a plan's on_attention the conditional sequences' weights with surplus rows zeroed."""

    def __init__(self, callback: OnRows, batch: int, length: int) -> None:
        self.callback, self.batch, self.length = callback, batch, length

    def at(self, rows: Tensor) -> OnAttention:
        rows = rows[: self.batch]
        real = (rows < self.length)[:, None, :, None]

        def hand_over(layer: int, weights: Tensor) -> None:
            # Rows that only pad the batch would make a decision depend on its neighbours. In place: what
            # such a row attends to nobody reads.
            self.callback(layer, weights[: self.batch].mul_(real), rows)

        return hand_over


class CachedLayer:
    """LayerView of one layer before it runs; see core.policies.base. B counts conditional sequences."""

    def __init__(
        self,
        model: Transformer,
        index: int,
        hidden: Tensor,
        cache: KVCache,
        key_mask: Tensor | None,
        batch: int,
    ) -> None:
        self.model, self.index, self.hidden = model, index, hidden
        self.cache, self.key_mask, self.batch = cache, key_mask, batch

    def values(self, start: int) -> Tensor:
        return self.cache.read(self.index)[1][: self.batch, :, start:]

    def swap_values(self, start: int) -> Tensor:
        fresh = self.model.layer(self.index).values(self.hidden[:, start:])
        self.cache.read(self.index)[1][:, :, start:].copy_(fresh)
        return fresh[: self.batch]

    def attention_rows(self, position: Tensor) -> Tensor:
        assert self.cache.q is not None, "a policy that asks for past queries must say keeps_queries"
        queries = self.cache.q[self.index, : self.batch]
        index = position[:, None, None, None].expand(-1, queries.shape[1], 1, queries.shape[3])
        keys = self.cache.read(self.index)[0][: self.batch]
        mask = None if self.key_mask is None else self.key_mask[: self.batch]
        return attention_weights(queries.gather(2, index), keys, mask)[:, :, 0]


def forward_layerwise(
    model: Transformer,
    tokens: Tensor,
    rotary: Rotary,
    cache: KVCache,
    deltas: DeltaCache,
    per_layer: PerLayer,
    allowed: Tensor,
    forced: Tensor,
    key_masks: KeyMasks,
    on_attention: OnRowAttention | None = None,
    row_bucket: int = 1,
) -> tuple[Tensor, Tensor]:
    """Final hidden states [B', L, d] of every position, and layers recomputed per position, int [B, L].

    Each layer recomputes the rows that `per_layer` returns, and all `forced` ones, within `allowed`
    (bool [B, L], the conditional sequences); every other position adds its cached increment. The row
    count, rounded up to a multiple of `row_bucket`, depends on data: one host sync a layer, the price of
    such a method.
    """
    batch, length = allowed.shape
    copies = tokens.shape[0] // batch
    hidden = model.embedding(tokens)
    refreshed = torch.zeros(batch, length, dtype=torch.long, device=tokens.device)
    for layer in range(model.spec.num_layers):
        wanted = per_layer(layer, CachedLayer(model, layer, hidden, cache, key_masks[layer], batch))
        active = ((wanted | forced) & allowed).repeat(copies, 1)
        num_rows = int(active.sum(dim=1).max())
        if num_rows:
            rows = to_rows(active, round_up(num_rows, row_bucket, length))
            callback = on_attention.at(rows) if on_attention else None
            store, mask = RowStore(cache, rows), key_masks[layer]
            increment = model.layer_delta(
                layer, gather_rows(hidden, rows), rotary.at(rows), store, mask, callback
            )
            hidden = hidden + deltas.update(layer, rows, increment)
        else:
            hidden = hidden + deltas.increments[layer]
        refreshed += active[:batch]
    return hidden, refreshed
