"""Results: everything that measurement files hold, read back and told apart by what they say they are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.bench_point import BenchPoint
from analysis.comparison import Comparison, Summary, summarise
from analysis.confirmation import Confirmation
from analysis.measure import Outcome
from analysis.parquet import read_parquet
from analysis.records import check_numbers, record
from analysis.settings import Setting, setting_texts
from analysis.trace import Trace
from analysis.tuning import Candidate, Goal, Tuning, pareto_front
from analysis.wording import workforce
from core import GenerationConfig

MACHINE_FIELDS = ("python", "torch", "platform", "processor", "threads", "command")
MODEL_FIELDS = ("ref", "family", "num_parameters", "dtype", "device")
FILES = (
    "files of run, compare, tune or bench --json, run --drift-json, observe --traces, sweep --out, "
    "compare or tune --journal, or export (Parquet)"
)
# What to give in place of a file that holds too little, by the kind it says it is: to `report`, to `export`.
FOR_REPORT = {"observation": "of observe give the file of --traces"}
FOR_EXPORT = {
    "trace": "a run's trace holds no outcomes; of compare give the file of --json or --journal",
    "tuning": "of tune give the file of --journal",
}


@dataclass
class Results:
    """runs: traces by what they share (see `shared_by`); observed: no-cache traces with drift, likewise.
    environments: each different one that a file brought, with its command. decodings: of each of
    comparisons, tunings and benches in order, the model, machine and decoding that its numbers hold for,
    in words. sources: likewise the name of the file that it is from. sources_of_runs: the names of those of
    a group of `runs` or `observed`, by that word and its key.
    """

    runs: dict[str, list[Trace]] = field(default_factory=dict)
    observed: dict[str, list[Trace]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    tunings: list[Tuning] = field(default_factory=list)
    benches: list[list[BenchPoint]] = field(default_factory=list)
    environments: list[dict[str, Any]] = field(default_factory=list)
    decodings: dict[str, list[str]] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    sources_of_runs: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def read_results(paths: Sequence[Path]) -> Results:
    """Read files of run, compare, sweep, tune and bench. Raises ValueError naming a file of none of them."""
    results = Results()
    names = [path.name for path in paths]
    for path in paths:
        # Files of one name in two folders are told apart by where they are.
        name = path.name if names.count(path.name) == 1 else str(path)
        try:
            if path.suffix == ".parquet":
                _add_journal(results, name, *read_parquet(path))
                continue
            text = path.read_text(encoding="utf-8")
            records = _records(text)
            if records and isinstance(records[0], dict) and records[0].get("kind") == "journal":
                _add_journal(results, name, records[0], [Outcome.from_json(one) for one in records[1:]])
                continue
            for one in records:
                _add(results, name, one)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise ValueError(f"{path.name} is no JSON; allowed: {FILES}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{path.name} is no result of run, compare, sweep, tune or bench ({error})"
            ) from None
    return results


def _records(text: str) -> list[Any]:
    """The file's one JSON value, or one value a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        lines = [line for line in text.split("\n") if line.strip()]
    first = json.loads(lines[0]) if lines else None
    cut = isinstance(first, dict) and first.get("kind") == "journal" and not text.endswith("\n")
    # A sweep that was killed while it wrote leaves half a line.
    return [json.loads(line) for line in (lines[:-1] if cut else lines)]


def _add(results: Results, name: str, found: Any) -> None:
    kind = found.get("kind", "trace") if isinstance(found, dict) else None
    if kind == "trace":
        _add_trace(results, name, Trace.from_json(found))
        _add_environment(results, found.get("environment"), found["generation"])
        return
    if kind == "comparison":
        results.comparisons.append(Comparison(tuple(record(Summary, row) for row in found["summary"])))
    elif kind == "tuning":
        results.tunings.append(_tuning(found))
    elif kind == "bench":
        results.benches.append([BenchPoint.from_json(point) for point in found["points"]])
    else:
        raise ValueError(_refusal(kind, "trace, comparison, tuning, bench", FOR_REPORT))
    _add_environment(results, found["environment"], found["generation"])
    known = (
        holds_for(found["environment"], found["generation"]) if found["environment"] else "nothing measured"
    )
    results.decodings.setdefault(kind, []).append(known)
    results.sources.setdefault(kind, []).append(name)


def text_of(trace: Trace) -> str | None:
    """What was generated, or why there is nothing of it to see; None without a tokenizer."""
    if trace.text is None or trace.text.strip():
        return trace.text
    first = trace.answer_length == 0
    return f"(no text: {'the model wrote end-of-text first' if first else 'nothing but white space'})"


def _refusal(kind: Any, allowed: str, instead: Mapping[str, str]) -> str:
    """Why a file of this kind is not read, and what to give in its place where there is something."""
    more = f"; {instead[kind]}" if isinstance(kind, str) and kind in instead else ""
    return f"kind is {kind!r}; allowed: {allowed}{more}"


def _add_environment(results: Results, machine: dict[str, Any] | None, generation: dict[str, Any]) -> None:
    """Keep what a command brought once; its drift pass may decode otherwise than the command says."""
    if machine:
        missing = [name for name in MACHINE_FIELDS if name not in machine]
        missing += [f"model.{name}" for name in MODEL_FIELDS if name not in dict(machine.get("model") or ())]
        if missing:
            raise ValueError(f"environment lacks {', '.join(missing)}")
    known = [{name: one[name] for name in one if name != "decoding"} for one in results.environments]
    if machine and machine not in known:
        results.environments.append({**machine, "decoding": " ".join(setting_texts(generation))})


def holds_for(machine: dict[str, Any], generation: dict[str, Any]) -> str:
    """Model, machine and decoding in words."""
    model, who = machine["model"], workforce(machine.get("workers", 0), machine["threads"])
    return (
        f"{model['ref']} ({model['family']}), {model['dtype']} on {model['device']}, "
        f"{who}; decoding: {' '.join(setting_texts(generation))}"
    )


def read_outcomes(path: Path) -> tuple[dict[str, Any], list[Outcome]]:
    """A journal's header and outcomes, or those of a comparison's file. Raises ValueError for another."""
    try:
        if path.suffix == ".parquet":
            return read_parquet(path)
        header, *rest = _records(path.read_text(encoding="utf-8")) or [{}]
        if not isinstance(header, dict):
            raise ValueError("it holds no JSON object")
        if header.get("kind") == "comparison":
            names = ("schema", "environment", "generation")
            rest = header["outcomes"]
            header = {**{name: header[name] for name in names}, "kind": "journal"}
        if header.get("kind") != "journal":
            kind = header.get("kind", "trace" if "steps" in header else None)
            raise ValueError(_refusal(kind, "journal, comparison", FOR_EXPORT))
        return header, [Outcome.from_json(one) for one in rest]
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path.name} holds no outcomes of sweep, compare or tune ({error})") from None


def _add_journal(results: Results, name: str, header: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
    """The outcomes of a sweep or a tuning as a comparison, settings in the order of their first outcome."""
    if not header.get("environment"):
        raise ValueError("it does not say on what machine and model it was measured")
    settings = [Setting.parse(label) for label in dict.fromkeys(one.setting for one in outcomes)]
    eos = header["environment"]["model"]["eos_token_ids"]
    base = GenerationConfig(**header["generation"])
    results.comparisons.append(summarise(outcomes, settings, base, eos))
    results.decodings.setdefault("comparison", []).append(holds_for(header["environment"], base.to_dict()))
    results.sources.setdefault("comparison", []).append(name)
    _add_environment(results, header["environment"], header["generation"])


def _add_trace(results: Results, name: str, trace: Trace) -> None:
    watched = bool(trace.steps) and all("value_drift" in step.measurements for step in trace.steps)
    without_cache = trace.policy["name"] == "none"
    key, part = shared_by(trace), "observed" if watched and without_cache else "runs"
    getattr(results, part).setdefault(key, []).append(trace)
    names = results.sources_of_runs.setdefault((part, key), [])
    names += [name] if name not in names else []


def shared_by(trace: Trace) -> str:
    """What traces must share to be told of together, as JSON: model, decoding and policy."""
    model = {name: trace.model.get(name) for name in MODEL_FIELDS}
    policy = Setting(str(trace.policy["name"]), trace.policy["config"]).label
    return json.dumps([model, trace.generation, policy], sort_keys=True)


def _tuning(found: dict[str, Any]) -> Tuning:
    # Not the decoding beside them, which may well hold an infinity.
    check_numbers({name: found[name] for name in ("candidates", "measured", "full_grid")})
    candidates = tuple(
        Candidate(
            Setting.parse(row["setting"]),
            float(row["cost"]),
            float(row["loss"]),
            int(row["prompts"]),
            None if row.get("cost_low") is None else float(row["cost_low"]),
            None if row.get("cost_high") is None else float(row["cost_high"]),
            None if row.get("loss_worst") is None else float(row["loss_worst"]),
        )
        for row in found["candidates"]
    )
    most = max((candidate.prompts for candidate in candidates), default=0)
    return Tuning(
        candidates=candidates,
        best=next((c for c in candidates if c.setting.label == found["best"]), None),
        front=pareto_front([candidate for candidate in candidates if candidate.prompts == most]),
        goal=Goal(**found["goal"]),
        measured=int(found["measured"]),
        full_grid=int(found["full_grid"]),
        confirmed=record(Confirmation, found["confirmed"]) if found.get("confirmed") else None,
        gains=tuple(float(gain) for gain in found.get("gains", ())),
    )
