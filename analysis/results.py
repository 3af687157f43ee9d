"""Results: everything that measurement files hold, read back and told apart by what they say they are."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.bench_point import BenchPoint
from analysis.comparison import Comparison, Summary
from analysis.settings import Setting
from analysis.trace import Trace
from analysis.tuning import Candidate, Goal, Tuning, pareto_front


@dataclass
class Results:
    """runs: traces by setting; observed: no-cache traces with drift, by commit rule. environments: each
    different one that a file brought, with its command.
    """

    runs: dict[str, list[Trace]] = field(default_factory=dict)
    observed: dict[str, list[Trace]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    tunings: list[Tuning] = field(default_factory=list)
    benches: list[list[BenchPoint]] = field(default_factory=list)
    environments: list[dict[str, Any]] = field(default_factory=list)


def read_results(paths: Sequence[Path]) -> Results:
    """Read files of run, compare, tune and bench. Raises ValueError naming a file that is none of them."""
    results = Results()
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            records = _records(text)
            for record in records:
                _add(results, record)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name} is no result of run, compare, tune or bench ({error})") from None
    return results


def _records(text: str) -> list[Any]:
    """The file's one JSON value, or one value a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _add(results: Results, record: Any) -> None:
    kind = record.get("kind", "trace") if isinstance(record, dict) else None
    if kind == "trace":
        _add_trace(results, Trace.from_json(record))
        return
    if kind == "comparison":
        results.comparisons.append(Comparison(tuple(Summary(**row) for row in record["summary"])))
    elif kind == "tuning":
        results.tunings.append(_tuning(record))
    elif kind == "bench":
        results.benches.append([BenchPoint.from_json(point) for point in record["points"]])
    else:
        raise ValueError(f"kind is {kind!r}; allowed: trace, comparison, tuning, bench")
    if record["environment"] and record["environment"] not in results.environments:
        results.environments.append(record["environment"])


def _add_trace(results: Results, trace: Trace) -> None:
    watched = bool(trace.steps) and all("value_drift" in step.measurements for step in trace.steps)
    if watched and trace.policy["name"] == "none":
        rule = str(trace.generation["unmask"])
        results.observed.setdefault(rule, []).append(trace)
    else:
        label = Setting(str(trace.policy["name"]), trace.policy["config"]).label
        results.runs.setdefault(label, []).append(trace)


def _tuning(record: dict[str, Any]) -> Tuning:
    candidates = tuple(
        Candidate(
            Setting.parse(row["setting"]),
            float(row["cost"]),
            float(row["loss"]),
            int(row["prompts"]),
            row.get("cost_low"),
            row.get("cost_high"),
        )
        for row in record["candidates"]
    )
    most = max((candidate.prompts for candidate in candidates), default=0)
    return Tuning(
        candidates=candidates,
        best=next((c for c in candidates if c.setting.label == record["best"]), None),
        front=pareto_front([candidate for candidate in candidates if candidate.prompts == most]),
        goal=Goal(**record["goal"]),
        measured=int(record["measured"]),
        full_grid=int(record["full_grid"]),
    )
