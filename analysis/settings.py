"""Setting: one policy with its config, and what it changes about the decoding; read from KEY=VALUE text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from core import POLICIES, CachePolicy, GenerationConfig, create_policy

WORDS = {"true": True, "false": False, "none": None, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Setting:
    """What is varied in a measurement.

    policy: a name in POLICIES; config: its settings that differ from the defaults; generation: decoding
    settings that differ from those of the measurement. Raises ValueError for an unknown policy or setting.
    """

    policy: str
    config: Mapping[str, Any] = field(default_factory=dict)
    generation: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.make_policy()

    @cached_property
    def label(self) -> str:
        """How one would type it: name, or name:key=value,key=value."""
        settings = {**self.config, **self.generation}
        return self.policy + (":" + ",".join(setting_texts(settings)) if settings else "")

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """Equal for settings that decode alike, however they are typed: 1 or 1.0, a default given or not."""
        config = self.make_policy().config.to_dict()
        return self.policy, tuple(config.items()), tuple(sorted(self.generation.items()))

    @cached_property
    def described(self) -> str:
        """The whole configuration: name, every setting of the policy, changes of the decoding."""
        settings = {**self.make_policy().config.to_dict(), **self.generation}
        return " ".join([self.policy, *(setting_texts(settings) or ["(no settings)"])])

    def make_policy(self) -> CachePolicy:
        return create_policy(self.policy, **self.config)

    def decoding(self, base: GenerationConfig) -> GenerationConfig:
        """The measurement's decoding with this setting's changes. ValueError where the policy knows none."""
        decoding = replace(base, **self.generation)
        self.make_policy().check_decoding(decoding)
        return decoding

    @classmethod
    def of(cls, policy: str, settings: Mapping[str, Any]) -> "Setting":
        """Sort settings into the policy's and the decoding's; a name both know is the policy's."""
        own, decoding = split_settings(policy, settings)
        return cls(policy, own, decoding)

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """Read name or name:key=value,key=value. Raises ValueError for another form."""
        policy, _, rest = text.partition(":")
        return cls.of(policy.strip(), parse_settings([part for part in rest.split(",") if part]))


def parse_value(text: str) -> Any:
    """A setting's value: true, false, none, inf, an integer, a number, or the text itself."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE texts as a dictionary. Raises ValueError for a text of another form or a repeated key."""
    parsed: dict[str, Any] = {}
    for text in settings:
        key, mark, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not mark or not key:
            raise ValueError(f"setting is {text!r}; allowed: KEY=VALUE")
        if key in parsed:
            raise ValueError(f"setting {key} is given twice")
        parsed[key] = parse_value(value.strip())
    return parsed


def split_settings(policy: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the policy, and of the decoding; what neither knows is left to the policy to refuse."""
    own = {name.name for name in fields(POLICIES[policy].Config)} if policy in POLICIES else set()
    decoding = {name.name for name in fields(GenerationConfig)} - own
    of_decoding = {key: value for key, value in settings.items() if key in decoding}
    return {key: value for key, value in settings.items() if key not in decoding}, of_decoding


def setting_texts(settings: Mapping[str, Any]) -> list[str]:
    """Settings as one would type them: key=value each."""
    words = {True: "true", False: "false", None: "none"}
    return [
        f"{key}={words[value] if value is None or isinstance(value, bool) else value}"
        for key, value in settings.items()
    ]


def check_different(settings: Sequence[Setting], base: GenerationConfig) -> None:
    """Raise ValueError where two settings are one and the same, however they are written."""
    seen: dict[object, str] = {}
    for setting in settings:
        same = (setting.policy, setting.make_policy().config, setting.decoding(base))
        if same in seen:
            names = "" if seen[same] == setting.label else f"{seen[same]} and {setting.label}, "
            raise ValueError(f"{names or setting.label + ' twice, '}which is one setting; give each once")
        seen[same] = setting.label


def longest(settings: Sequence[Setting], base: GenerationConfig) -> GenerationConfig:
    """Of the settings' decodings the one of most tokens: prompts that fit it fit all."""
    return max((setting.decoding(base) for setting in settings), key=lambda one: one.gen_length, default=base)
