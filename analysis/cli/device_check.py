"""device-check: steps of 8B models on random weights against a roofline, a line as each is measured."""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import torch

from analysis.bench_floor import WARM_UP, WINDOW, FloorPoint, measure_floor
from analysis.bench_roofline import H200, Device, ModelCost
from analysis.cli import parsing
from analysis.cli.bench import model_of, numbers_of
from analysis.environment import environment
from analysis.shapes import parse_shape
from core import LanguageModel

SHAPES = ("llada-8b", "dream-7b")
KNOWN = (H200,)
ROW = "{:<10} {:>7} {:>6} {:>9} {:>12} {:>9} {:>9} {:>9} {:>11} {:>9}"
HEADER = (
    "model", "prompt", "rows", "step ms", "products ms", "plan ms", "decision", "roofline", "x roofline",
    "full / it",
)  # fmt: skip


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser(
        "device-check", help="steps of 8B shapes against a GPU's roofline, in minutes"
    )
    parser.add_argument(
        "--shapes", nargs="+", default=list(SHAPES), help=f"random weights of shapes ({' '.join(SHAPES)})"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16 (auto)")
    parser.add_argument("--prompt-lengths", default="256,1024,2048", metavar="N,N,...", help="prompt tokens")
    parser.add_argument("--rows", default="32,64,96", metavar="N,N,...", help="rows of a partial step")
    parser.add_argument("--gen-length", type=int, default=256, help="tokens after the prompt (256)")
    parser.add_argument("--repeats", type=int, default=20, help="rounds after a warm-up (20)")
    parser.add_argument("--minutes", type=float, default=7.0, help="begin no further size after so long (7)")
    parser.add_argument(
        "--tflops", type=float, help="the device's peak in 10^12 operations a second, bfloat16"
    )
    parser.add_argument("--bandwidth", type=float, help="the device's memory bandwidth in GB a second")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="OUT.jsonl", help="every point as it comes"
    )
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Measure shape by shape; every line is printed and on disk before the next size begins.

    Returns 1 where the minutes or Ctrl-C ended it before all sizes were measured.
    """
    begun = time.monotonic()
    with parsing.checking():
        lengths, rows = (numbers_of("--prompt-lengths", arguments.prompt_lengths), row_counts(arguments))
        parsing.require_different("--shapes", arguments.shapes)
        if arguments.gen_length % WINDOW or arguments.gen_length <= WINDOW:
            raise parsing.UsageError(
                f"--gen-length is {arguments.gen_length}; allowed: a multiple of {WINDOW} above {WINDOW}"
            )
        most = arguments.gen_length - WINDOW - WARM_UP
        parsing.require_at_least("--repeats", arguments.repeats, 1, most)
        for option in ("minutes", "tflops", "bandwidth"):
            value = getattr(arguments, option)
            if value is not None and not 0 < value < 1e9:
                raise parsing.UsageError(f"--{option} is {value}; allowed: above 0 and below 1e9")
        if (arguments.tflops is None) != (arguments.bandwidth is None):
            raise parsing.UsageError(
                "--tflops and --bandwidth make a roofline together; give both or neither"
            )
        for shape in arguments.shapes:
            room = parse_shape(shape).max_positions - arguments.gen_length
            parsing.require_at_least(f"--prompt-lengths for {shape}", max(lengths), 1, room)
        parsing.check_writable(arguments.out)
    measured, wanted = 0, len(arguments.shapes) * len(lengths) * (len(rows) + 1)
    with ExitStack() as stack:
        # What it held is kept until there is something to write: a model may still be refused.
        file = stack.enter_context(arguments.out.open("a", encoding="utf-8"))
        try:
            for shape in arguments.shapes:
                # The weights of the one before must be gone: two 8B models may not fit.
                measured += _shape(arguments, shape, lengths, rows, begun, file, first=measured == 0)
        except KeyboardInterrupt:
            pass
    if measured < wanted:
        print(f"ended after {measured} of {wanted} sizes; {arguments.out} holds them")
    return 0 if measured == wanted else 1


def row_counts(arguments: argparse.Namespace) -> list[int]:
    """Rows of partial steps. Raises UsageError where a canvas is not longer, or no window fits."""
    rows = numbers_of("--rows", arguments.rows)
    shortest = min(numbers_of("--prompt-lengths", arguments.prompt_lengths)) + arguments.gen_length
    for count in rows:
        parsing.require_at_least("--rows", count, WINDOW, shortest - 1)
    return rows


def _shape(
    arguments: argparse.Namespace,
    shape: str,
    lengths: list[int],
    rows: list[int],
    begun: float,
    file: TextIO,
    first: bool,
) -> int:
    """Measure one shape while there is time; returns how many points were written."""
    with parsing.checking():
        model = model_of(arguments, shape)
    device = roofline_of(arguments, model)
    if first:
        machine = environment(model)
        if arguments.out.is_file():
            file.truncate(0)
        _keep(
            file,
            {
                "schema": 1,
                "kind": "device-check",
                "environment": machine,
                "roofline": device and vars(device),
            },
        )
        print(f"{arguments.repeats} rounds after a warm-up on {model.device}, {WINDOW} targets a step")
        print(f"roofline: {device.name if device else 'not known; give --tflops and --bandwidth'}")
        print(ROW.format(*HEADER), flush=True)
    count = 0
    for length in lengths:
        full: FloorPoint | None = None
        for point in _points(arguments, model, length, rows, begun):
            full = full or point
            least = None
            if device is not None:
                cost = ModelCost.of(model.spec, model.dtype.itemsize)
                least = cost.seconds(device, point.rows, point.targets, point.length)
            _keep(file, {**vars(point), "prompt": length, "roofline_seconds": least})
            print(_line(shape, length, point, full, least), flush=True)
            count += 1
    return count


def _points(
    arguments: argparse.Namespace, model: LanguageModel, length: int, rows: list[int], begun: float
) -> Iterator[FloorPoint]:
    """The full step, then the partial ones; none begins after the minutes are over."""
    canvas = length + arguments.gen_length
    for count in (canvas, *rows):
        if time.monotonic() - begun > 60 * arguments.minutes:
            return
        yield from measure_floor(
            model, canvas, [count], repeats=arguments.repeats, gen_length=arguments.gen_length
        )


def roofline_of(arguments: argparse.Namespace, model: LanguageModel) -> Device | None:
    """The device's peaks: as given, else those of a known GPU, else None."""
    if arguments.tflops is not None:
        return Device("as given", arguments.tflops * 1e12, arguments.bandwidth * 1e9, memory=0.0)
    if model.device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(model.device)
    return next((device for device in KNOWN if device.name in name), None)


def _keep(file: TextIO, record: dict[str, Any]) -> None:
    file.write(json.dumps(record) + "\n")
    file.flush()


def _line(shape: str, length: int, point: FloorPoint, full: FloorPoint, least: float | None) -> str:
    return ROW.format(
        shape.partition(":")[0],
        length,
        "full" if point is full else point.rows,
        f"{1000 * point.step_seconds:.2f}",
        f"{1000 * point.floor_seconds:.2f}",
        f"{1000 * point.parts['plan']:.3f}",
        f"{point.plan_share:.2%}",
        "-" if least is None else f"{1000 * least:.2f}",
        "-" if least is None else f"{point.step_seconds / least:.2f}",
        f"{full.step_seconds / point.step_seconds:.2f}",
    )
