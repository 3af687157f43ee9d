"""Links: a job's settings as a URL query and back, so that a page can be sent to somebody."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlencode

from analysis.settings import Setting
from app.forms import defaults, entered
from app.job import OBSERVE, Job, LaneSpec
from app.models import EMBEDDED_REF
from core import POLICIES, GenerationConfig

BETWEEN_LANES = "|"
# Signs of settings that mean nothing in the value of a query; as codes they would make it half as long again.
READABLE = ":,="
KEYS = ("prompt", "policy", "with", "observe", "model")


@dataclass(frozen=True)
class FormValues:
    """What the page's forms hold: the entries that Job.read takes, policy's name apart."""

    prompt: str
    policy: str
    settings: str
    lanes: str
    generation: str
    observe: str


def query_of(job: Job) -> str:
    """The query that brings this job back: every setting, as a default may be another one some day."""
    query = {"prompt": job.prompt, "policy": _label(job.lanes[0])}
    if len(job.lanes) > 1:
        query["with"] = BETWEEN_LANES.join(_label(lane) for lane in job.lanes[1:])
    for name, value in job.generation.to_dict().items():
        query[name] = str(entered(value)).lower() if isinstance(value, bool) else entered(value)
    return urlencode({**query, "observe": job.observe, "model": job.model}, safe=READABLE)


def forms_of(query: Mapping[str, str], prompt: str) -> FormValues:
    """The forms that a query describes; `prompt` stands where it has none, defaults where settings do.

    Unknown keys are left to others. Raises ValueError in one sentence for a value that is none.
    """
    lanes = [lane_form(text) for text in (query.get("policy", "entropy"), *_others(query))]
    names = {field.name for field in fields(GenerationConfig)}
    chosen = {key: value for key, value in query.items() if key in names}
    observe = {short: long for long, short in OBSERVE.items()}
    watched = query.get("observe", "one")
    if watched not in observe:
        raise ValueError(f"observe is {watched!r}; allowed: {', '.join(observe)}")
    return FormValues(
        prompt=query.get("prompt", prompt),
        policy=lanes[0]["policy"],
        settings=json.dumps(lanes[0]),
        lanes=json.dumps(lanes[1:]),
        generation=json.dumps({**defaults(GenerationConfig), **chosen}),
        observe=observe[watched],
    )


def model_of(query: Mapping[str, str]) -> str:
    """The model that a query asks for; the embedded one where it names none."""
    return query.get("model", "").strip() or EMBEDDED_REF


def has_settings(query: Mapping[str, str]) -> bool:
    """Whether a query says anything of a job."""
    return any(key in KEYS or key in GenerationConfig().to_dict() for key in query)


def _others(query: Mapping[str, str]) -> list[str]:
    return [text for text in query.get("with", "").split(BETWEEN_LANES) if text]


def lane_form(text: str) -> dict[str, Any]:
    """A policy form's value from `name:key=value,key=value`."""
    setting = Setting.parse(text)
    if setting.generation:
        raise ValueError(f"policy {setting.policy} has no setting {next(iter(setting.generation))!r}")
    config = {name: entered(value) for name, value in setting.config.items()}
    return {"policy": setting.policy, "config": {**defaults(POLICIES[setting.policy].Config), **config}}


def form_of(lane: LaneSpec) -> dict[str, Any]:
    """A policy form's value from a lane. Raises ValueError for a policy or a setting that is none of ours."""
    return lane_form(_label(lane))


def _label(lane: LaneSpec) -> str:
    return Setting(lane.name, lane.policy().config.to_dict()).label
