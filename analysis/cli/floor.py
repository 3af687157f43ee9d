"""floor: steps beside their own matrix products, part by part, and none, prefix, dual beside plain loops."""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from analysis.bench import Place, random_prompts
from analysis.bench_floor import PARTS, PRODUCTS, WARM_UP, WINDOW, FloorPoint, measure_floor
from analysis.bench_memory import measure_memory
from analysis.bench_plain import PlainPoint, measure_plain
from analysis.cli import parsing
from analysis.cli.bench import MOST_BATCH, model_of, numbers_of
from analysis.cli.text import counted, percent, table, table_line
from analysis.environment import environment
from analysis.spread import FEWEST_FOR_QUARTILES
from core import GenerationConfig, LanguageModel
from core.timing import CLOCKS

DEFAULT_SHAPE = "small:hidden_size=512,num_layers=12"
DEFAULT_ROWS = (32, 64, 128)
MOST_GENERATED = 256
MOST_PAIRS = 1000
HEADER = ("rows", "step", "products", "ratio", "quartiles", *PARTS, "rest", "decision")
# A row is told before those below it are known.
WIDTHS = [max(len(name), 15 if name == "quartiles" else 8) for name in HEADER]


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser(
        "floor", help="steps beside their own matrix products, caches beside plain loops"
    )
    parser.add_argument("--model", help="embedded, a folder, or a hub id, instead of a shape")
    parser.add_argument("--shape", default=DEFAULT_SHAPE, help=f"random weights of a shape ({DEFAULT_SHAPE})")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 (auto)")
    parser.add_argument("--length", type=int, default=1024, help="canvas positions (1024)")
    parser.add_argument(
        "--rows", metavar="N,N,...", help=f"rows a step recomputes, {WINDOW} to --length (32,64,128 and all)"
    )
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
    """Measure row count by row count, each told as it comes; what is finished is kept whatever happens."""
    with parsing.checking():
        rows = _sizes(arguments)
        parsing.check_writable(arguments.json)
        if arguments.threads is not None:
            torch.set_num_threads(arguments.threads)
        model = model_of(arguments, None if arguments.model else arguments.shape)
        room = model.spec.max_positions
        if arguments.length > room:
            raise parsing.UsageError(f"--length is {arguments.length}; {model.ref} has {room} positions")
        if arguments.plain and model.spec.logit_shift:
            raise parsing.UsageError("--plain: the plain loops know no model whose logits are shifted")
    # Before anything else has grown the heap.
    memory = measure_memory(model, arguments.length) if arguments.memory else None
    points: list[FloorPoint] = []
    loops: list[PlainPoint] = []
    complete = False
    try:
        _tell(_heading(arguments, model))
        for point in measure_floor(
            model,
            arguments.length,
            rows,
            batch=arguments.batch,
            repeats=arguments.repeats,
            gen_length=generated(arguments.length),
            clock=arguments.clock,
        ):
            points.append(point)
            _tell([table_line(_row(point), WIDTHS)])
        for loop in _plain(arguments, model) if arguments.plain else ():
            loops.append(loop)
        complete = True
    except KeyboardInterrupt:
        pass
    finally:
        if arguments.json is not None and points:
            content = {"schema": 1, "kind": "floor", "complete": complete}
            content |= {"environment": environment(model), "memory": vars(memory) if memory else None}
            content |= {"points": [vars(point) for point in points], "plain": [vars(loop) for loop in loops]}
            parsing.write_whole(arguments.json, json.dumps(content))
    _tell(_report(points, loops))
    if memory is not None:
        print(
            f"\npeak above the weights {memory.peak_bytes / 1e6:.0f} MB, K/V {memory.kv_bytes / 1e6:.0f} MB, "
            f"one layer of a full pass {memory.layer_bytes / 1e6:.0f} MB: ratio {memory.ratio:.2f}"
        )
    if not complete:
        print("\ninterrupted: not everything asked for was measured")
    return 0 if complete else 1


def _sizes(arguments: argparse.Namespace) -> list[int]:
    """The row counts to measure. Raises UsageError for a size that can't be, before a model is made."""
    most = MOST_GENERATED - WINDOW - WARM_UP
    limits = {"batch": MOST_BATCH, "repeats": most, "threads": parsing.MOST_THREADS, "plain": MOST_PAIRS}
    for name, limit in limits.items():
        value = getattr(arguments, name)
        if value is not None:
            parsing.require_at_least(f"--{name}", value, 1, limit)
    # A step a round, each committing a token, behind which a whole window of masks is left.
    needed = -(-(arguments.repeats + WARM_UP + WINDOW) // WINDOW) * WINDOW
    if arguments.length < 2 * needed:
        allowed = f"at least {2 * needed} for --repeats {arguments.repeats}"
        raise parsing.UsageError(f"--length is {arguments.length}; allowed: {allowed}")
    if arguments.rows is None:
        return sorted({rows for rows in (*DEFAULT_ROWS, arguments.length) if rows <= arguments.length})
    counts = numbers_of("--rows", arguments.rows)
    for count in counts:
        if not WINDOW <= count <= arguments.length:
            allowed = f"{WINDOW} to --length {arguments.length}"
            raise parsing.UsageError(f"--rows is {count}; allowed: {allowed}")
    return counts


def generated(length: int) -> int:
    """Tokens to generate on a canvas of so many positions, whole windows."""
    return min(MOST_GENERATED, length // 2 // WINDOW * WINDOW)


def _tell(lines: Sequence[str]) -> None:
    print("\n".join(lines), flush=True)


def _plain(arguments: argparse.Namespace, model: LanguageModel) -> Iterator[PlainPoint]:
    config = GenerationConfig(gen_length=64, block_length=32, unmask="quota", steps=16)
    prompt = random_prompts(model, Place(arguments.length - 64, 1), seed=0)[0]
    return measure_plain(model, prompt, config, repeats=arguments.plain, clock=arguments.clock)


def _heading(arguments: argparse.Namespace, model: LanguageModel) -> list[str]:
    facts = model.facts()
    return [
        f"{facts['ref']}, {facts['dtype']} on {facts['device']}, "
        f"{counted(torch.get_num_threads(), 'thread')}, canvas {arguments.length}, batch {arguments.batch}, "
        f"{counted(arguments.repeats, 'round')}, {arguments.clock} milliseconds",
        "",
        table_line(HEADER, WIDTHS),
        table_line(["-" * width for width in WIDTHS], WIDTHS),
    ]


def _report(points: list[FloorPoint], loops: list[PlainPoint]) -> list[str]:
    """What the table of steps does not say; it has been told row by row."""
    rows = [[str(p.rows), *(f"{1000 * p.products[name]:.2f}" for name in PRODUCTS)] for p in points]
    lines = ["", "products alone, of which:", table(("rows", *PRODUCTS), rows)] if rows else []
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
    """Those of the ratio, of fewer than four rounds their range; one round has neither."""
    if point.repeats == 1:
        return "one measurement"
    few = "range " if point.repeats < FEWEST_FOR_QUARTILES else ""
    return f"{few}{point.ratio_low:.2f}-{point.ratio_high:.2f}"
