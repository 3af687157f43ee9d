"""Models of any shape with random weights: speed does not depend on what a model has learnt."""

from dataclasses import fields, replace

import torch

from analysis.bench_roofline import ModelCost
from analysis.settings import parse_settings
from core import LanguageModel, ModelSpec
from core.models.packing import arrange_weights
from core.models.transformer import Transformer


def _spec(
    family: str, vocab: int, hidden: int, inner: int, layers: int, heads: int, kv_heads: int, shift: int = 0
) -> ModelSpec:
    return ModelSpec(
        family=family,
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=inner,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=128 if hidden >= 1024 else 64,
        rope_theta=500000.0,
        rms_norm_eps=1e-5,
        max_positions=32768,
        mask_token_id=vocab - 1,
        eos_token_ids=(vocab - 2,),
        pad_token_id=vocab - 2,
        qkv_bias=family in ("dream", "a2d-qwen2"),
        qk_norm=family == "a2d-qwen3",
        logit_shift=shift,
    )


# Published sizes of released checkpoints, and a small one for a CPU.
SHAPES = {
    "small": _spec("a2d-qwen3", 8192, 256, 768, 8, 4, 4),
    "qwen2.5-0.5b": _spec("a2d-qwen2", 151936, 896, 4864, 24, 14, 2),
    "qwen3-0.6b": _spec("a2d-qwen3", 151936, 1024, 3072, 28, 16, 8),
    "dream-7b": _spec("dream", 152064, 3584, 18944, 28, 28, 4, shift=1),
    "llada-8b": _spec("llada", 126464, 4096, 12288, 32, 32, 32),
}


# More than any model that was ever released.
MOST_WEIGHTS = 1e13


def parse_shape(text: str) -> ModelSpec:
    """Read NAME or NAME:field=value,... with fields of ModelSpec. Raises ValueError for a bad one.

    Changing hidden_size alone scales the heads and the MLP with it.
    """
    name, _, rest = text.partition(":")
    if name not in SHAPES:
        raise ValueError(f"shape is {name!r}; allowed: {', '.join(SHAPES)}")
    spec = SHAPES[name]
    changes = parse_settings([part for part in rest.split(",") if part])
    sizes = {field.name for field in fields(ModelSpec) if field.type is int}
    for key, value in changes.items():
        if key not in sizes or type(value) is not int or value < 1:
            raise ValueError(
                f"shape {key} is {value!r}; allowed: a whole number for {', '.join(sorted(sizes))}"
            )
    if "hidden_size" in changes:
        ratio = changes["hidden_size"] / spec.hidden_size
        for key in ("intermediate_size", "num_heads", "num_kv_heads"):
            changes.setdefault(key, max(1, round(getattr(spec, key) * ratio)))
    if "vocab_size" in changes:
        if changes["vocab_size"] < 3:
            raise ValueError(f"shape vocab_size is {changes['vocab_size']}; allowed: at least 3")
        last = changes["vocab_size"] - 1
        changes |= {"mask_token_id": last, "eos_token_ids": (last - 1,), "pad_token_id": last - 1}
    shaped = replace(spec, **changes)
    weights = ModelCost.of(shaped, width=1).weight_bytes
    if weights > MOST_WEIGHTS:
        raise ValueError(f"shape {text} has {weights:.0g} weights; allowed: up to {MOST_WEIGHTS:.0g}")
    return shaped


@torch.no_grad()
def random_model(text: str, device: torch.device, dtype: torch.dtype, seed: int = 0) -> LanguageModel:
    """A model of that shape whose activations have about unit size; it has no tokenizer."""
    spec = parse_shape(text)
    with torch.device("meta"):
        backbone = Transformer(spec)
    backbone = backbone.to(dtype).to_empty(device=device)
    generator = torch.Generator(device).manual_seed(seed)
    for name, weight in backbone.named_parameters():
        if "norm" in name:
            weight.fill_(1.0)
        else:
            weight.normal_(0.0, weight.shape[-1] ** -0.5 if weight.dim() > 1 else 0.02, generator=generator)
        weight.requires_grad_(False)
    arrange_weights(backbone)
    return LanguageModel(ref=f"random {text}", spec=spec, backbone=backbone.eval(), tokenizer=None)
