"""The trace file, schema 1: a Trace as JSON and back, checked field by field on the way in."""

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from analysis.trace import Step, Trace, plain_array
from analysis.trace_schema import FileStep, TraceFile

# Steps times positions: a small file must not become gigabytes of arrays.
MAX_CELLS = 2**24


def to_json(trace: Trace) -> dict[str, Any]:
    """The file's content: lists, numbers and strings only; infinities as "inf", NaN as null."""
    return {
        "schema": 1,
        "model": _plain(trace.model),
        "policy": _plain(trace.policy),
        "generation": _plain(trace.generation),
        "prompt": trace.prompt,
        "prompt_ids": list(trace.prompt_ids),
        "tokens": list(trace.tokens),
        "text": trace.text,
        "steps": [_step_to_json(step) for step in trace.steps],
        "totals": _plain(trace.totals),
        "batch_size": trace.batch_size,
    }


def from_json(data: Any) -> Trace:
    """Read a file's content. Raises ValueError naming the first field that is wrong.

    Totals are derived and not trusted: they are counted again from the steps.
    """
    try:
        # Half a surrogate pair is a str to Python, but no file can be written with it.
        json.dumps(data, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"trace: file: not text that can be written again ({error})") from None
    try:
        file = TraceFile.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = _path(first["loc"]) or "file"
        raise ValueError(f"trace: {where}: {first['msg'].lower()}") from None
    canvas = len(file.prompt_ids) + len(file.tokens)
    count = len(file.steps)
    _check(count <= len(file.tokens), "trace: steps", f"{count} steps for {len(file.tokens)} tokens")
    _check(count * canvas <= MAX_CELLS, "trace: steps", f"{count} x {canvas} positions; at most {MAX_CELLS}")
    seen: set[int] = set()
    steps = []
    for index, step in enumerate(file.steps):
        steps.append(_step_from_json(step, f"trace: steps[{index}]", canvas, file.model.num_layers))
        again = seen.intersection(step.committed)
        _check(not again, f"trace: steps[{index}].committed", f"position {min(again, default=0)} twice")
        _check(step.step == index, f"trace: steps[{index}].step", f"{step.step} is not {index}")
        alone = len(set(step.committed)) == len(step.committed)
        _check(alone, f"trace: steps[{index}].committed", "one position twice in one step")
        seen.update(step.committed)
        for place, token in zip(step.committed, step.tokens, strict=True):
            where, inside = f"trace: steps[{index}]", place < len(file.tokens)
            _check(inside, f"{where}.committed", f"{place} lies outside the generation")
            _check(file.tokens[place] == token, f"{where}.tokens", f"{token} at {place}, not so in `tokens`")
    rest = [token for place, token in enumerate(file.tokens) if place not in seen]
    undecoded = {file.model.mask_token_id, *file.model.eos_token_ids}
    _check(undecoded.issuperset(rest), "trace: tokens", "a token that no step committed")
    return Trace(
        model=file.model.model_dump(),
        policy={"name": file.policy.name, "config": _numbers(file.policy.config)},
        generation=_numbers(data["generation"]),
        prompt=file.prompt,
        prompt_ids=tuple(file.prompt_ids),
        tokens=tuple(file.tokens),
        text=file.text,
        steps=tuple(steps),
        batch_size=file.batch_size,
    )


def save(trace: Trace, path: str | Path) -> None:
    """Write a trace file."""
    Path(path).write_text(json.dumps(to_json(trace), allow_nan=False), encoding="utf-8")


def load(path: str | Path) -> Trace:
    """Read a trace file. Raises ValueError for a file that is not one, OSError for none at all."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"trace: {Path(path).name} is not JSON text ({error})") from None
    return from_json(data)


def run_lengths(refreshed: np.ndarray) -> tuple[list[list[int]], list[int]]:
    """Refreshed positions of int [L] as [first, count] runs of equal layer counts, and those counts."""
    edges = np.flatnonzero(np.diff(refreshed, prepend=-1, append=-1))
    runs = [(int(a), int(b - a), int(refreshed[a])) for a, b in pairwise(edges)]
    kept = [run for run in runs if run[2] > 0]
    return [[first, count] for first, count, _ in kept], [layers for *_, layers in kept]


def _step_to_json(step: Step) -> dict[str, Any]:
    runs, layers = run_lengths(step.refreshed)
    rows = step.num_refreshed
    data = {
        "step": step.step,
        "full": step.full,
        "reason": step.reason,
        "committed": list(step.committed),
        "tokens": list(step.tokens),
        "confidence": list(step.confidence),
        "entropy": list(step.entropy),
        "max_entropy": _plain(step.max_entropy),
        "refreshed": int(rows) if rows.is_integer() else rows,
        "refreshed_positions": runs,
        "seconds": _plain(step.seconds),
        "measurements": _plain(step.measurements),
    }
    if any(count != step.num_layers for count in layers):
        data["refreshed_layers"] = layers
    return data


def _step_from_json(step: FileStep, where: str, canvas: int, num_layers: int) -> Step:
    for name in ("tokens", "confidence", "entropy"):
        got, want = len(getattr(step, name)), len(step.committed)
        _check(got == want, f"{where}.{name}", f"{got} values for {want} committed positions")
    layers = step.refreshed_layers
    if layers is None:
        layers = [num_layers] * len(step.refreshed_positions)
    same = len(layers) == len(step.refreshed_positions)
    _check(same, f"{where}.refreshed_layers", "not one number for each entry of refreshed_positions")
    refreshed = np.zeros(canvas, dtype=int)
    for entry, count in zip(step.refreshed_positions, layers, strict=True):
        first, length = (entry, 1) if isinstance(entry, int) else entry
        _check(first + length <= canvas, f"{where}.refreshed_positions", f"{entry} leaves the canvas")
        _check(count <= num_layers, f"{where}.refreshed_layers", f"{count} of {num_layers} layers")
        refreshed[first : first + length] = count
    read = Step(
        step=step.step,
        full=step.full,
        reason=step.reason,
        committed=tuple(step.committed),
        tokens=tuple(step.tokens),
        confidence=tuple(step.confidence),
        entropy=tuple(step.entropy),
        refreshed=refreshed,
        num_layers=num_layers,
        seconds=step.seconds.model_dump(),
        measurements={name: _array(value, f"{where}.{name}") for name, value in step.measurements.items()},
    )
    counted = read.num_refreshed
    agrees = math.isclose(counted, step.refreshed, rel_tol=1e-6, abs_tol=1e-6)
    _check(agrees, f"{where}.refreshed", f"{step.refreshed:g}, but its positions make {counted:g} rows")
    return read


def _array(value: Any, where: str) -> np.ndarray:
    try:
        array = np.array(value)
        return plain_array(array if array.dtype != object else array.astype(np.float32))
    except (TypeError, ValueError):
        raise ValueError(f"{where}: not a regular array of numbers") from None


def _plain(value: Any) -> Any:
    """JSON values: arrays and tuples as lists, float32 as its shortest decimal, inf as text, NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value] if value.ndim else _plain(value[()])
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.float32):
        value = float(str(value))
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def _numbers(config: dict[str, Any]) -> dict[str, Any]:
    """Settings with "inf" and "-inf" read back as numbers."""
    words = {"inf": math.inf, "-inf": -math.inf}
    return {key: words.get(item, item) if isinstance(item, str) else item for key, item in config.items()}


def _path(loc: tuple[int | str, ...]) -> str:
    """A place in the file as one would write it in code: steps[3].seconds.plan."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


def _check(condition: bool, where: str, problem: str) -> None:
    if not condition:
        raise ValueError(f"{where}: {problem}")
