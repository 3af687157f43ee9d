"""Job: everything one press of Run asks for, read from the page's forms and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.forms import describe, parse_json, read_all
from app.models import EMBEDDED_REF
from core import POLICIES, CachePolicy, GenerationConfig, LanguageModel, create_policy

MAX_LANES = 4
MAX_PROMPT_CHARACTERS = 20_000
OBSERVE = {
    "one token a step": "one",
    "the run's own rule": "own",
    "not at all": "off",
}


@dataclass(frozen=True)
class LaneSpec:
    """A policy by name with its settings; checked by `policy`."""

    name: str
    config: tuple[tuple[str, Any], ...]

    def policy(self) -> CachePolicy:
        """A fresh policy. Raises ValueError for an unknown name or setting."""
        return create_policy(self.name, **dict(self.config))

    @property
    def label(self) -> str:
        known = self.name in POLICIES
        return describe(self.name, self.policy().config.to_dict() if known else dict(self.config))


@dataclass(frozen=True)
class Job:
    """prompt: what to answer, as text or as token ids parted by commas. lanes: one to four policies.
    observe: a value of OBSERVE, how the no-cache pass behind the scatter is decoded. model: see load_model.
    """

    prompt: str
    lanes: tuple[LaneSpec, ...]
    generation: GenerationConfig
    observe: str = "one"
    model: str = EMBEDDED_REF

    @classmethod
    def read(
        cls, prompt: Any, policy: Any, lanes: Any, generation: Any, observe: str, model: str = EMBEDDED_REF
    ) -> "Job":
        """Check the page's entries. Raises ValueError in one sentence for the first that is wrong."""
        text = str(prompt or "").strip()
        if not text:
            raise ValueError("prompt is empty; write one or pick a suggestion")
        if len(text) > MAX_PROMPT_CHARACTERS:
            raise ValueError(f"prompt has {len(text)} characters; allowed: up to {MAX_PROMPT_CHARACTERS}")
        others = parse_json(lanes, "lanes")
        if not isinstance(others, list) or len(others) >= MAX_LANES:
            raise ValueError(f"lanes is {str(others)[:40]}; allowed: up to {MAX_LANES - 1} more policies")
        specs = tuple(read_lane(lane) for lane in [parse_json(policy, "policy"), *others])
        settings = read_all(parse_json(generation, "generation"), "generation")
        try:
            config = GenerationConfig(**settings)
        except TypeError:
            unknown = sorted(set(settings) - set(GenerationConfig().to_dict()))
            raise ValueError(f"generation has no setting {unknown[0]!r}") from None
        if observe not in OBSERVE:
            raise ValueError(f"observe is {observe!r}; allowed: {', '.join(OBSERVE)}")
        return cls(text, specs, config, OBSERVE[observe], model)

    def content(self, model: LanguageModel) -> str | list[int]:
        """The prompt as the engine takes it: ids only where the model has no tokenizer to read text."""
        parts = self.prompt.replace(",", " ").split()
        if model.tokenizer is None and all(part.isdigit() for part in parts):
            return [int(part) for part in parts]
        return self.prompt


def read_lane(entry: Any) -> LaneSpec:
    """A policy form's value, its policy built once to see that it can be."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("policy"), str):
        raise ValueError(f"policy is {str(entry)[:40]!r}; allowed: a policy with its settings")
    config = read_all(entry.get("config", {}), "policy settings")
    lane = LaneSpec(entry["policy"], tuple(config.items()))
    lane.policy()
    return lane
