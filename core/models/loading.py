"""load_model: a checkpoint folder or hub id in Hugging Face layout becomes a LanguageModel."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from core.models.digest import weights_sha256
from core.models.families import FAMILIES, Family
from core.models.language_model import LanguageModel
from core.models.packing import arrange_weights
from core.models.spec import ModelSpec
from core.models.tokenizer import load_tokenizer, mask_token_id, token_id
from core.models.transformer import Transformer

EMBEDDED = Path(__file__).resolve().parents[2] / "assets" / "model"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
WANTED_FILES = ["*.safetensors", "*.json", "*.txt", "*.jinja"]


def load_model(
    ref: str | os.PathLike[str] = "embedded",
    *,
    device: str = "auto",
    dtype: str = "auto",
    movable: bool = False,
) -> LanguageModel:
    """Load a masked diffusion language model; weights come from safetensors and no remote code runs.

    ref: "embedded" (the model in this repository), a local folder in Hugging Face layout, or a hub id
    such as "GSAI-ML/LLaDA-8B-Instruct". device "auto" takes CUDA where there is one. dtype "auto" is
    bfloat16 on CUDA; on a CPU whichever of float32 and bfloat16 a short timing finds faster.
    movable: keep the weights plain, to be moved to another device, instead of as a CPU multiplies fastest.
    Raises ValueError in one sentence for anything that can't be loaded.
    """
    ref, target = os.fspath(ref), device_named(device)
    if dtype != "auto" and dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; allowed: auto, {', '.join(DTYPES)}")
    folder = _folder(ref)
    config = _read_json(folder / "config.json", ref)
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(f"model {ref} is of type {kind!r}; supported: {', '.join(FAMILIES)}")
    family = FAMILIES[kind]
    tokenizer = load_tokenizer(folder)
    mask = mask_token_id(tokenizer, family.mask_tokens)
    try:
        spec = _complete(family, family.translate(config, mask), tokenizer)
    except (ValueError, TypeError, KeyError, ZeroDivisionError) as error:
        raise ValueError(f"model {ref}: {error}") from error
    chosen = DTYPES[dtype] if dtype != "auto" else _auto_dtype(spec, target)
    files = _weight_files(folder, ref)
    backbone = _load_weights(files, ref, family, spec, target, chosen)
    if not movable:
        arrange_weights(backbone)
    return LanguageModel(
        ref=ref,
        spec=spec,
        backbone=backbone.eval(),
        tokenizer=tokenizer,
        weights_sha256=weights_sha256(files.values()),
    )


def device_named(name: str) -> torch.device:
    """The device that `auto`, cpu, cuda or cuda:N means here. Raises ValueError for one that is not here."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device is {name!r}; allowed: auto, cpu, cuda, cuda:N")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r} but this machine has no CUDA device; allowed: auto, cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {name!r}; allowed: cuda:0 to cuda:{torch.cuda.device_count() - 1}")
    return device


def _folder(ref: str) -> Path:
    if ref == "embedded":
        return EMBEDDED
    path = Path(ref).expanduser()
    if ref and path.is_dir():
        return path
    is_path = ref.startswith((".", "/", "~")) or ref.count("/") > 1
    if is_path and not path.exists():
        raise ValueError(f"model is {ref!r}: no such folder")
    if path.exists() or is_path or ref.count("/") != 1:
        raise ValueError(f"model is {ref!r}; allowed: embedded, a folder, or a hub id such as owner/name")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(ref, allow_patterns=WANTED_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"model {ref} could not be fetched from the hub: {reason}") from error


def _read_json(path: Path, ref: str) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"model {ref}: no {path.name} in {path.parent}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"model {ref}: {path.name} is not valid JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"model {ref}: {path.name} holds no JSON object")
    return content


def _complete(family: Family, spec: ModelSpec, tokenizer: Any) -> ModelSpec:
    """The spec with the tokenizer's end-of-turn tokens among its end-of-text ids."""
    from dataclasses import replace

    extra = [token_id(tokenizer, (name,)) for name in family.turn_ends]
    known = [token for token in extra if token is not None and token < spec.vocab_size]
    return replace(spec, eos_token_ids=tuple(dict.fromkeys((*spec.eos_token_ids, *known))))


def _auto_dtype(spec: ModelSpec, device: torch.device) -> torch.dtype:
    """bfloat16 on CUDA; on a CPU the faster of two short timings of this model's largest product."""
    if device.type == "cuda":
        return torch.bfloat16
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        rows = torch.ones(64, spec.hidden_size, dtype=dtype)
        weight = torch.ones(2 * spec.intermediate_size, spec.hidden_size, dtype=dtype)
        times = []
        for _ in range(6):
            begin = time.perf_counter()
            torch.nn.functional.linear(rows, weight)
            times.append(time.perf_counter() - begin)
        seconds[dtype] = min(times)
    # A tie goes to float32, whose results can be compared with a reference.
    return torch.bfloat16 if seconds[torch.bfloat16] < 0.9 * seconds[torch.float32] else torch.float32


def _weight_files(folder: Path, ref: str) -> dict[str, Path]:
    """Checkpoint tensor name -> the file that holds it, single or sharded."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        weight_map = _read_json(index, ref).get("weight_map")
        if not isinstance(weight_map, dict):
            raise ValueError(f"model {ref}: {index.name} has no weight_map")
        files = {name: folder / Path(str(shard)).name for name, shard in weight_map.items()}
        for shard in set(files.values()):
            if not shard.is_file():
                raise ValueError(f"model {ref}: shard {shard.name} is missing in {folder}")
        return files
    single = folder / "model.safetensors"
    if not single.is_file():
        raise ValueError(f"model {ref}: no model.safetensors in {folder}")
    with _open(single, ref) as file:
        return dict.fromkeys(file.keys(), single)


def _open(path: Path, ref: str) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise ValueError(f"model {ref}: {path.name} is damaged or incomplete ({error})") from error


def _load_weights(
    files: dict[str, Path],
    ref: str,
    family: Family,
    spec: ModelSpec,
    device: torch.device,
    dtype: torch.dtype,
) -> Transformer:
    """Fill a Transformer tensor by tensor, so that no second copy of the model is ever in memory."""
    _check_layers(files, family, spec, ref)
    try:
        with torch.device("meta"):
            backbone = Transformer(spec)
        backbone = backbone.to(dtype).to_empty(device=device)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"model {ref}: weights of this size can't be held ({reason})") from error
    if spec.tied_embeddings:
        backbone.head.weight = backbone.embedding.weight
    handles = {path: _open(path, ref) for path in set(files.values())}
    for name, parameter in backbone.named_parameters():
        pieces = [_read(handles, files, key, ref) for key in _checkpoint_names(family, name)]
        value = torch.cat(pieces) if len(pieces) > 1 else pieces[0]
        if value.shape != parameter.shape:
            got, wanted = list(value.shape), list(parameter.shape)
            raise ValueError(f"model {ref}: tensor for {name} has shape {got}; config.json asks for {wanted}")
        parameter.requires_grad_(False)
        parameter.data.copy_(value)
    return backbone


def _check_layers(files: Mapping[str, Path], family: Family, spec: ModelSpec, ref: str) -> None:
    """ValueError unless the checkpoint's layers are exactly those that we would compute with."""
    patterns = [name for name in family.names if name.startswith("layers.")]
    last = _checkpoint_names(family, f"layers.{spec.num_layers - 1}.attn_norm")[0]
    if last not in files:
        raise ValueError(f"model {ref}: the checkpoint has no tensor {last}")
    known = {
        key
        for layer in range(spec.num_layers)
        for pattern in patterns
        for key in _checkpoint_names(family, pattern.format(n=layer))
    }
    prefix = last.partition(f".{spec.num_layers - 1}.")[0]
    for key in sorted(set(files) - known):
        # A rotary table is derived; any other weight left out would change the results.
        if key.startswith(f"{prefix}.") and not key.endswith("inv_freq"):
            raise ValueError(f"model {ref}: tensor {key} has no place in a {spec.family} of its config.json")


def _checkpoint_names(family: Family, name: str) -> list[str]:
    parts = name.split(".")
    number = parts[1] if parts[0] == "layers" else ""
    pattern = ".".join(["layers", "{n}", *parts[2:]]) if number else name
    wanted = family.names[pattern]
    return [key.format(n=number) for key in ((wanted,) if isinstance(wanted, str) else wanted)]


def _read(handles: dict[Path, Any], files: dict[str, Path], key: str, ref: str) -> Tensor:
    if key not in files:
        raise ValueError(f"model {ref}: the checkpoint has no tensor {key}")
    try:
        return handles[files[key]].get_tensor(key)
    except SafetensorError as error:
        raise ValueError(f"model {ref}: {files[key].name} is damaged or incomplete ({error})") from error
