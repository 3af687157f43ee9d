"""Forms from dataclasses: what to ask for each field, and what was entered back into a checked config."""

import json
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields
from typing import Any, Union, get_args, get_origin, get_type_hints

from analysis.settings import parse_value
from core import POLICIES, GenerationConfig
from core.policies import describe as describe_policy

SYMBOLS = {"tau": "τ", "gamma": "γ", "beta": "β", "alpha": "α", "rho": "ρ", "delta": "δ", "k": "k", "p": "p"}
GENERATION_AT_HAND = ("gen_length", "block_length", "unmask", "threshold", "temperature", "seed")
MAX_TEXT = 40


def explain(config: type) -> dict[str, str]:
    """What a config's docstring says of each field: `name: meaning.`, or `name, name: meaning.` of several.

    An entry ends where the next begins, or with its paragraph.
    """
    said = {field.name: "" for field in fields(config)}
    if not said:
        return {}
    name = "|".join(said)
    for paragraph in re.split(r"\n\s*\n", config.__doc__ or ""):
        text = " ".join(paragraph.split())
        starts = list(re.finditer(rf"(?<![\w`])((?:{name})(?:, (?:{name}))*): ", text))
        ends = [match.start() for match in starts[1:]] + [len(text)]
        for match, end in zip(starts, ends, strict=False):
            said.update(dict.fromkeys(match[1].split(", "), text[match.end() : end].strip()))
    return said


def form_fields(config: type, at_hand: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
    """One entry a field for the form scripts; `at_hand` names those not folded away (None: the first 3)."""
    meaning = explain(config)
    shown = at_hand if at_hand is not None else tuple(field.name for field in fields(config)[:3])
    return [
        {
            "name": field.name,
            "label": field.name.replace("_", " "),
            "symbol": symbol(meaning[field.name]),
            "kind": _kind(get_type_hints(config)[field.name]),
            "choices": list(field.metadata.get("choices", ())) or None,
            "default": entered(_default(field)),
            "help": meaning[field.name],
            "extra": field.name not in shown,
        }
        for field in fields(config)
    ]


def symbol(meaning: str) -> str:
    """The paper's letter for a field, where its explanation starts with one."""
    first = re.match(r"(\w+)\b", meaning)
    return SYMBOLS.get(first[1], "") if first else ""


def policy_spec() -> dict[str, Any]:
    """Every registered policy with its description, part by part, and its fields."""
    return {
        "policies": {
            name: {"about": asdict(describe_policy(policy)), "fields": form_fields(policy.Config)}
            for name, policy in POLICIES.items()
        }
    }


def generation_spec() -> dict[str, Any]:
    return {"fields": form_fields(GenerationConfig, GENERATION_AT_HAND)}


def defaults(config: type) -> dict[str, Any]:
    """A config's defaults as a form shows them."""
    return {field.name: entered(_default(field)) for field in fields(config)}


def entered(value: Any) -> Any:
    """How one would enter a value: numbers as short text, inf and none as words, bools as they are."""
    if isinstance(value, bool | str):
        return value
    if value is None:
        return "none"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


def read(text: Any) -> Any:
    """What an entry means: a bool, a number, a word such as inf, else the text for the config to refuse."""
    if isinstance(text, bool | int | float) or text is None:
        return text
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        return str(text)[:MAX_TEXT]
    return parse_value(text.strip())


def read_all(entries: Any, what: str) -> dict[str, Any]:
    """Read a form's {"name": entry}. Raises ValueError where it is none."""
    if not isinstance(entries, Mapping):
        raise ValueError(f"{what} is {str(entries)[:MAX_TEXT]!r}; allowed: settings by name")
    return {str(name): read(entry) for name, entry in entries.items()}


def parse_json(text: Any, what: str) -> Any:
    """A panel's value. Raises ValueError in one sentence where it is not JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except json.JSONDecodeError as error:
        raise ValueError(f"{what} is not JSON: {error.msg}") from None


def describe(policy: str, config: Mapping[str, Any]) -> str:
    """A run's short name: the policy, its symbols, and what differs from its defaults."""
    kind = POLICIES.get(policy)
    if kind is None:
        return policy
    meaning, usual = explain(kind.Config), defaults(kind.Config)
    parts = [policy]
    for name, value in config.items():
        letter = symbol(meaning.get(name, ""))
        if letter:
            parts.append(f"{letter} {entered(value)}")
        elif name in usual and entered(value) != usual[name]:
            parts.append(f"{name.replace('_', ' ')} {entered(value)}")
    return " · ".join(parts)


def _default(field: "Field[Any]") -> Any:
    return None if field.default is MISSING else field.default


def _kind(hint: Any) -> str:
    """`bool`, `text` or `number`; an optional number is a number."""
    union = get_origin(hint) in (Union, types.UnionType)
    of = set(get_args(hint)) - {type(None)} if union else {hint}
    if of == {bool}:
        return "bool"
    return "text" if of == {str} else "number"
