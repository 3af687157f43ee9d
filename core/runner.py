"""RowRunner: the pass over planned rows, on CUDA replayed as one graph for each count of rows and sources."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.cache import KVCache
from core.forward import KeyMasks, forward_rows
from core.models.transformer import OnAttention, Rotary, Transformer

Work = Callable[[], Tensor]
Capture = Callable[[Work], Work]
# Row count, source count and whether there is a key mask: passes of one kind are one graph.
Kind = tuple[int, int, bool]

# Recording takes as long as some ten passes. Ours, and a guess until it is measured on a GPU.
RECORD_AFTER = 8


@dataclass(frozen=True)
class Inputs:
    """Buffers that keep their addresses: what a recorded pass reads besides weights and K/V."""

    tokens: Tensor
    rotary: Rotary
    rows: Tensor
    sources: Tensor
    mask: Tensor | None

    def copy(self) -> "Inputs":
        rotary = Rotary(self.rotary.cos.clone(), self.rotary.sin.clone())
        mask = None if self.mask is None else self.mask.clone()
        return Inputs(self.tokens.clone(), rotary, self.rows.clone(), self.sources.clone(), mask)

    def fill(self, other: "Inputs") -> None:
        self.tokens.copy_(other.tokens)
        self.rotary.cos.copy_(other.rotary.cos)
        self.rotary.sin.copy_(other.rotary.sin)
        self.rows.copy_(other.rows)
        self.sources.copy_(other.sources)
        if self.mask is not None and other.mask is not None:
            self.mask.copy_(other.mask)


class RowRunner:
    """`forward_rows` over one KVCache, whose buffers are the graphs' buffers.

    capture: records work and returns its replay, see `cuda_capture`; None runs every pass eagerly, which
    is what a CPU does. Recorded are partial passes whose layers share one key mask and nobody watches;
    a full pass keeps a GPU busy without a graph. A kind of pass is recorded once it has come `record_after`
    times, since the graphs end with the run. A replay's result is overwritten by the next of its kind.
    Tested with a recorder that calls the work again; the CUDA graphs themselves have not been run on a GPU.
    """

    def __init__(
        self,
        model: Transformer,
        cache: KVCache,
        capture: Capture | None,
        record_after: int = RECORD_AFTER,
    ) -> None:
        self.model, self.cache, self.capture, self.record_after = model, cache, capture, record_after
        self.come: Counter[Kind] = Counter()
        self.recorded: dict[Kind, tuple[Inputs, Work]] = {}

    def __call__(
        self,
        tokens: Tensor,
        rotary: Rotary,
        rows: Tensor,
        sources: Tensor,
        key_masks: KeyMasks,
        on_attention: OnAttention | None = None,
    ) -> Tensor:
        """Final hidden states [B, T, d]; arguments as of `forward_rows`."""
        mask = key_masks[0]
        shared = all(other is mask for other in key_masks)
        partial = rows.shape[1] < self.cache.length
        kind = rows.shape[1], sources.shape[1], mask is not None
        recordable = self.capture is not None and on_attention is None and shared and partial
        if not recordable or not self._often(kind):
            return forward_rows(
                self.model, tokens, rotary, rows, sources, self.cache, key_masks, on_attention
            )
        given = Inputs(tokens, rotary, rows, sources, mask)
        if kind not in self.recorded:
            assert self.capture is not None
            inputs = given.copy()
            self.recorded[kind] = inputs, self.capture(lambda: self._pass(inputs))
        inputs, replay = self.recorded[kind]
        inputs.fill(given)
        return replay()

    def _often(self, kind: Kind) -> bool:
        self.come[kind] += 1
        return self.come[kind] > self.record_after

    def _pass(self, inputs: Inputs) -> Tensor:
        masks = [inputs.mask] * self.model.spec.num_layers
        return forward_rows(
            self.model, inputs.tokens, inputs.rotary, inputs.rows, inputs.sources, self.cache, masks
        )


def cuda_capture(work: Work) -> Work:
    """Record work's kernels as a CUDA graph; its inputs, weights and K/V must keep their addresses.

    The warm-up runs leave the K/V as one run does: a pass over the same rows writes the same values.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay
