"""Recorded examples: real traces in assets/traces that fill the page before the first run."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from analysis.trace import Trace
from app.frames import FrameFeed
from app.job import Job, LaneSpec
from app.panels import ASSETS
from app.runs import LaneRun, RunRecord
from core import POLICIES, GenerationConfig

FOLDER = ASSETS / "traces"
RUN, OBSERVATION, TOKENS = FOLDER / "entropy.json", FOLDER / "drift.json", FOLDER / "tokens.json"


@dataclass(frozen=True)
class Example:
    """A recorded run, ready to be shown: its record and its whole frame."""

    record: RunRecord
    frame: dict[str, Any]


@cache
def recorded_example() -> Example:
    """The run that fills the page at first, with the no-cache observation of the same prompt."""
    trace, observation = Trace.load(RUN), Trace.load(OBSERVATION)
    texts = json.loads(TOKENS.read_text(encoding="utf-8"))
    record = record_of(trace, "recorded", 0, observation)
    feed = FrameFeed(record, lambda trace: lambda token: texts[str(token)], example=True)
    return Example(record, feed.frame("done", whole=True))


def record_of(trace: Trace, run_id: str, order: int, observation: Trace | None = None) -> RunRecord:
    """A trace from a file as a finished run. Raises ValueError for settings that are none of ours."""
    spec = LaneSpec(str(trace.policy["name"]), tuple(trace.policy["config"].items()))
    try:
        generation = GenerationConfig(**trace.generation)
    except TypeError as error:
        raise ValueError(f"trace: generation: {error}") from None
    if spec.name in POLICIES:
        try:
            spec.policy()
        except ValueError as error:
            raise ValueError(f"trace: policy: {error}") from None
    prompt = trace.prompt or ", ".join(map(str, trace.prompt_ids))
    job = Job(prompt, (spec,), generation, model=str(trace.model["ref"]))
    lane = LaneRun(spec, trace, "done" if trace.complete else "stopped")
    return RunRecord(run_id, order, job, [lane], observation)


def write_example(folder: Path, run: Trace, observation: Trace, texts: dict[int, str]) -> None:
    """Save what `recorded_example` reads; texts of the tokens spare the page a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    run.save(folder / RUN.name)
    observation.save(folder / OBSERVATION.name)
    content = {str(token): text for token, text in sorted(texts.items())}
    (folder / TOKENS.name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
