"""Tokenizers from the files of a checkpoint folder, without any code of theirs."""

import json
from pathlib import Path
from typing import Any

# Stands for the user's text in a template: a character for private use, which no template holds.
MARK = "\ue000"


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


def encode_text(tokenizer: Any, text: str) -> list[int]:
    """Token ids of what a user wrote, in the chat template where there is one.

    Special tokens come from the template and the tokenizer only: their names in `text` are plain text.
    Raises ValueError where the template does not let them be told apart.
    """
    templated = bool(getattr(tokenizer, "chat_template", None))
    whole = _in_template(tokenizer, text) if templated else text
    specials = {
        number: token.content
        for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items()
        if token.special
    }
    typed = tokenizer.encode(text, add_special_tokens=False) if specials else ()
    if specials.keys().isdisjoint(typed):
        options = {"add_special_tokens": False} if templated else {}
        return list(tokenizer.encode(whole, **options))
    if not templated:
        return list(tokenizer.encode(text, split_special_tokens=True))
    before, found, after = _in_template(tokenizer, MARK).partition(MARK)
    if not found or MARK in after or not (whole.startswith(before) and whole.endswith(after)):
        raise ValueError("prompt names special tokens, and the model's chat template can't keep them as text")
    # Special tokens part a text for good, so between two of them it can be encoded by itself.
    names = specials.values()
    start = max((before.rfind(name) + len(name) for name in names if name in before), default=0)
    tail = min((after.find(name) for name in names if name in after), default=len(after))
    stop = len(whole) - len(after) + tail
    pieces = ((whole[:start], False), (whole[start:stop], True), (whole[stop:], False))
    return [
        token
        for piece, plain in pieces
        if piece
        for token in tokenizer.encode(piece, add_special_tokens=False, split_special_tokens=plain)
    ]


def _in_template(tokenizer: Any, text: str) -> str:
    return str(
        tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
        )
    )


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
