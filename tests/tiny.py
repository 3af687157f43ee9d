"""Tiny random models: transformers' own layers made bidirectional, and our families' checkpoints of them.

Nothing here imports `core`, so a test that compares with these compares with somebody else's code.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

FAMILIES = ("llada", "dream", "a2d-qwen3")
# a2d-qwen2 is Dream's shape without the shift: its loading and logits are tested, its decoding adds nothing.
LOADABLE = (*FAMILIES, "a2d-qwen2")
SHIFT = {"llada": 0, "dream": 1, "a2d-qwen3": 0}
VOCAB, MASK, EOS = 64, 62, 1
HIDDEN, INNER, LAYERS, HEADS, CONTEXT = 32, 48, 3, 4, 128
KV_HEADS = {"llada": 4, "dream": 2, "a2d-qwen3": 2, "a2d-qwen2": 2}
HEAD_DIM = {"a2d-qwen3": 12}
EPS = {"llada": 1e-5, "dream": 1e-6, "a2d-qwen3": 1e-6, "a2d-qwen2": 1e-6}

# Prompts of different lengths, so that a batch of them is padded.
PROMPTS = ([5, 9, 33, 7, 21, 40, 2, 8, 30, 11, 4], [17, 50, 3], [29, 6, 6, 44, 13, 58, 20])


def reference_model(family: str, seed: int = 0) -> PreTrainedModel:
    """A random model of the family's architecture whose distributions are neither flat nor certain."""
    shape = {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS[family],
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPS[family],
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False,
        "pad_token_id": EOS,
        "bos_token_id": EOS,
        "eos_token_id": EOS,
        "attn_implementation": "eager",
    }
    if family == "a2d-qwen3":
        model: PreTrainedModel = Qwen3ForCausalLM(Qwen3Config(**shape, head_dim=HEAD_DIM[family]))
    elif family in ("dream", "a2d-qwen2"):
        model = Qwen2ForCausalLM(Qwen2Config(**shape))
    else:
        model = LlamaForCausalLM(LlamaConfig(**shape))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name:
                weight.copy_(1 + 0.2 * noise)
            elif name.startswith("lm_head"):
                weight.copy_(0.6 * noise)
            else:
                weight.copy_((0.3 if weight.dim() == 1 else 1.6 * weight.shape[-1] ** -0.5) * noise)
    return model.eval()


@torch.no_grad()
def reference_logits(model: PreTrainedModel, tokens: Tensor, valid: Tensor | None = None) -> Tensor:
    """Unshifted logits [B, L, V] of a bidirectional pass; `valid` bool [B, L] is False on left padding."""
    batch, length = tokens.shape
    valid = torch.ones_like(tokens, dtype=torch.bool) if valid is None else valid
    bias = torch.zeros(batch, 1, length, length).masked_fill(~valid[:, None, None, :], -1e30)
    positions = (valid.long().cumsum(dim=1) - 1).clamp(min=0)
    return model(tokens, attention_mask=bias, position_ids=positions, use_cache=False).logits


def published_name(family: str, name: str) -> str:
    """The name that the family's released checkpoints give to one of transformers' tensors."""
    if family != "llada":
        return name
    for ours, theirs in (
        ("lm_head", "model.transformer.ff_out"),
        ("model.embed_tokens", "model.transformer.wte"),
        ("model.norm", "model.transformer.ln_f"),
        ("model.layers", "model.transformer.blocks"),
        ("self_attn.o_proj", "attn_out"),
        ("self_attn.", ""),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ff_norm"),
        ("mlp.gate_proj", "ff_proj"),
        ("mlp.up_proj", "up_proj"),
        ("mlp.down_proj", "ff_out"),
    ):
        name = name.replace(ours, theirs)
    return name


def published_tensors(family: str, model: PreTrainedModel) -> dict[str, Tensor]:
    return {published_name(family, name): w.contiguous() for name, w in model.state_dict().items()}


def published_config(family: str) -> dict[str, Any]:
    """config.json with the keys of the family's released checkpoints."""
    tokens = {"mask_token_id": MASK, "eos_token_id": EOS, "pad_token_id": EOS, "vocab_size": VOCAB}
    if family == "llada":
        return tokens | {
            "model_type": "llada",
            "architectures": ["LLaDAModelLM"],
            "d_model": HIDDEN,
            "n_layers": LAYERS,
            "n_heads": HEADS,
            "n_kv_heads": KV_HEADS[family],
            "mlp_hidden_size": INNER,
            "embedding_size": VOCAB,
            "max_sequence_length": CONTEXT,
            "rope_theta": 10000.0,
            "rms_norm_eps": EPS[family],
            "weight_tying": False,
        }
    common = tokens | {
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS[family],
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": EPS[family],
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
    }
    if family == "dream":
        return common | {"model_type": "Dream", "architectures": ["DreamModel"]}
    if family == "a2d-qwen2":
        return common | {"model_type": "a2d-qwen2", "architectures": ["A2DQwen2LMHeadModel"]}
    return common | {
        "model_type": "a2d-qwen3",
        "architectures": ["A2DQwen3LMHeadModel"],
        "head_dim": HEAD_DIM[family],
        "attention_bias": False,
    }


def write_checkpoint(
    folder: Path, family: str, model: PreTrainedModel, config: dict[str, Any] | None = None
) -> Path:
    """A local folder in Hugging Face layout, without a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config or published_config(family)))
    save_file(published_tensors(family, model), folder / "model.safetensors", metadata={"format": "pt"})
    return folder
