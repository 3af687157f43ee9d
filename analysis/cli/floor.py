"""floor: steps beside their own matrix products, part by part, and none, prefix, dual beside plain loops."""

import argparse
import json
from pathlib import Path

import torch

from analysis.bench import Place, random_prompts
from analysis.bench_floor import CLOCKS, PARTS, PRODUCTS, FloorPoint, measure_floor
from analysis.bench_memory import measure_memory
from analysis.bench_plain import PlainPoint, measure_plain
from analysis.cli import parsing
from analysis.cli.bench import model_of, numbers_of
from analysis.cli.text import counted, percent, table
from analysis.environment import environment
from core import GenerationConfig, LanguageModel

DEFAULT_SHAPE = "small:hidden_size=512,num_layers=12"


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser(
        "floor", help="steps beside their own matrix products, caches beside plain loops"
    )
    parser.add_argument("--model", help="embedded, a folder, or a hub id, instead of a shape")
    parser.add_argument("--shape", default=DEFAULT_SHAPE, help=f"random weights of a shape ({DEFAULT_SHAPE})")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 (auto)")
    parser.add_argument("--length", type=int, default=1024, help="canvas positions (1024)")
    parser.add_argument("--rows", default="32,64,128,1024", metavar="N,N,...", help="rows a step recomputes")
    parser.add_argument("--batch", type=int, default=1, help="sequences at a time (1)")
    parser.add_argument("--repeats", type=int, default=20, help="rounds after a warm-up (20)")
    parser.add_argument("--threads", type=int, help="threads of a product (all)")
    parser.add_argument(
        "--clock", choices=tuple(CLOCKS), default="wall", help="wall or processor seconds (wall)"
    )
    parser.add_argument("--plain", type=int, metavar="N", help="also time the plain loops, N pairs a cache")
    parser.add_argument("--memory", action="store_true", help="also the peak above the weights")
    parser.add_argument("--json", type=Path, metavar="OUT", help="every point")
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Measure row count by row count and print a table."""
    with parsing.checking():
        for name in ("batch", "repeats", "threads", "plain"):
            value = getattr(arguments, name)
            if value is not None:
                parsing.require_at_least(f"--{name}", value, 1)
        rows = numbers_of("--rows", arguments.rows)
        parsing.check_writable(arguments.json)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    # The measurements check their sizes themselves, as they start.
    with parsing.checking():
        model = model_of(arguments, None if arguments.model else arguments.shape)
        # Before anything else has grown the heap.
        memory = measure_memory(model, arguments.length) if arguments.memory else None
        points = list(
            measure_floor(
                model,
                arguments.length,
                rows,
                batch=arguments.batch,
                repeats=arguments.repeats,
                gen_length=min(256, arguments.length // 2),
                clock=arguments.clock,
            )
        )
        loops = _plain(arguments, model) if arguments.plain else []
    if arguments.json is not None:
        content = {"schema": 1, "kind": "floor", "environment": environment(model)}
        content |= {"points": [vars(point) for point in points], "plain": [vars(loop) for loop in loops]}
        content["memory"] = vars(memory) if memory else None
        arguments.json.write_text(json.dumps(content), encoding="utf-8")
    print("\n".join(_report(points, loops)))
    if memory is not None:
        print(
            f"\npeak above the weights {memory.peak_bytes / 1e6:.0f} MB, K/V {memory.kv_bytes / 1e6:.0f} MB, "
            f"one layer of a full pass {memory.layer_bytes / 1e6:.0f} MB: ratio {memory.ratio:.2f}"
        )
    return 0


def _plain(arguments: argparse.Namespace, model: LanguageModel) -> list[PlainPoint]:
    config = GenerationConfig(gen_length=64, block_length=32, unmask="quota", steps=16)
    prompt = random_prompts(model, Place(arguments.length - 64, 1), seed=0)[0]
    return list(measure_plain(model, prompt, config, repeats=arguments.plain, clock=arguments.clock))


def _report(points: list[FloorPoint], loops: list[PlainPoint]) -> list[str]:
    first = points[0]
    lines = [
        f"{first.model}, {first.dtype} on {first.device}, {counted(first.threads, 'thread')}, "
        f"canvas {first.length}, batch {first.batch}, {counted(first.repeats, 'round')}, "
        f"{first.clock} milliseconds",
        "",
        table(
            ("rows", "step", "products", "ratio", "quartiles", *PARTS, "rest", "decision"),
            [_row(point) for point in points],
        ),
        "",
        "products alone, of which:",
        table(
            ("rows", *PRODUCTS),
            [[str(p.rows), *(f"{1000 * p.products[name]:.2f}" for name in PRODUCTS)] for p in points],
        ),
    ]
    if loops:
        lines += ["", f"plain loop against engine, {loops[0].gen_length} tokens in {loops[0].steps} steps:"]
        header = ("cache", "plain s", "engine s", "ratio", "quartiles", "equal tokens")
        lines.append(table(header, [_loop_row(loop) for loop in loops]))
    return lines


def _row(point: FloorPoint) -> list[str]:
    return [
        str(point.rows),
        f"{1000 * point.step_seconds:.2f}",
        f"{1000 * point.floor_seconds:.2f}",
        f"{point.ratio:.2f}",
        _quartiles(point),
        *(f"{1000 * point.parts[name]:.2f}" for name in (*PARTS, "rest")),
        f"{point.plan_share:.2%}",
    ]


def _loop_row(loop: PlainPoint) -> list[str]:
    seconds = f"{loop.plain_seconds:.2f}", f"{loop.engine_seconds:.2f}"
    return [loop.kind, *seconds, f"{loop.ratio:.2f}", _quartiles(loop), percent(loop.equal)]


def _quartiles(point: FloorPoint | PlainPoint) -> str:
    """Those of the ratio; one round has none."""
    if point.repeats == 1:
        return "one measurement"
    return f"{point.ratio_low:.2f}-{point.ratio_high:.2f}"
