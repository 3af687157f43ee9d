"""The one bidirectional transformer: each layer returns the residual increment of the rows it is given.

RMSNorm, rotate-half rotary embedding, grouped-query attention and SwiGLU, with optional q/k/v biases
(Qwen2, Dream) and per-head q/k norms (Qwen3). It knows nothing of caching: keys and values go to a
`KVStore` and whatever the store returns is attended.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.models.attention import attend, attention_weights, mix
from core.models.spec import ModelSpec
from core.rows import gather_rows

OnAttention = Callable[[int, Tensor], None]


class KVStore(Protocol):
    """Where a layer's keys and values go, and what it attends to."""

    def update(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take Q [B, H, R, D] and K, V [B, G, R, D] of the rows; return K, V [B, G, L, D] to attend to."""
        ...


class FreshKV:
    """Attend to exactly the rows being computed: a plain pass without a cache."""

    def update(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        return keys, values


class Rotary(NamedTuple):
    """cos and sin of the rows' angles, [B, 1, R, D]; sin is negated in the first half of D."""

    cos: Tensor
    sin: Tensor

    def rotate(self, x: Tensor) -> Tensor:
        return (x * self.cos).addcmul_(x.roll(x.shape[-1] // 2, dims=-1), self.sin)

    def at(self, rows: Tensor) -> "Rotary":
        """The same for rows int [B, R] alone; surplus ones read the last."""
        cos, sin = (gather_rows(table[:, 0], rows)[:, None] for table in self)
        return Rotary(cos, sin)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x [..., D] over its root mean square, in float32, times weight [D] or one that broadcasts to x."""
    if x.is_cuda or x.requires_grad or weight.requires_grad:
        normed = F.rms_norm(x, x.shape[-1:], weight if weight.dim() == 1 else None, eps)
        return normed if weight.dim() == 1 else normed * weight
    # On a CPU F.rms_norm is six kernels with a temporary each, half as fast as this on a full pass.
    wide = x.float()
    length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    scale = torch.addcmul(length.new_full((), eps), length, length, value=1 / x.shape[-1]).rsqrt_()
    normed = wide * scale if wide is x else wide.mul_(scale)
    return normed.mul_(weight).to(x.dtype)


def swiglu(fused: Tensor) -> Tensor:
    """silu of the first half of [..., 2f] times the second, [..., f]."""
    gate, up = fused.chunk(2, dim=-1)
    active = F.silu(gate)
    return active * up if active.requires_grad else active.mul_(up)


class Linear(nn.Linear):
    """A linear layer of which the last outputs can be had alone."""

    def last(self, x: Tensor, width: int) -> Tensor:
        """The last `width` outputs of x [..., d]."""
        return F.linear(x, self.weight[-width:], None if self.bias is None else self.bias[-width:])


class Layer(nn.Module):
    """One pre-norm block; q, k, v and gate, up are fused so a small row count costs few kernels."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        d = spec.hidden_size
        self.num_heads, self.num_kv_heads = spec.num_heads, spec.num_kv_heads
        self.head_dim, self.eps = spec.head_dim, spec.rms_norm_eps
        q_width, kv_width = spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim
        self.attn_norm = nn.Parameter(torch.ones(d))
        self.qkv = Linear(d, q_width + 2 * kv_width, bias=spec.qkv_bias)
        self.q_norm = nn.Parameter(torch.ones(spec.head_dim)) if spec.qk_norm else None
        self.k_norm = nn.Parameter(torch.ones(spec.head_dim)) if spec.qk_norm else None
        # Gains of all q and k heads [H + G, 1, D], once `join_gains` has joined them.
        self.register_buffer("qk_gains", None, persistent=False)
        self.attn_out = Linear(q_width, d, bias=False)
        self.mlp_norm = nn.Parameter(torch.ones(d))
        self.gate_up = Linear(d, 2 * spec.intermediate_size, bias=False)
        self.down = Linear(spec.intermediate_size, d, bias=False)

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(x, weight, self.eps)

    def project(self, hidden: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor, Tensor]:
        """q [B, H, R, D] and k, v [B, G, R, D] of the rows; q and k after rotary embedding."""
        batch, rows, _ = hidden.shape
        heads = self.qkv(self.norm(hidden, self.attn_norm)).view(batch, rows, -1, self.head_dim)
        # One copy here: attention and everything in between run faster on contiguous rows of a head.
        heads = heads.transpose(1, 2).contiguous()
        # q and k are normed and turned together, which halves the kernels of a small pass.
        qk, v = heads.split((self.num_heads + self.num_kv_heads, self.num_kv_heads), dim=1)
        gains = self.gains() if self.qk_gains is None else self.qk_gains
        if gains is not None:
            qk = self.norm(qk, gains)
        q, k = rotary.rotate(qk).split((self.num_heads, self.num_kv_heads), dim=1)
        return q, k, v

    def gains(self) -> Tensor | None:
        """What normed q and k are multiplied with, [H + G, 1, D]; None without such norms."""
        if self.q_norm is None or self.k_norm is None:
            return None
        weights = (self.q_norm.expand(self.num_heads, -1), self.k_norm.expand(self.num_kv_heads, -1))
        return torch.cat(weights)[:, None]

    def join_gains(self) -> None:
        """Join them once for all passes to come; q_norm and k_norm must not change afterwards."""
        self.qk_gains = self.gains()

    def values(self, hidden: Tensor) -> Tensor:
        """Only v [B, G, R, D] of the rows."""
        batch, rows, _ = hidden.shape
        fused = self.qkv.last(self.norm(hidden, self.attn_norm), self.num_kv_heads * self.head_dim)
        return fused.view(batch, rows, self.num_kv_heads, self.head_dim).transpose(1, 2)

    def mlp(self, hidden: Tensor) -> Tensor:
        return self.down(swiglu(self.gate_up(self.norm(hidden, self.mlp_norm))))


class Transformer(nn.Module):
    """Token rows in, residual increments and logits out."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        # Left unfilled: drawing its start on the meta device has torch import its compiler, for a second.
        table = torch.empty(spec.vocab_size, spec.hidden_size)
        self.embedding = nn.Embedding.from_pretrained(table, freeze=False)
        self.layers = nn.ModuleList(Layer(spec) for _ in range(spec.num_layers))
        self.final_norm = nn.Parameter(torch.ones(spec.hidden_size))
        self.head = Linear(spec.hidden_size, spec.vocab_size, bias=False)
        if spec.tied_embeddings:
            self.head.weight = self.embedding.weight

    def layer(self, index: int) -> Layer:
        return cast(Layer, self.layers[index])

    def rotary(self, positions: Tensor) -> Rotary:
        """Angles of int positions [B, R], computed in float32 and cast to the model's dtype."""
        width = self.spec.head_dim
        exponent = torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width
        angles = positions[:, None, :, None] * self.spec.rope_theta**-exponent
        cos, sin, dtype = angles.cos(), angles.sin(), self.final_norm.dtype
        return Rotary(torch.cat((cos, cos), dim=-1).to(dtype), torch.cat((-sin, sin), dim=-1).to(dtype))

    def layer_delta(
        self,
        index: int,
        hidden: Tensor,
        rotary: Rotary,
        store: KVStore,
        key_mask: Tensor | None = None,
        on_attention: OnAttention | None = None,
        outputs: Tensor | None = None,
    ) -> Tensor:
        """Attention plus MLP output [B, R, d] of the rows `hidden` [B, R, d] at layer `index`.

        outputs: int [B, T], the places in R whose increment is wanted, all of them by default; of the
        others only K and V are computed. key_mask: bool [B, 1, 1, L], False on left padding; None where
        nothing is padded, which keeps the fused attention kernel. on_attention receives the weights
        [B, H, R, L] of every head.
        """
        # Q, K and V are gone again before the MLP, the widest part, makes its own.
        mixed = self._mixed(index, hidden, rotary, store, key_mask, on_attention, outputs)
        layer = self.layer(index)
        attended = layer.attn_out(mixed)
        del mixed
        hidden = hidden if outputs is None else gather_rows(hidden, outputs)
        return attended + layer.mlp(hidden + attended)

    def _mixed(
        self,
        index: int,
        hidden: Tensor,
        rotary: Rotary,
        store: KVStore,
        key_mask: Tensor | None,
        on_attention: OnAttention | None,
        outputs: Tensor | None,
    ) -> Tensor:
        """What attention brings to the rows of layer_delta, or those at `outputs`: [B, T, H x D]."""
        q, k, v = self.layer(index).project(hidden, rotary)
        keys, values = store.update(index, q, k, v)
        if outputs is not None:
            q = gather_rows(q.transpose(1, 2), outputs).transpose(1, 2)
        if on_attention is None:
            mixed = attend(q, keys, values, key_mask)
        else:
            weights = attention_weights(q, keys, key_mask)
            on_attention(index, weights)
            mixed = mix(weights, values)
        return mixed.transpose(1, 2).flatten(2)

    def logits(self, hidden: Tensor) -> Tensor:
        """Final norm and language-model head: [B, T, d] to [B, T, V]."""
        return self.head(rms_norm(hidden, self.final_norm, self.spec.rms_norm_eps))

    def source(self, targets: Tensor) -> Tensor:
        """Rows whose hidden state predicts the targets, bool [B, L]: the one place that knows the shift."""
        shift = self.spec.logit_shift
        return F.pad(targets[:, shift:], (0, shift)) if shift else targets

    def forward(self, tokens: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Raw, unshifted logits [B, L, V] of a plain pass over tokens [B, L]; differentiable."""
        positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        rotary, store = self.rotary(positions), FreshKV()
        hidden = self.embedding(tokens)
        for index in range(self.spec.num_layers):
            hidden = hidden + self.layer_delta(index, hidden, rotary, store, key_mask)
        return self.logits(hidden)
