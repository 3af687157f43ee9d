"""bench: the cost of full steps, partial steps and decisions over prompt lengths, batches and shapes."""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from analysis.bench import Place, bench, check_clock
from analysis.bench_point import BenchPoint
from analysis.cli import parsing
from analysis.cli.progress import progress
from analysis.cli.text import counted, figure, legend, percent, settings_text, table
from analysis.environment import environment
from analysis.measure import reference_of
from analysis.settings import Setting, check_different, longest
from analysis.shapes import SHAPES, parse_shape, random_model
from analysis.spread import FEWEST_FOR_QUARTILES
from core import GenerationConfig, LanguageModel, ModelSpec, load_model
from core.models.loading import device_named
from core.timing import CLOCKS

DEFAULT = ("dual", "entropy:entropy_threshold=inf")
MOST_BATCH = 4096
HEADER = (
    "setting", "layers", "width", "prompt", "batch", "full ms", "partial ms", "rows", "plan ms", "decision",
    "positions/s", "x parallel", "spread",
)  # fmt: skip
DECISION_HEADER = (
    "setting", "layers", "width", "prompt", "rows", "step ms", "plan ms", "quartiles", "n",
    "share of the generation", "quartiles", "runs",
)  # fmt: skip


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("bench", help="seconds of full steps, partial steps and decisions by size")
    own = {"gen_length": "64", "unmask": "quota", "steps": "one for every 4 positions of a block"}
    parsing.add_common_options(parser, policy=False, prompts=False, settings=parsing.OF_ONE_POLICY, **own)
    parser.add_argument(
        "--shapes",
        nargs="+",
        default=[],
        metavar="NAME[:FIELD=N,...]",
        help=f"random weights of a shape instead of --model: {', '.join(SHAPES)}",
    )
    parser.add_argument("--prompt-lengths", default="128", metavar="N,N,...", help="prompt tokens (128)")
    parser.add_argument("--batches", default="1", metavar="N,N,...", help="prompts at a time (1)")
    parser.add_argument("--repeats", type=int, default=5, help="runs after a warm-up (5)")
    parser.add_argument(
        "--policies",
        "--policy",
        nargs="+",
        default=list(DEFAULT),
        metavar="NAME[:KEY=VALUE,...]",
        help=f"settings to measure beside no cache ({' '.join(DEFAULT)})",
    )
    parser.add_argument(
        "--clock", choices=tuple(CLOCKS), default="wall", help="wall or processor seconds (wall)"
    )
    parser.add_argument("--decisions", action="store_true", help="a Markdown table of decisions alone")
    parser.add_argument("--json", type=Path, metavar="OUT", help="every point")
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Measure size by size; an interruption prints what there is and returns 1; what is done is kept."""
    with parsing.checking():
        parsing.require_at_least("--repeats", arguments.repeats, 1, parsing.MOST_REPEATS)
        base = _decoding(arguments)
        settings = _settings(parsing.settings_of(arguments), base)
        parsing.warn_unread(arguments, base, settings)
        most = longest(settings, base)
        lengths = numbers_of("--prompt-lengths", arguments.prompt_lengths)
        batches = numbers_of("--batches", arguments.batches, MOST_BATCH)
        parsing.require_different("--shapes", arguments.shapes)
        for shape in arguments.shapes:
            _check_room(shape, parse_shape(shape), lengths, most)
        parsing.check_writable(arguments.json)
    places = [Place(length, batch) for length in lengths for batch in batches]
    points: list[BenchPoint] = []
    machine: dict[str, object] = {}
    complete = False
    try:
        for shape in arguments.shapes or [None]:
            with parsing.checking():
                model = model_of(arguments, shape)
                _check_room(model.ref, model.spec, lengths, most)
                check_clock(arguments.clock, model.device)
            machine = machine or environment(model)
            for place in progress(places, model.ref):
                points.extend(bench(model, base, settings, [place], arguments.repeats, clock=arguments.clock))
        complete = True
    except KeyboardInterrupt:
        pass
    finally:
        if arguments.json is not None and points:
            content = {"schema": 1, "kind": "bench", "complete": complete, "environment": machine}
            content |= {"generation": base.to_dict(), "points": [vars(point) for point in points]}
            parsing.write_whole(arguments.json, json.dumps(content))
    print("\n".join((_decisions if arguments.decisions else _report)(base, points)))
    return 0 if complete else 1


def _decoding(arguments: argparse.Namespace) -> GenerationConfig:
    """64 tokens, four a step, unless asked otherwise, so that every setting takes as many steps."""
    base = parsing.generation_config(arguments, gen_length=64, unmask="quota")
    if base.steps is not None or "steps" in base.unread:
        return base
    # A whole number of steps a block, as quota needs.
    per_block = max(1, base.block_length // 4)
    return replace(base, steps=per_block * base.num_blocks)


def _settings(wanted: list[Setting], base: GenerationConfig) -> list[Setting]:
    """No cache first, then the settings asked for, each once. Raises ValueError for a bad one."""
    check_different(wanted, base)
    every = [*map(reference_of, wanted), *wanted]
    return list({setting.label: setting for setting in every}.values())


def _check_room(name: str, spec: ModelSpec, lengths: list[int], base: GenerationConfig) -> None:
    """Raise UsageError for a prompt length that the model has no positions for."""
    room = spec.max_positions - base.gen_length
    for length in lengths:
        if length > room:
            raise parsing.UsageError(
                f"--prompt-lengths {length}: {name} has {spec.max_positions} positions, so at most {room} "
                f"beside gen_length {base.gen_length}"
            )


def model_of(arguments: argparse.Namespace, shape: str | None) -> LanguageModel:
    if shape is None:
        return load_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
    device = device_named(arguments.device)
    automatic = "bfloat16" if device.type == "cuda" else "float32"
    name = automatic if arguments.dtype == "auto" else arguments.dtype
    if name not in ("float32", "bfloat16", "float16"):
        raise parsing.UsageError(f"dtype is {name!r}; allowed: auto, float32, bfloat16, float16")
    try:
        return random_model(shape, device, getattr(torch, name))
    except RuntimeError as error:
        raise parsing.UsageError(f"shape {shape}: {str(error).splitlines()[0]}") from None


def numbers_of(option: str, text: str, most: int | None = None) -> list[int]:
    """Whole numbers from 1 up, each once. Raises UsageError for others."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise parsing.UsageError(f"{option} is {text!r}; allowed: whole numbers, 1,2,4") from None
    for number in numbers:
        parsing.require_at_least(option, number, 1, most)
    parsing.require_different(option, numbers)
    return numbers


def _report(base: GenerationConfig, points: list[BenchPoint]) -> list[str]:
    if not points:
        return ["interrupted before the first size was measured"]
    first = points[0]
    same = {(p.model, p.prompt_length, p.batch): p for p in points if p.setting.partition(":")[0] == "none"}
    return [
        f"{first.dtype} on {first.device}, {counted(first.threads, 'thread')}, "
        f"{counted(first.repeats, 'run')} after a warm-up, {first.clock} seconds",
        f"decoding: {settings_text(base.to_dict())}",
        "",
        table(HEADER, [_row(p, same.get((p.model, p.prompt_length, p.batch))) for p in points]),
        "",
        *legend(point.setting for point in points),
        "",
        "full, partial: median forward and decode milliseconds of such a step of the whole batch; plan:",
        "median milliseconds of the policy's own work in a step after the first, which also admits the",
        "prompts; decision: that work over all seconds of a run, the first step's included. The entropies",
        "come with the softmax that every policy's confidence needs and are in decode; attention that a",
        "policy looks at slows the forward, not the plan. positions/s: all generated positions of the",
        "batch, those after an end-of-text among them, since prompts are random tokens, over the seconds of",
        "a run. x parallel: against no cache with the same commits, ratio of the medians. spread: (slowest",
        "- fastest) / median of the runs. With random weights, what a policy chooses is what it chooses for",
        "an untrained model.",
    ]


def _decisions(base: GenerationConfig, points: list[BenchPoint]) -> list[str]:
    """What deciding takes of a step and of a generation; settings that decide nothing are left out."""
    deciding = [point for point in points if point.setting.partition(":")[0] != "none"]
    if not deciding:
        return ["interrupted before the first size was measured"]
    first = deciding[0]
    return [
        f"{first.dtype} on {first.device}, {counted(first.threads, 'thread')}, batch {first.batch}, "
        f"{counted(first.repeats, 'run')} of {first.steps} steps after a warm-up, {first.clock} seconds; "
        f"{settings_text(base.to_dict())}",
        "",
        table(DECISION_HEADER, [_decision_row(point) for point in deciding], markdown=True),
        "",
        *legend((point.setting for point in deciding), markdown=True),
    ]


def _decision_row(point: BenchPoint) -> list[str]:
    step = point.full_seconds if point.partial_seconds is None else point.partial_seconds
    return [
        point.setting,
        str(point.num_layers),
        str(point.hidden_size),
        str(point.prompt_length),
        "all" if point.partial_rows is None else figure(point.partial_rows),
        _scaled(step, 1000, figure),
        _scaled(point.plan_seconds, 1000, figure),
        f"{_range(point.num_plans)}{_scaled(point.plan_low, 1000, figure)} to "
        f"{_scaled(point.plan_high, 1000, figure)}",
        str(point.num_plans),
        _share(point.decision_overhead),
        f"{_range(point.repeats)}{_share(point.overhead_low)} to {_share(point.overhead_high)}",
        str(point.repeats),
    ]


def _range(count: int | None) -> str:
    """What stands before a spread that is no quartiles, of too few values for them."""
    return "range " if count is not None and 1 < count < FEWEST_FOR_QUARTILES else ""


def _scaled(value: float | None, factor: float, shown: Callable[[float], str]) -> str:
    return "-" if value is None else shown(factor * value)


def _share(value: float | None) -> str:
    """With two decimals: what is judged here lies below one per cent."""
    return _scaled(value, 100, lambda share: f"{share:.2f} %")


def _row(point: BenchPoint, parallel: BenchPoint | None) -> list[str]:
    return [
        point.setting,
        str(point.num_layers),
        str(point.hidden_size),
        str(point.prompt_length),
        str(point.batch),
        _scaled(point.full_seconds, 1000, figure),
        _scaled(point.partial_seconds, 1000, figure),
        "-" if point.partial_rows is None else figure(point.partial_rows),
        _scaled(point.plan_seconds, 1000, figure),
        percent(point.decision_overhead),
        figure(point.positions_per_second),
        figure(parallel.seconds / point.seconds if parallel else None),
        "one measurement" if point.repeats == 1 else f"{point.spread:.0%}",
    ]
