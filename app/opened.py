"""opened: a trace from a file that a visitor opens, or in one sentence what else the file is."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.staleness import staleness
from analysis.trace import Trace
from app.examples import record_of
from app.forms import entered
from app.links import form_of
from app.runs import RunRecord

WRITTEN_BY = {
    "comparison": "a comparison, as compare and sweep write",
    "journal": "a journal of runs, as sweep keeps",
    "tuning": "a result of tune",
    "observation": "a result of observe",
    "bench": "a result of bench",
    "evaluation": "a result of evaluate",
    "floor": "a result of floor",
    "device-check": "a result of device-check",
}
OPENS = "what opens here is a trace, from `run --json` or from a downloaded zip (trace-a.json)"
OURS = ("schema", "model", "steps", "tokens")


def read_trace(path: str | Path) -> tuple[Trace, int]:
    """The first trace of a file and how many it holds, one a line. Raises ValueError in one sentence."""
    try:
        values = _values(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"this file is not JSON text ({error}); {OPENS}") from None
    first = values[0]
    kind = first.get("kind") if isinstance(first, dict) else None
    if kind not in (None, "trace"):
        raise ValueError(f"this file is {WRITTEN_BY.get(str(kind), 'of another kind')}; {OPENS}")
    if not isinstance(first, dict) or not any(name in first for name in OURS):
        raise ValueError(f"this file is JSON, but no trace; {OPENS}")
    return Trace.from_json(first), len(values)


def _values(text: str) -> list[Any]:
    """A file's one value, or one a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as whole:
        lines = [line for line in text.split("\n") if line.strip()]
        try:
            # Only the first is shown: of the others it is enough that they are there.
            return [json.loads(lines[0]), *lines[1:]]
        except (json.JSONDecodeError, IndexError):
            raise whole from None


def opened_record(trace: Trace, run_id: str, order: int, takes_ids: bool) -> RunRecord:
    """A trace from a file as a run on show, with the staleness that was measured in it.

    takes_ids: whether its model has no tokenizer, so that ids can be entered as its prompt. Raises
    ValueError for settings that are none of ours.
    """
    record = record_of(trace, run_id, order)
    record.lanes[0].from_file = True
    if trace.prompt is None and not takes_ids:
        record.job = replace(record.job, prompt="")
    try:
        staleness(trace)
    except ValueError:
        return record
    record.stale[0] = trace
    return record


def forms_of_record(record: RunRecord) -> tuple[dict[str, str], str]:
    """What of the page's forms an opened run fills in, by name, and what is said of it."""
    job = record.job
    forms = {
        "prompt": job.prompt,
        "generation": json.dumps({name: entered(value) for name, value in job.generation.to_dict().items()}),
    }
    told = "prompt and settings" if job.prompt else "settings"
    try:
        form = form_of(job.lanes[0])
        forms |= {"policy": form["policy"], "settings": json.dumps(form), "lanes": "[]"}
        told = f"its {told} are in the form"
    except ValueError:
        told = f"its {told} are in the form, but for its policy, which is none of these"
    if not job.prompt:
        told += "; its prompt is known as token ids only, so the prompt is left empty"
    return forms, told
