"""History: the visitor's last runs as a list to pick from, and picked lanes as a run of their own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from analysis.wording import counted
from app.job import MAX_LANES
from app.runs import LaneRun, RunRecord, RunStore

SHOWN_PROMPT = 64
LETTERS = "ABCD"
PICKED = "picked"


def history(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The history panel's value: one entry a lane, the latest run first, no two of one label.

    A lane that was shown again beside others is still the one it was, and listed where it was decoded.
    """
    home = {
        id(lane.trace): (record.run_id, index)
        for record in sorted(runs, key=lambda record: not record.run_id.startswith(PICKED))
        for index, lane in enumerate(record.lanes)
    }
    return [
        {
            "run": record.run_id,
            "lane": index,
            "label": f"{_name(record, index)} · {lane.label}",
            "prompt": _short(record.job.prompt) or "prompt given as token ids",
            "summary": _summary(lane.trace.totals),
        }
        for record in runs
        for index, lane in enumerate(record.lanes)
        if lane.trace is not None and home[id(lane.trace)] == (record.run_id, index)
    ]


def picked(store: RunStore, visitor: str, picks: Any) -> RunRecord:
    """Picked (run, lane) pairs side by side as a record named after them.

    The observation of the first is kept where all are of one prompt. Raises ValueError for picks that are
    gone, too many or twice the same.
    """
    if not isinstance(picks, list) or not 1 <= len(picks) <= MAX_LANES:
        raise ValueError(f"pick one to {MAX_LANES} runs to show side by side")
    lanes: list[LaneRun] = []
    records, names = [], []
    for pick in picks:
        record = store.find(visitor, str(pick.get("run")))
        index = pick.get("lane")
        if record is None or not isinstance(index, int) or not 0 <= index < len(record.lanes):
            raise ValueError("a picked run is no longer kept; the last 12 are")
        name, lane = _name(record, index), record.lanes[index]
        if any(lane.trace is other.trace for other in lanes):
            raise ValueError(f"{name} is picked twice; a run can't stand beside itself")
        lanes.append(lane)
        records.append(record)
        names.append(name.replace(" ", "-").lower())
    first, order = records[0], store.new_order()
    if len({record.run_id for record in records}) == 1 and len(lanes) == len(first.lanes):
        return replace(first, order=order)
    job = replace(first.job, lanes=tuple(lane.spec for lane in lanes))
    one_prompt = len({record.job.prompt for record in records}) == 1
    observation = first.observation if one_prompt else None
    return RunRecord(f"{PICKED}-{'-'.join(names)}", order, job, lanes, observation)


def _name(record: RunRecord, index: int) -> str:
    """A lane of a run by the run's number, which its files are named by, and its letter beside others."""
    letter = f" {LETTERS[index]}" if len(record.lanes) > 1 else ""
    return record.run_id.replace("-", " ") + letter


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_PROMPT else line[: SHOWN_PROMPT - 1] + "…"


def _summary(totals: dict[str, float | int | None]) -> str:
    ratio, speed = totals["recompute_ratio"], totals["tokens_per_second"]
    parts = [counted(int(totals["steps"] or 0), "step")]
    parts += [f"{100 * ratio:.0f} % recomputed"] if ratio is not None else []
    parts += [f"{speed:.0f} tokens/s"] if speed is not None else []
    return ", ".join(parts)
