"""Write trained weights in LLaDA's checkpoint layout: config.json and model.safetensors."""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from core.files import replacing
from core.models.spec import ModelSpec

BLOCK_NAMES = {
    "attn_norm": ("attn_norm.weight",),
    "qkv.weight": ("q_proj.weight", "k_proj.weight", "v_proj.weight"),
    "attn_out.weight": ("attn_out.weight",),
    "mlp_norm": ("ff_norm.weight",),
    "gate_up.weight": ("ff_proj.weight", "up_proj.weight"),
    "down.weight": ("ff_out.weight",),
}


def llada_tensors(weights: dict[str, Tensor], spec: ModelSpec) -> dict[str, Tensor]:
    """LLaDA's tensor names; `weights` are named as in `TiedModel`. The tied pair becomes two tensors."""
    embedding = weights["embedding"]
    tensors = {
        "model.transformer.wte.weight": embedding * math.sqrt(spec.hidden_size),
        "model.transformer.ff_out.weight": embedding.clone(),
        "model.transformer.ln_f.weight": weights["body.final_norm"],
    }
    for index in range(spec.num_layers):
        for ours, theirs in BLOCK_NAMES.items():
            parts = weights[f"body.layers.{index}.{ours}"].chunk(len(theirs))
            for name, part in zip(theirs, parts, strict=True):
                tensors[f"model.transformer.blocks.{index}.{name}"] = part
    return tensors


def llada_config(spec: ModelSpec) -> dict[str, object]:
    """config.json with LLaDA-8B's keys."""
    return {
        "activation_type": "silu",
        "alibi": False,
        "alibi_bias_max": 8.0,
        "architectures": ["LLaDAModelLM"],
        "attention_dropout": 0.0,
        "attention_layer_norm": False,
        "attention_layer_norm_with_affine": True,
        "bias_for_layer_norm": False,
        "block_group_size": 1,
        "block_type": "llama",
        "d_model": spec.hidden_size,
        "embedding_dropout": 0.0,
        "embedding_size": spec.vocab_size,
        "eos_token_id": spec.eos_token_ids[0],
        "flash_attention": False,
        "include_bias": False,
        "include_qkv_bias": False,
        "init_cutoff_factor": None,
        "init_device": "cpu",
        "init_fn": "mitchell",
        "init_std": 0.02,
        "input_emb_norm": False,
        "layer_norm_type": "rms",
        "layer_norm_with_affine": True,
        "mask_token_id": spec.mask_token_id,
        "max_sequence_length": spec.max_positions,
        "mlp_hidden_size": spec.intermediate_size,
        "mlp_ratio": 4,
        "model_type": "llada",
        "multi_query_attention": None,
        "n_heads": spec.num_heads,
        "n_kv_heads": spec.num_kv_heads,
        "n_layers": spec.num_layers,
        "pad_token_id": spec.pad_token_id,
        "precision": "amp_bf16",
        "residual_dropout": 0.0,
        "rms_norm_eps": spec.rms_norm_eps,
        "rope": True,
        "rope_full_precision": True,
        "rope_theta": spec.rope_theta,
        "scale_logits": False,
        "torch_dtype": "bfloat16",
        "use_cache": False,
        "vocab_size": spec.vocab_size,
        "weight_tying": False,
    }


def export(weights: dict[str, Tensor], spec: ModelSpec, directory: Path) -> None:
    """bf16 weights and config into `directory`, which must exist; a model there is whole at any time."""
    tensors = {
        name: tensor.detach().cpu().to(torch.bfloat16).contiguous()
        for name, tensor in llada_tensors(weights, spec).items()
    }
    config = json.dumps(llada_config(spec), indent=1) + "\n"
    # Both are written before either takes its place.
    with replacing(directory / "config.json") as said, replacing(directory / "model.safetensors") as stored:
        save_file(tensors, stored, metadata={"format": "pt"})
        said.write_text(config, encoding="utf-8")
