"""Tokenizers from the files of a checkpoint folder, without any code of theirs."""

import json
from pathlib import Path
from typing import Any


def load_tokenizer(folder: Path) -> Any | None:
    """The folder's tokenizer with its chat template, or None where it has none.

    Reads tokenizer.json, or Qwen2-style vocab.json and merges.txt (Dream). Raises ValueError where the
    files are there but can't be read.
    """
    options: dict[str, Any] = {}
    try:
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if (folder / name).is_file():
                options |= json.loads((folder / name).read_text(encoding="utf-8"))
        template = folder / "chat_template.jinja"
        if template.is_file():
            options["chat_template"] = template.read_text(encoding="utf-8")
        tokenizer = _build(folder)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ValueError(f"tokenizer in {folder} can't be read: {error}") from error
    if tokenizer is None:
        return None
    _declare(tokenizer, options)
    return tokenizer


def _build(folder: Path) -> Any | None:
    from transformers import PreTrainedTokenizerFast

    ready = folder / "tokenizer.json"
    if ready.is_file():
        from tokenizers import Tokenizer

        try:
            backend = Tokenizer.from_file(str(ready))
        except Exception as error:  # tokenizers raises bare Exception for a damaged file
            raise ValueError(str(error)) from error
        return PreTrainedTokenizerFast(tokenizer_object=backend)
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    if vocab.is_file() and merges.is_file():
        from transformers import Qwen2Tokenizer

        try:
            return Qwen2Tokenizer.from_pretrained(str(folder))
        except Exception as error:  # as above
            raise ValueError(str(error)) from error
    return None


def _declare(tokenizer: Any, options: dict[str, Any]) -> None:
    """Special tokens and chat template, as tokenizer_config.json states them."""
    for role in ("bos_token", "eos_token", "pad_token", "mask_token", "unk_token"):
        value = options.get(role)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            setattr(tokenizer, role, text)
    if options.get("chat_template"):
        tokenizer.chat_template = options["chat_template"]


def token_id(tokenizer: Any | None, names: tuple[str, ...]) -> int | None:
    """Id of the first of these tokens that the tokenizer knows, else None."""
    if tokenizer is None:
        return None
    known = tokenizer.get_vocab()
    return next((int(known[name]) for name in names if name in known), None)


def mask_token_id(tokenizer: Any | None, names: tuple[str, ...]) -> int | None:
    """Id of the mask token that the tokenizer declares, else of the first of these it knows."""
    declared = None if tokenizer is None else tokenizer.mask_token
    # Not tokenizer.mask_token_id: for a token it does not know, that is the unknown token's.
    return token_id(tokenizer, names if declared is None else (declared, *names))
