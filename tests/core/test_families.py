"""Families as data: the published configs of the models they stand for, and those that must be refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

from core import GenerationConfig, ModelSpec, create_policy, load_model
from core.models.families import FAMILIES
from tests import tiny
from tests.core.test_guidance import guided_decode
from tests.invariants.runs import decode

# Architecture keys of config.json: LLaDA-1.5 has those of LLaDA, DiffuCoder those of Dream, the A2D models
# those of the Qwen they are made from.
LLADA_8B = {
    "model_type": "llada",
    "architectures": ["LLaDAModelLM"],
    "activation_type": "silu",
    "alibi": False,
    "attention_layer_norm": False,
    "block_type": "llama",
    "d_model": 4096,
    "embedding_size": 126464,
    "eos_token_id": 126081,
    "include_bias": False,
    "include_qkv_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "mask_token_id": 126336,
    "max_sequence_length": 4096,
    "mlp_hidden_size": 12288,
    "mlp_ratio": 4,
    "multi_query_attention": None,
    "n_heads": 32,
    "n_kv_heads": 32,
    "n_layers": 32,
    "pad_token_id": 126081,
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_full_precision": True,
    "rope_theta": 500000.0,
    "scale_logits": False,
    "vocab_size": 126464,
    "weight_tying": False,
}
DREAM_7B = {
    "model_type": "Dream",
    "architectures": ["DreamModel"],
    "bos_token_id": 151643,
    "eos_token_id": 151643,
    "hidden_act": "silu",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "mask_token_id": 151666,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "pad_token_id": 151643,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_mrope": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}
QWEN25_CODER_05B = {
    "model_type": "a2d-qwen2",
    "architectures": ["A2DQwen2LMHeadModel"],
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "hidden_act": "silu",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "layer_types": ["full_attention"] * 24,
    "max_position_embeddings": 32768,
    "num_attention_heads": 14,
    "num_hidden_layers": 24,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
    "sliding_window": None,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN3_06B = {
    "model_type": "a2d-qwen3",
    "architectures": ["A2DQwen3LMHeadModel"],
    "attention_bias": False,
    "eos_token_id": 151645,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 40960,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "pad_token_id": 151643,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}


def translate(config: dict[str, Any], mask: int | None = None) -> ModelSpec:
    return FAMILIES[config["model_type"]].translate(config, mask)


def test_llada_and_llada_1_5_translate_to_eight_billion_weights_without_a_shift() -> None:
    spec = translate(LLADA_8B)
    assert (spec.num_layers, spec.hidden_size, spec.num_heads, spec.num_kv_heads) == (32, 4096, 32, 32)
    assert (spec.head_dim, spec.intermediate_size, spec.vocab_size) == (128, 12288, 126464)
    assert (spec.mask_token_id, spec.eos_token_ids, spec.logit_shift) == (126336, (126081,), 0)
    assert not spec.qkv_bias
    assert spec.num_parameters == 8_015_581_184
    assert spec.kv_bytes_per_position(2) == 512 * 1024


def test_dream_and_diffucoder_translate_to_seven_billion_weights_with_a_shift() -> None:
    spec = translate(DREAM_7B)
    assert (spec.num_layers, spec.hidden_size, spec.num_heads, spec.num_kv_heads) == (28, 3584, 28, 4)
    assert (spec.head_dim, spec.intermediate_size, spec.rope_theta) == (128, 18944, 1e6)
    assert (spec.mask_token_id, spec.eos_token_ids, spec.logit_shift) == (151666, (151643,), 1)
    assert spec.qkv_bias
    assert spec.num_parameters == 7_615_616_512
    assert spec.kv_bytes_per_position(2) == 56 * 1024


def test_the_small_a2d_models_take_their_mask_from_the_tokenizer() -> None:
    coder = translate(QWEN25_CODER_05B, mask=151665)
    assert (coder.num_layers, coder.num_heads, coder.head_dim, coder.logit_shift) == (24, 14, 64, 0)
    assert coder.qkv_bias
    assert coder.tied_embeddings
    assert coder.num_parameters == 494_032_768
    qwen3 = translate(QWEN3_06B, mask=151669)
    assert (qwen3.num_layers, qwen3.num_kv_heads, qwen3.head_dim, qwen3.logit_shift) == (28, 8, 128, 0)
    assert qwen3.qk_norm
    assert not qwen3.qkv_bias
    for config in (QWEN25_CODER_05B, QWEN3_06B):
        with pytest.raises(ValueError, match="mask_token_id"):
            translate(config)


@pytest.mark.parametrize("base", [LLADA_8B, DREAM_7B, QWEN3_06B], ids=lambda config: config["model_type"])
def test_a_mixture_of_experts_is_refused_by_name(base: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="num_experts to 64"):
        translate(base | {"num_experts": 64}, mask=5)


@pytest.mark.parametrize(("base", "family"), [(LLADA_8B, "llada"), (DREAM_7B, "dream")])
def test_a_scaled_down_checkpoint_with_the_full_config_agrees_with_transformers(
    base: dict[str, Any], family: str, tmp_path: Path
) -> None:
    """All published keys at once, sizes aside: what LLaDA-1.5 and DiffuCoder bring along."""
    reference = tiny.reference_model(family, seed=4)
    config = base | tiny.published_config(family)
    folder = tiny.write_checkpoint(tmp_path / family, family, reference, config)
    model = load_model(str(folder), device="cpu", dtype="float32")
    tokens = torch.randint(0, tiny.VOCAB, (2, 20), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        model.full_logits(tokens), tiny.reference_logits(reference, tokens), rtol=0, atol=1e-4
    )


def test_a2d_qwen2_decodes_under_guidance_as_two_plain_passes_of_transformers(tmp_path: Path) -> None:
    """Biases, grouped heads and no shift together, through the engine and a guided loop."""
    reference = tiny.reference_model("a2d-qwen2", seed=1)
    folder = tiny.write_checkpoint(tmp_path / "a2d-qwen2", "a2d-qwen2", reference)
    model = load_model(str(folder), device="cpu", dtype="float32")
    prompt = tiny.PROMPTS[0]
    config = GenerationConfig(gen_length=16, block_length=8, threshold=0.35, cfg_scale=1.5)
    run = decode(model, [prompt], config, create_policy("none"))[0]
    expected = guided_decode(reference, 0, prompt, 16, 8, 0.35)
    assert [[(at, run.tokens[at]) for at in step] for step in run.committed] == expected
