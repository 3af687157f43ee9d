"""The training pass over core's Transformer: tied embeddings, largest attention logit of each head."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.models.spec import ModelSpec
from core.models.transformer import Layer, Rotary, Transformer

WIDEST_COMPILED = 640


def layer_pass(layer: Layer, hidden: Tensor, rotary: Rotary) -> tuple[Tensor, Tensor]:
    """The next residual stream [B, T, d] and the largest attention logit of each head [H].

    Attention is written out: on a CPU the fused kernel's backward pass is slower than two products.
    """
    q, k, v = layer.project(hidden, rotary)
    scores = (q * layer.head_dim**-0.5) @ k.transpose(-1, -2)
    mixed = scores.softmax(dim=-1) @ v
    hidden = hidden + layer.attn_out(mixed.transpose(1, 2).flatten(2))
    return hidden + layer.mlp(hidden), scores.detach().amax(dim=(0, 2, 3))


class TiedModel(nn.Module):
    """Transformer blocks in `dtype` between one float32 embedding that also is the output head.

    The embedding's entries are 1/sqrt(d) large and its output is scaled by sqrt(d), so that token
    identity is not small beside what the blocks add. The export writes the scaled copy and the head.
    """

    def __init__(self, spec: ModelSpec, dtype: torch.dtype, compile_layers: bool) -> None:
        super().__init__()
        self.body = Transformer(spec).to(dtype)
        self.body.embedding.requires_grad_(False)
        self.body.head.requires_grad_(False)
        self.scale = math.sqrt(spec.hidden_size)
        self.embedding = nn.Parameter(torch.randn(spec.vocab_size, spec.hidden_size) / self.scale)
        self._layer_pass = torch.compile(layer_pass, dynamic=False) if compile_layers else layer_pass
        with torch.no_grad():
            self.embedding[spec.mask_token_id] *= 0.25
        for block in self.layers():
            for name, weight in block.named_parameters():
                if weight.ndim == 2:
                    small = 0.1 if name.startswith(("attn_out", "down")) else 1.0
                    nn.init.normal_(weight, std=small / math.sqrt(weight.shape[1]))

    def layers(self) -> list[Layer]:
        return [layer for layer in self.body.layers if isinstance(layer, Layer)]

    def forward(self, tokens: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [M, V] at the flat rows [M] of tokens [B, T], and the largest logits [N, H]."""
        dtype = self.body.final_norm.dtype
        rotary = self.body.rotary(torch.arange(tokens.shape[1], device=tokens.device)[None])
        hidden = (F.embedding(tokens, self.embedding) * self.scale).to(dtype)
        peaks = []
        compiled = torch.is_grad_enabled() and tokens.shape[1] <= WIDEST_COMPILED
        layer_step = self._layer_pass if compiled else layer_pass
        for layer in self.layers():
            hidden, peak = layer_step(layer, hidden, rotary)
            peaks.append(peak)
        hidden = hidden.flatten(0, 1)[rows]
        normed = F.rms_norm(hidden, (hidden.shape[-1],), self.body.final_norm, self.body.spec.rms_norm_eps)
        return F.linear(normed, self.embedding.to(dtype)), torch.stack(peaks)
