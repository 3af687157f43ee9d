"""The embedded checkpoint computes what LLaDA's architecture says, written out plainly from its files."""

import json

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from core import load_model
from core.models.loading import EMBEDDED


def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def rotate(x: Tensor, theta: float) -> Tensor:
    """Rotary embedding of [H, L, D]: the pair (i, i + D/2) turns by position * theta^(-2i/D)."""
    length, width = x.shape[1:]
    frequency = theta ** (-torch.arange(0, width, 2) / width)
    angle = torch.arange(length)[:, None] * frequency
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * angle.cos() - right * angle.sin(), right * angle.cos() + left * angle.sin()), -1)


def plain_logits(tokens: Tensor) -> Tensor:
    """[L, V] of tokens [L]: pre-norm blocks, full attention in both directions, SwiGLU, untied head."""
    config = json.loads((EMBEDDED / "config.json").read_text(encoding="utf-8"))
    weights = {k: v.float() for k, v in load_file(EMBEDDED / "model.safetensors").items()}
    heads, eps, theta = config["n_heads"], config["rms_norm_eps"], config["rope_theta"]

    def weight(name: str) -> Tensor:
        return weights[f"model.transformer.{name}.weight"]

    def split(x: Tensor) -> Tensor:
        return x.view(len(tokens), heads, -1).transpose(0, 1)

    x = weight("wte")[tokens]
    for index in range(config["n_layers"]):
        block = f"blocks.{index}"
        normed = rms_norm(x, weight(f"{block}.attn_norm"), eps)
        q, k, v = (split(normed @ weight(f"{block}.{name}_proj").T) for name in "qkv")
        scores = rotate(q, theta) @ rotate(k, theta).transpose(1, 2) / q.shape[-1] ** 0.5
        mixed = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
        x = x + mixed @ weight(f"{block}.attn_out").T
        normed = rms_norm(x, weight(f"{block}.ff_norm"), eps)
        gate = F.silu(normed @ weight(f"{block}.ff_proj").T)
        x = x + (gate * (normed @ weight(f"{block}.up_proj").T)) @ weight(f"{block}.ff_out").T
    return rms_norm(x, weight("ln_f"), eps) @ weight("ff_out").T


def test_logits_equal_a_plain_reference_forward() -> None:
    model = load_model("embedded", device="cpu", dtype="float32")
    prompt = model.encode("Sam has 4 coins. First he buys 3 more. How many coins does Sam have now?")
    tokens = torch.tensor(prompt + [model.spec.mask_token_id] * 64)
    assert torch.allclose(model.full_logits(tokens[None])[0], plain_logits(tokens), atol=1e-3)


def test_it_has_llada_s_layout() -> None:
    config = json.loads((EMBEDDED / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["LLaDAModelLM"]
    assert not config["weight_tying"]
    names = set(load_file(EMBEDDED / "model.safetensors"))
    assert not any("bias" in name or "q_norm" in name for name in names)
    assert len(names) == 3 + 9 * config["n_layers"]
