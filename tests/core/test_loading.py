"""load_model: what it accepts of a checkpoint folder, and one clear sentence for everything else."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from core import LanguageModel, load_model
from core.models.transformer import Transformer
from tests import tiny

Write = Callable[..., Path]


def load(folder: Path) -> LanguageModel:
    return load_model(str(folder), device="cpu", dtype="float32")


def refusal(folder: Path | str, **options: str) -> str:
    """The one sentence with which loading is refused."""
    with pytest.raises(ValueError) as caught:
        load_model(str(folder), **({"device": "cpu", "dtype": "float32"} | options))
    message = str(caught.value)
    assert "\n" not in message
    return message


def without(family: str, *keys: str, **changes: Any) -> dict[str, Any]:
    config = tiny.published_config(family) | changes
    return {key: value for key, value in config.items() if key not in keys}


def same_logits(one: LanguageModel, other: LanguageModel) -> bool:
    tokens = torch.arange(12)[None]
    return torch.equal(one.full_logits(tokens), other.full_logits(tokens))


def digests(folder: Path) -> dict[str, str]:
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.safetensors")}


def test_a_model_tells_which_weights_it_was_loaded_from(checkpoint: Write, tmp_path: Path) -> None:
    folder = checkpoint("llada")
    model = load(folder)
    assert model.facts()["weights_sha256"] == model.weights_sha256 == digests(folder)
    # As in the hub's cache: a name in a snapshot, a file that is named by its digest.
    [digest], file = digests(folder).values(), folder / "model.safetensors"
    (tmp_path / "blobs").mkdir()
    file.rename(tmp_path / "blobs" / digest)
    file.symlink_to(tmp_path / "blobs" / digest)
    assert load(folder).weights_sha256 == model.weights_sha256


def test_the_spec_is_read_from_the_config(model: LanguageModel, family: str) -> None:
    spec = model.spec
    assert (spec.family, spec.logit_shift) == (family, tiny.SHIFT[family])
    assert (spec.mask_token_id, spec.eos_token_ids, spec.pad_token_id) == (tiny.MASK, (tiny.EOS,), tiny.EOS)
    assert (spec.num_layers, spec.hidden_size, spec.vocab_size) == (tiny.LAYERS, tiny.HIDDEN, tiny.VOCAB)
    assert (spec.num_kv_heads, spec.max_positions) == (tiny.KV_HEADS[family], tiny.CONTEXT)
    assert (spec.qkv_bias, spec.qk_norm) == (family == "dream", family == "a2d-qwen3")
    with torch.device("meta"):
        plain = Transformer(spec)
    assert spec.num_parameters == sum(p.numel() for p in plain.parameters())
    assert model.tokenizer is None


def test_dtypes_are_those_asked_for(checkpoint: Write) -> None:
    folder = checkpoint("llada")
    for dtype in ("float32", "bfloat16"):
        assert str(load_model(str(folder), device="cpu", dtype=dtype).dtype) == f"torch.{dtype}"
    assert load_model(str(folder), device="cpu").dtype in (torch.float32, torch.bfloat16)


def test_a_folder_may_be_a_path_and_is_told_as_text(checkpoint: Write, tmp_path: Path) -> None:
    model = load_model(Path(checkpoint("llada")), device="cpu", dtype="float32")
    assert json.loads(json.dumps(model.facts()))["ref"] == model.ref
    with pytest.raises(ValueError, match="no such folder"):
        load_model(tmp_path / "nothing")


def test_sharded_safetensors_load_as_one_file(checkpoint: Write, family: str) -> None:
    folder = checkpoint(family)
    whole = load(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for number, names in enumerate((sorted(tensors)[::2], sorted(tensors)[1::2]), start=1):
        shard = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in names}, folder / shard)
        weight_map |= dict.fromkeys(names, shard)
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    sharded = load(folder)
    assert same_logits(sharded, whole)
    assert sharded.weights_sha256 == digests(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "model-00002-of-00002.safetensors" in refusal(folder)


@pytest.mark.parametrize("family", ["dream", "a2d-qwen3"])
def test_rope_theta_may_stand_in_rope_parameters(checkpoint: Write, family: str) -> None:
    plain = load(checkpoint(family))
    nested = {"rope_theta": 10000.0, "rope_type": "default"}
    config = without(family, "rope_theta", rope_parameters=nested)
    moved = load(checkpoint(family, config))
    assert same_logits(plain, moved)
    other = load(checkpoint(family, without(family, "rope_theta", rope_parameters={"rope_theta": 50.0})))
    assert not same_logits(plain, other)
    assert same_logits(
        load(checkpoint(family, without(family, rope_theta=50.0, rope_parameters=nested))), plain
    )


def test_a_rope_that_is_not_the_plain_one_is_refused(checkpoint: Write) -> None:
    nested = {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 4.0}
    message = refusal(checkpoint("a2d-qwen3", without("a2d-qwen3", "rope_theta", rope_parameters=nested)))
    assert "rope_type" in message
    assert "yarn" in message


def test_tied_embeddings_need_no_head_in_the_file(checkpoint: Write) -> None:
    folder = checkpoint("a2d-qwen3", without("a2d-qwen3", tie_word_embeddings=True))
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors")
    model = load(folder)
    torch.testing.assert_close(model.backbone.head.weight, tensors["model.embed_tokens.weight"])


def write_tokenizer(folder: Path) -> None:
    words = {f"w{i}": i for i in range(tiny.VOCAB)}
    del words[f"w{tiny.MASK}"]
    tokenizer = Tokenizer(WordLevel(words | {"<|mask|>": tiny.MASK}, unk_token="w0"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(["<|mask|>"])
    tokenizer.save(str(folder / "tokenizer.json"))


def test_without_mask_token_id_the_tokenizer_is_asked(checkpoint: Write) -> None:
    folder = checkpoint("a2d-qwen3", without("a2d-qwen3", "mask_token_id"))
    assert "mask" in refusal(folder)
    write_tokenizer(folder)
    model = load(folder)
    assert model.spec.mask_token_id == tiny.MASK
    assert model.encode("w5 w9 w33") == [5, 9, 33]
    assert model.decode([5, 9, tiny.EOS, 7]) == "w5 w9"


def test_a_declared_mask_token_of_another_name_is_found(checkpoint: Write) -> None:
    folder = checkpoint("a2d-qwen3", without("a2d-qwen3", "mask_token_id"))
    write_tokenizer(folder)
    content = (folder / "tokenizer.json").read_text().replace("<|mask|>", "[M]")
    (folder / "tokenizer.json").write_text(content)
    (folder / "tokenizer_config.json").write_text(json.dumps({"mask_token": "[M]"}))
    assert load(folder).spec.mask_token_id == tiny.MASK


def test_a_mask_token_in_the_special_tokens_map_is_found(checkpoint: Write) -> None:
    folder = checkpoint("a2d-qwen3", without("a2d-qwen3", "mask_token_id"))
    write_tokenizer(folder)
    content = (folder / "tokenizer.json").read_text().replace("<|mask|>", "[M]")
    (folder / "tokenizer.json").write_text(content)
    (folder / "special_tokens_map.json").write_text(json.dumps({"mask_token": {"content": "[M]"}}))
    assert load(folder).spec.mask_token_id == tiny.MASK


def test_a_declared_mask_token_that_the_vocabulary_lacks_is_not_the_unknown_token(checkpoint: Write) -> None:
    folder = checkpoint("a2d-qwen3", without("a2d-qwen3", "mask_token_id"))
    write_tokenizer(folder)
    content = (folder / "tokenizer.json").read_text().replace("<|mask|>", "other")
    (folder / "tokenizer.json").write_text(content)
    (folder / "tokenizer_config.json").write_text(json.dumps({"mask_token": "[M]", "unk_token": "w0"}))
    assert "mask" in refusal(folder)


def test_several_end_of_text_ids_are_kept(checkpoint: Write) -> None:
    assert load(checkpoint("dream", without("dream", eos_token_id=[1, 2]))).spec.eos_token_ids == (1, 2)


def test_a_folder_without_weights_is_refused(checkpoint: Write) -> None:
    folder = checkpoint("llada")
    (folder / "model.safetensors").unlink()
    assert "model.safetensors" in refusal(folder)


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    assert "config.json" in refusal(tmp_path)


@pytest.mark.parametrize("content", ["{", "[1]", "", '"llada"'])
def test_a_config_that_is_no_json_object_is_refused(checkpoint: Write, content: str) -> None:
    folder = checkpoint("llada")
    (folder / "config.json").write_text(content)
    assert "config.json" in refusal(folder)


@pytest.mark.parametrize("kept", [0, 5, 200, 0.5, 0.99])
def test_truncated_safetensors_are_refused(checkpoint: Write, kept: float) -> None:
    path = checkpoint("llada") / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(kept if kept >= 1 else kept * len(content))])
    assert "model.safetensors" in refusal(path.parent)


def test_an_unknown_family_is_refused_with_the_known_ones(checkpoint: Write) -> None:
    message = refusal(checkpoint("llada", without("llada", model_type="gpt2")))
    assert "gpt2" in message
    assert "llada" in message


@pytest.mark.parametrize(
    ("family", "key"),
    [
        ("llada", "d_model"),
        ("llada", "n_heads"),
        ("llada", "mask_token_id"),
        ("llada", "rope_theta"),
        ("dream", "hidden_size"),
        ("dream", "mask_token_id"),
        ("dream", "num_hidden_layers"),
        ("a2d-qwen3", "mask_token_id"),
        ("a2d-qwen3", "rope_theta"),
    ],
)
def test_a_missing_key_is_named(checkpoint: Write, family: str, key: str) -> None:
    assert key in refusal(checkpoint(family, without(family, key)))


@pytest.mark.parametrize("value", [tiny.VOCAB, -1, "62", None, 1.5])
def test_a_mask_token_that_is_no_id_is_refused(checkpoint: Write, value: object) -> None:
    assert str("mask" if value is None else value) in refusal(
        checkpoint("dream", without("dream", mask_token_id=value))
    )


@pytest.mark.parametrize(
    "change", [{"activation_type": "gelu"}, {"rope": False}, {"block_type": "sequential"}]
)
def test_an_architecture_of_another_kind_is_refused(checkpoint: Write, change: dict[str, Any]) -> None:
    assert next(iter(change)) in refusal(checkpoint("llada", without("llada", **change)))


def test_a_missing_tensor_is_named(checkpoint: Write) -> None:
    folder = checkpoint("dream")
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.self_attn.k_proj.bias"]
    save_file(tensors, folder / "model.safetensors")
    assert "model.layers.1.self_attn.k_proj.bias" in refusal(folder)


def test_a_tensor_of_another_shape_is_refused(checkpoint: Write) -> None:
    message = refusal(checkpoint("llada", without("llada", mlp_hidden_size=tiny.INNER + 2)))
    assert str(tiny.INNER * 2) in message
    assert "shape" in message


@pytest.mark.parametrize("ref", ["nowhere", "./nowhere", "/no/such/folder", "", "a/b/c"])
def test_a_model_that_is_nowhere_is_refused(ref: str) -> None:
    assert repr(ref) in refusal(ref)


@pytest.mark.parametrize("ref", ["./nowhere", "/no/such/folder", "~/no/such/folder", "a/b/c"])
def test_a_path_that_is_not_there_is_called_that(ref: str) -> None:
    assert refusal(ref) == f"model is {ref!r}: no such folder"


def test_a_hub_id_without_a_network_is_refused() -> None:
    assert "no-one/has-this-model" in refusal("no-one/has-this-model")


def test_a_file_is_no_model(checkpoint: Write) -> None:
    assert "config.json" in refusal(checkpoint("llada") / "config.json")


def test_a_tensor_that_the_model_would_leave_out_is_named(checkpoint: Write) -> None:
    folder = checkpoint("a2d-qwen3", without("a2d-qwen3", attention_bias=True))
    tensors = load_file(folder / "model.safetensors")
    widths = {"q": 48, "k": 24, "v": 24, "o": tiny.HIDDEN}
    for layer in range(tiny.LAYERS):
        for name, width in widths.items():
            tensors[f"model.layers.{layer}.self_attn.{name}_proj.bias"] = torch.ones(width)
    save_file(tensors, folder / "model.safetensors")
    assert "model.layers.0.self_attn.o_proj.bias" in refusal(folder)


@pytest.mark.parametrize(("layers", "named"), [(2, "layers.2."), (4, "layers.3."), (10**4, "layers.9999")])
def test_more_or_fewer_layers_than_the_checkpoint_has_are_refused(
    checkpoint: Write, layers: int, named: str
) -> None:
    assert named in refusal(checkpoint("dream", without("dream", num_hidden_layers=layers)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_heads", 0),
        ("d_model", 32.5),
        *((key, 10**30) for key in ("d_model", "n_layers", "mlp_hidden_size", "embedding_size")),
        *((key, 2**62) for key in ("d_model", "n_layers", "mlp_hidden_size", "embedding_size")),
        ("rms_norm_eps", 10**30),
        ("rms_norm_eps", 1e308),
        ("rope_theta", 1e308),
        ("mask_token_id", float("inf")),
        ("n_layers", 3.0),
        ("eos_token_id", []),
        ("rms_norm_eps", "1e-5"),
        ("rope_theta", -1),
        ("model_type", ["llada"]),
    ],
)
def test_sizes_that_no_model_has_are_refused(checkpoint: Write, key: str, value: object) -> None:
    refusal(checkpoint("llada", without("llada", "pad_token_id", **{key: value})))


@pytest.mark.parametrize(
    "options",
    [{"dtype": "float8"}, {"device": "tpu"}, {"device": "cuda:99x"}, {"device": "meta"}, {"device": "mps"}],
)
def test_unknown_dtypes_and_devices_are_refused(checkpoint: Write, options: dict[str, str]) -> None:
    value = next(iter(options.values()))
    assert value in refusal(checkpoint("llada"), **options)


@pytest.mark.parametrize(
    "files",
    [{"tokenizer.json": "{}"}, {"vocab.json": "{", "merges.txt": ""}, {"tokenizer_config.json": "[1]"}],
    ids=str,
)
def test_a_damaged_tokenizer_is_refused(checkpoint: Write, files: dict[str, str]) -> None:
    folder = checkpoint("llada")
    for name, content in files.items():
        (folder / name).write_text(content)
    assert "tokenizer" in refusal(folder)
