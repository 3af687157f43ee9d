"""Plain loops: none, prefix and dual as one would write them without an engine, timed against ours."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from analysis.spread import spread
from core import GenerationConfig, LanguageModel, create_policy, generate
from core.models.transformer import Layer
from core.timing import CLOCKS

KINDS = ("none", "prefix", "dual")
KeysValues = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class PlainPoint:
    """One cache: seconds of a generation by the plain loop and by the engine, medians of `repeats` pairs.

    ratio: plain over ours, pair by pair, with its quartiles. equal: share of generated tokens in common;
    1 in float32, less where bfloat16 rounds a near tie the other way.
    """

    kind: str
    model: str
    dtype: str
    threads: int
    clock: str
    prompt_length: int
    gen_length: int
    steps: int
    repeats: int
    plain_seconds: float
    engine_seconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    equal: float


def to_frame(points: Sequence[PlainPoint]) -> pd.DataFrame:
    """One row a cache."""
    return pd.DataFrame([vars(point) for point in points])


class PlainModel:
    """A model's weights in the usual modelling code: separate products, angles and logits of every row,
    K and V concatenated. Its attention is PyTorch's fused kernel too.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.spec, self.backbone = model.spec, model.backbone
        spec, kv = self.spec, self.spec.num_kv_heads * self.spec.head_dim
        sizes = (spec.num_heads * spec.head_dim, kv, kv)
        self.layers = []
        for layer in cast("list[Layer]", self.backbone.layers):
            weights = dict(zip("qkv", layer.qkv.weight.split(sizes), strict=True))
            weights["gate"], weights["up"] = layer.gate_up.weight.chunk(2)
            weights |= {"out": layer.attn_out.weight, "down": layer.down.weight}
            bias = layer.qkv.bias
            biases = dict(zip("qkv", bias.split(sizes), strict=True)) if bias is not None else {}
            self.layers.append((layer, {name: w.contiguous() for name, w in weights.items()}, biases))
        self.head = self.backbone.head.weight.contiguous()

    def __call__(
        self, tokens: Tensor, start: int, before: KeysValues | None, after: KeysValues | None
    ) -> tuple[Tensor, KeysValues]:
        """Logits [1, R, V] and the layers' K, V of tokens int [1, R] at start..start + R - 1."""
        hidden, kept = self.backbone.embedding(tokens), []
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        width = self.spec.head_dim
        exponent = torch.arange(0, width, 2, device=tokens.device).float() / width
        angles = positions[:, None] * self.spec.rope_theta**-exponent
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().to(hidden.dtype), angles.sin().to(hidden.dtype)

        def rotated(x: Tensor) -> Tensor:
            turned = torch.cat((-x[..., width // 2 :], x[..., : width // 2]), dim=-1)
            return x * cos + turned * sin

        for index, (layer, weights, biases) in enumerate(self.layers):
            normed = self._norm(hidden, layer.attn_norm)
            q, k, v = (
                F.linear(normed, weights[name], biases.get(name)).unflatten(-1, (-1, width)).transpose(1, 2)
                for name in "qkv"
            )
            if self.spec.qk_norm:
                assert layer.q_norm is not None
                assert layer.k_norm is not None
                q, k = self._norm(q, layer.q_norm), self._norm(k, layer.k_norm)
            q, k = rotated(q), rotated(k)
            kept.append((k, v))
            around = [past[index] for past in (before,) if past], [past[index] for past in (after,) if past]
            pieces = [*around[0], (k, v), *around[1]]
            keys, values = (torch.cat(tensors, dim=2) for tensors in zip(*pieces, strict=True))
            mixed = F.scaled_dot_product_attention(q, keys, values, enable_gqa=q.shape[1] != k.shape[1])
            hidden = hidden + F.linear(mixed.transpose(1, 2).flatten(2), weights["out"])
            normed = self._norm(hidden, layer.mlp_norm)
            inner = F.silu(F.linear(normed, weights["gate"])) * F.linear(normed, weights["up"])
            hidden = hidden + F.linear(inner, weights["down"])
        return F.linear(self._norm(hidden, self.backbone.final_norm), self.head), kept

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, self.spec.rms_norm_eps)


@torch.inference_mode()
def plain_generate(
    model: PlainModel, prompt: Sequence[int], config: GenerationConfig, kind: str
) -> list[int]:
    """Generated tokens by blocks, a fixed number of the most confident a step."""
    device = model.head.device
    masks = torch.full((1, config.gen_length), model.spec.mask_token_id, device=device)
    tokens = torch.cat((torch.tensor([list(prompt)], device=device), masks), dim=1)
    a_step = config.gen_length // config.quota_steps
    for start in range(len(prompt), tokens.shape[1], config.block_length):
        stop = start + config.block_length
        for step in range(config.block_length // a_step):
            if kind == "none" or step == 0:
                offset, (logits, kept) = 0, model(tokens, 0, None, None)
                before = [(k[:, :, :start], v[:, :, :start]) for k, v in kept]
                after = [(k[:, :, stop:], v[:, :, stop:]) for k, v in kept] if kind == "dual" else None
            else:
                end = stop if kind == "dual" else tokens.shape[1]
                offset, (logits, _) = start, model(tokens[:, start:end], start, before, after)
            probabilities = logits.float().softmax(dim=-1)
            probabilities[..., model.spec.mask_token_id] = -1
            confidence, token = (x[0, start - offset : stop - offset] for x in probabilities.max(dim=-1))
            masked = tokens[0, start:stop] == model.spec.mask_token_id
            best = confidence.masked_fill(~masked, -1).topk(a_step).indices
            tokens[0, start + best] = token[best]
    return tokens[0, len(prompt) :].tolist()


def measure_plain(
    model: LanguageModel,
    prompt: Sequence[int],
    config: GenerationConfig,
    *,
    repeats: int = 5,
    clock: str = "wall",
) -> Iterator[PlainPoint]:
    """A PlainPoint for each cache, runs of loop and engine alternating after one of each.

    Raises ValueError for a shifted model and for another commit rule than the same number at every step.
    """
    if model.spec.logit_shift:
        raise ValueError("the plain loops are written for models whose logits are not shifted")
    steps = config.quota_steps
    if config.unmask != "quota" or config.gen_length % steps:
        raise ValueError(f"steps is {steps}; allowed: unmask=quota and a divisor of gen_length")
    plain = PlainModel(model)
    for kind in KINDS:
        pairs, tokens = [], ([0], [0])
        for repeat in range(repeats + 1):
            loop, ours = (
                _timed(work, clock)
                for work in (
                    lambda: plain_generate(plain, prompt, config, kind),  # noqa: B023
                    lambda: list(generate(model, [prompt], config, create_policy(kind))[0].tokens),  # noqa: B023
                )
            )
            # The first pair warms up and is not counted.
            if repeat:
                pairs.append((loop[0], ours[0]))
            tokens = loop[1], ours[1]
        ratios = [loop_seconds / our_seconds for loop_seconds, our_seconds in pairs]
        low, high = spread(ratios)
        yield PlainPoint(
            kind=kind,
            model=model.ref,
            dtype=str(model.dtype).removeprefix("torch."),
            threads=torch.get_num_threads(),
            clock=clock,
            prompt_length=len(prompt),
            gen_length=config.gen_length,
            steps=steps,
            repeats=repeats,
            plain_seconds=median(pair[0] for pair in pairs),
            engine_seconds=median(pair[1] for pair in pairs),
            ratio=median(ratios),
            ratio_low=low,
            ratio_high=high,
            equal=sum(a == b for a, b in zip(*tokens, strict=True)) / config.gen_length,
        )


def _timed(work: Callable[[], list[int]], clock: str) -> tuple[float, list[int]]:
    begin = CLOCKS[clock]()
    tokens = work()
    return CLOCKS[clock]() - begin, tokens
