"""How a loaded model's weights lie in memory: as this device multiplies few rows with them fastest."""

import copy
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.models.transformer import Linear, Transformer

# Row count that the blocks are laid out for; a full pass is as fast on them as on plain weights.
ROWS = 64


def arrange_weights(backbone: Transformer) -> None:
    """Lay out the Linear layers of a filled backbone in place, one at a time; on CUDA they stay as they are.

    On a CPU, products of 16 to 128 rows run 1.1 to 1.9 times faster on bfloat16 weights in oneDNN's blocks.
    float32 weights go into blocks where that is faster (by 2 on an AMD EPYC), else they lie input-major,
    which is up to 2 times faster than output-major. A head tied to the embedding stays.
    """
    for index in range(backbone.spec.num_layers):
        backbone.layer(index).join_gains()
    weight = backbone.embedding.weight
    if weight.device.type != "cpu":
        return
    if can_pack(weight.dtype) and (weight.dtype == torch.bfloat16 or blocks_are_faster()):
        for owner, name in _linears(backbone):
            setattr(owner, name, PackedLinear(getattr(owner, name)))
    elif weight.dtype == torch.float32:
        for owner, name in _linears(backbone):
            parameter = getattr(owner, name).weight
            parameter.data = parameter.data.T.contiguous().T


def _linears(backbone: Transformer) -> Iterator[tuple[nn.Module, str]]:
    for layer in backbone.layers:
        for name in ("qkv", "attn_out", "gate_up", "down"):
            yield layer, name
    if not backbone.spec.tied_embeddings:
        yield backbone, "head"


def can_pack(dtype: torch.dtype) -> bool:
    """Whether oneDNN is here, multiplies this dtype on this processor and offers packed weights."""
    needed = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")
    if not torch.backends.mkldnn.is_available() or not all(hasattr(torch.ops.mkldnn, op) for op in needed):
        return False
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32


@cache
def blocks_are_faster() -> bool:
    """Whether float32 products on blocks beat those on input-major weights, by a timing of some 10 ms.

    Once a process, so that all its models compute alike. A near tie goes to plain weights.
    """
    rows, plain = torch.ones(ROWS, 512), torch.ones(512, 1024).T
    packed = _pack(plain)

    def seconds(plainly: bool) -> float:
        begin = time.perf_counter()
        if plainly:
            F.linear(rows, plain)
        else:
            _product(rows, packed, None)
        return time.perf_counter() - begin

    with torch.inference_mode():
        times = [(seconds(True), seconds(False)) for _ in range(8)]
    plain_best, packed_best = map(min, zip(*times, strict=True))
    return packed_best < 0.9 * plain_best


def _pack(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS)


def _product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


class PackedLinear(nn.Module):
    """A Linear for inference on a CPU; holds its weight in oneDNN's blocks only.

    A plain bfloat16 product repacks the weight at every call, to the same results bit by bit; a plain float32
    one uses another library.
    """

    def __init__(self, plain: Linear) -> None:
        super().__init__()
        self.packed, self.bias = _pack(plain.weight.detach()), plain.bias
        self.tail: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        return _product(x, self.packed, self.bias)

    def last(self, x: Tensor, width: int) -> Tensor:
        """See Linear.last. The part is packed at the first call: one policy alone ever asks."""
        if self.tail is None:
            self.tail = _pack(self.packed.to_dense()[-width:])
        return _product(x, self.tail, None if self.bias is None else self.bias[-width:])

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedLinear":
        """A copy with blocks of its own, which PyTorch can't copy as they lie."""
        plain = self.weight
        twin = Linear(plain.shape[1], plain.shape[0], bias=False, device="meta")
        twin.weight = nn.Parameter(plain, requires_grad=False)
        twin.bias = copy.deepcopy(self.bias, memo)
        copied = PackedLinear(twin).train(self.training)
        memo[id(self)] = copied
        return copied

    @property
    def weight(self) -> Tensor:
        """A plain copy [out, in] of the weight."""
        plain: Tensor = self.packed.to_dense()
        return plain
