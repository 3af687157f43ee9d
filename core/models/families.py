"""Model families as data: config translation, tensor names, shift. No code of a family runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.models.spec import ModelSpec

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """One checkpoint layout.

    translate: config.json to ModelSpec (mask id may come from the tokenizer). names: our tensor name to
    the checkpoint's, with {n} for the layer; a tuple is fused along dimension 0 in that order.
    turn_ends: tokens that end a turn beside the config's eos, looked up in the tokenizer.
    mask_tokens: the mask token's text, looked up where the config has no mask_token_id.
    """

    name: str
    translate: Callable[[Config, int | None], ModelSpec]
    names: Mapping[str, str | tuple[str, ...]]
    turn_ends: tuple[str, ...] = ()
    mask_tokens: tuple[str, ...] = ()


def need(config: Config, *keys: str) -> Any:
    """The first of the keys that config.json has and is not null; ValueError names the first otherwise."""
    for key in keys:
        if config.get(key) is not None:
            return config[key]
    raise ValueError(f"config.json has no {keys[0]}")


def refuse(config: Config, allowed: Mapping[str, tuple[Any, ...]]) -> None:
    """ValueError for a config value that would need another architecture."""
    for key, values in allowed.items():
        if key in config and config[key] not in values:
            options = " or ".join(str(value) for value in values)
            raise ValueError(f"config.json sets {key} to {config[key]!r}; supported: {options}")


def _token_ids(config: Config, mask_token_id: int | None) -> dict[str, Any]:
    eos = need(config, "eos_token_id", "pad_token_id")
    eos_ids = tuple(eos) if isinstance(eos, list) else (eos,)
    if not eos_ids:
        raise ValueError("config.json has an empty eos_token_id; at least one token must end a text")
    mask = config.get("mask_token_id")
    mask = mask_token_id if mask is None else mask
    if mask is None:
        raise ValueError("config.json has no mask_token_id and the tokenizer names no mask token")
    pad = config.get("pad_token_id")
    return {
        "mask_token_id": mask,
        "eos_token_ids": eos_ids,
        "pad_token_id": eos_ids[0] if pad is None else pad,
    }


def _rope_theta(config: Config) -> float:
    nested = config.get("rope_parameters") or {}
    refuse(nested, {"rope_type": ("default",)})
    refuse(config.get("rope_scaling") or {}, {"rope_type": ("default",), "type": ("default",)})
    refuse({**config, **nested}, {"partial_rotary_factor": (None, 1)})
    # Where both are given, transformers too takes the nested one.
    return float(need({**config, **nested}, "rope_theta"))


def _llada(config: Config, mask_token_id: int | None) -> ModelSpec:
    refuse(
        config,
        {
            "activation_type": ("silu",),
            "block_type": ("llama",),
            "layer_norm_type": ("rms",),
            "rope": (True,),
            "alibi": (False,),
            "include_bias": (False,),
            "attention_layer_norm": (False,),
            "scale_logits": (False,),
            "input_emb_norm": (False,),
            "num_experts": (None, 0),
        },
    )
    heads = need(config, "n_heads")
    kv_heads = config.get("n_kv_heads") or (1 if config.get("multi_query_attention") else heads)
    return ModelSpec(
        family="llada",
        vocab_size=need(config, "embedding_size", "vocab_size"),
        hidden_size=need(config, "d_model"),
        intermediate_size=config.get("mlp_hidden_size") or config["d_model"] * need(config, "mlp_ratio"),
        num_layers=need(config, "n_layers"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=need(config, "d_model") // heads,
        rope_theta=_rope_theta(config),
        rms_norm_eps=need(config, "rms_norm_eps"),
        max_positions=need(config, "max_sequence_length"),
        qkv_bias=bool(config.get("include_qkv_bias")),
        tied_embeddings=bool(config.get("weight_tying")),
        **_token_ids(config, mask_token_id),
    )


def _qwen(family: str, qkv_bias: bool, qk_norm: bool, logit_shift: int) -> Callable[..., ModelSpec]:
    """Translator for the Qwen-shaped configs: Dream and the A2D models."""

    def translate(config: Config, mask_token_id: int | None) -> ModelSpec:
        refuse(
            config,
            {"hidden_act": ("silu",), "use_sliding_window": (False, None), "num_experts": (None, 0)},
        )
        hidden, heads = need(config, "hidden_size"), need(config, "num_attention_heads")
        return ModelSpec(
            family=family,
            vocab_size=need(config, "vocab_size"),
            hidden_size=hidden,
            intermediate_size=need(config, "intermediate_size"),
            num_layers=need(config, "num_hidden_layers"),
            num_heads=heads,
            num_kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or hidden // heads,
            rope_theta=_rope_theta(config),
            rms_norm_eps=need(config, "rms_norm_eps"),
            max_positions=need(config, "max_position_embeddings"),
            qkv_bias=bool(config.get("attention_bias", qkv_bias)) if qk_norm else qkv_bias,
            qk_norm=qk_norm,
            tied_embeddings=bool(config.get("tie_word_embeddings")),
            logit_shift=logit_shift,
            **_token_ids(config, mask_token_id),
        )

    return translate


_LLADA_BLOCK = "model.transformer.blocks.{n}."
LLADA_NAMES: dict[str, str | tuple[str, ...]] = {
    "embedding.weight": "model.transformer.wte.weight",
    "final_norm": "model.transformer.ln_f.weight",
    # The head shares its name with the blocks' down projection one level deeper.
    "head.weight": "model.transformer.ff_out.weight",
    "layers.{n}.attn_norm": _LLADA_BLOCK + "attn_norm.weight",
    "layers.{n}.qkv.weight": tuple(_LLADA_BLOCK + f"{x}_proj.weight" for x in "qkv"),
    "layers.{n}.qkv.bias": tuple(_LLADA_BLOCK + f"{x}_proj.bias" for x in "qkv"),
    "layers.{n}.attn_out.weight": _LLADA_BLOCK + "attn_out.weight",
    "layers.{n}.mlp_norm": _LLADA_BLOCK + "ff_norm.weight",
    "layers.{n}.gate_up.weight": (_LLADA_BLOCK + "ff_proj.weight", _LLADA_BLOCK + "up_proj.weight"),
    "layers.{n}.down.weight": _LLADA_BLOCK + "ff_out.weight",
}

_QWEN_LAYER = "model.layers.{n}."
QWEN_NAMES: dict[str, str | tuple[str, ...]] = {
    "embedding.weight": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "head.weight": "lm_head.weight",
    "layers.{n}.attn_norm": _QWEN_LAYER + "input_layernorm.weight",
    "layers.{n}.qkv.weight": tuple(_QWEN_LAYER + f"self_attn.{x}_proj.weight" for x in "qkv"),
    "layers.{n}.qkv.bias": tuple(_QWEN_LAYER + f"self_attn.{x}_proj.bias" for x in "qkv"),
    "layers.{n}.q_norm": _QWEN_LAYER + "self_attn.q_norm.weight",
    "layers.{n}.k_norm": _QWEN_LAYER + "self_attn.k_norm.weight",
    "layers.{n}.attn_out.weight": _QWEN_LAYER + "self_attn.o_proj.weight",
    "layers.{n}.mlp_norm": _QWEN_LAYER + "post_attention_layernorm.weight",
    "layers.{n}.gate_up.weight": (
        _QWEN_LAYER + "mlp.gate_proj.weight",
        _QWEN_LAYER + "mlp.up_proj.weight",
    ),
    "layers.{n}.down.weight": _QWEN_LAYER + "mlp.down_proj.weight",
}

_A2D_MASKS = ("<|mask|>", "<|MASK|>")

# Keyed by config.json's model_type. LLaDA-1.5 is of type llada, DiffuCoder of type Dream.
FAMILIES: dict[str, Family] = {
    "llada": Family("llada", _llada, LLADA_NAMES, turn_ends=("<|eot_id|>",), mask_tokens=("<|mdm_mask|>",)),
    "Dream": Family(
        "dream",
        _qwen("dream", qkv_bias=True, qk_norm=False, logit_shift=1),
        QWEN_NAMES,
        turn_ends=("<|im_end|>",),
        mask_tokens=("<|mask|>",),
    ),
    "a2d-qwen2": Family(
        "a2d-qwen2",
        _qwen("a2d-qwen2", qkv_bias=True, qk_norm=False, logit_shift=0),
        QWEN_NAMES,
        turn_ends=("<|im_end|>",),
        mask_tokens=_A2D_MASKS,
    ),
    "a2d-qwen3": Family(
        "a2d-qwen3",
        _qwen("a2d-qwen3", qkv_bias=False, qk_norm=True, logit_shift=0),
        QWEN_NAMES,
        turn_ends=("<|im_end|>",),
        mask_tokens=_A2D_MASKS,
    ),
}
