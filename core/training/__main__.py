"""Command line: train, evaluate, look at the data, write the held-out problems."""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from random import Random

import torch

from core.command_line import Parser
from core.files import check_writable
from core.training.problems import MOST_PROBLEMS, families_named, held_out, write_problems
from core.training.recipe import Recipe, draw_lesson

DEFAULTS = {field.name: field.default for field in fields(Recipe)}


Check = tuple[Callable[[float], bool], str]
COUNT: Check = (lambda value: 1 <= value <= 2**20, "from 1 to 1048576")
RATE: Check = (lambda value: 0 <= value < math.inf, "a finite number from 0 up")
# What an option may be, whichever command it belongs to; what a model or a config refuses is left to them.
ALLOWED: dict[str, Check] = {
    "n": (lambda value: 1 <= value <= MOST_PROBLEMS, f"from 1 to {MOST_PROBLEMS}"),
    "shots": (lambda value: 0 <= value <= 1000, "from 0 to 1000"),
    "seed": (lambda value: 0 <= value < 2**32, "from 0 to 2**32 - 1"),
    # Of more threads, OpenMP ends the process without a word.
    "threads": (lambda value: 0 <= value <= 1024, "from 0 to 1024"),
    "progress": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "minutes": (lambda value: value > 0, "a number above 0"),
    "tokens": (lambda value: 1 <= value < 2**53, "at least 1"),
    **dict.fromkeys(("matrix_lr", "vector_lr", "weight_decay", "warmup_steps"), RATE),
    "max_attention_logit": (lambda value: value > 0, "a number above 0"),
    **dict.fromkeys(
        ("hidden_size", "intermediate_size", "num_layers", "num_heads", "vocab_size", "block_length"), COUNT
    ),
}


def check(options: argparse.Namespace) -> None:
    """Raise ValueError for the first option that is out of its range or names something twice."""
    if "\0" in str(getattr(options, "out", "")):
        raise ValueError("out holds a zero byte; allowed: a name that a file can have")
    for name, (holds, allowed) in ALLOWED.items():
        value = getattr(options, name, None)
        if value is not None and not holds(value):
            raise ValueError(f"{name} is {value}; allowed: {allowed}")
    families = getattr(options, "family", [])
    for family in families:
        if families.count(family) > 1:
            raise ValueError(f"family names {family} twice")


def train(options: argparse.Namespace) -> None:
    from core.training.trainer import Trainer

    if options.threads:
        torch.set_num_threads(options.threads)
    chosen = {name: getattr(options, name) for name in DEFAULTS}
    dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[options.dtype]
    Trainer(
        Recipe(**chosen), options.out, options.device, dtype, not options.no_compile, options.minutes
    ).run()


def evaluate(options: argparse.Namespace) -> None:
    from core.models.loading import load_model
    from core.training.evaluate import table

    if options.threads:
        torch.set_num_threads(options.threads)
    families = families_named(options.family)
    model = load_model(options.model, dtype=options.dtype)
    for line in table(model, families, options.n, options.shots, options.seed, options.gen_length):
        print(line, flush=True)


def data(options: argparse.Namespace) -> None:
    rng = Random(options.seed)
    for _ in range(options.n):
        lesson = draw_lesson(rng, options.progress)
        for example in lesson.examples:
            print(f"EXAMPLE  {example.prompt}\n{example.example_response}")
        print(f"PROMPT   {lesson.problem.prompt}\n{lesson.problem.example_response}\n")


def problems(options: argparse.Namespace) -> None:
    families = families_named(options.family)
    check_writable(options.out)
    found = [p for name in families for p in held_out(name, options.n, options.seed, options.shots)]
    write_problems(options.out, found)


def parser() -> argparse.ArgumentParser:
    root = Parser(prog="python -m core.training", description=__doc__)
    commands = root.add_subparsers(dest="command", required=True, parser_class=Parser)

    one = commands.add_parser("train", help="train from scratch, or go on from OUT/checkpoint.pt")
    one.add_argument("--out", type=Path, required=True, help="folder of checkpoint, log and exported model")
    one.add_argument("--device", default="cpu")
    one.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    one.add_argument("--threads", type=int, default=0, help="CPU threads; 0 leaves torch's choice")
    one.add_argument("--minutes", type=float, default=math.inf, help="stop, decayed, after so much time")
    one.add_argument("--no-compile", action="store_true", help="do not compile the layers")
    for name, default in DEFAULTS.items():
        required = name == "tokens"
        kind = int if required else type(default)
        one.add_argument(
            f"--{name.replace('_', '-')}",
            type=kind,
            required=required,
            default=None if required else default,
        )
    one.set_defaults(run=train)

    two = commands.add_parser("evaluate", help="accuracy on held-out problems, as in the model card")
    two.add_argument("--model", default="embedded", help="embedded, or a folder such as train's OUT")
    two.add_argument("--family", action="append", default=[], help="may be repeated; all by default")
    two.add_argument("--n", type=int, default=500, help="problems a family")
    two.add_argument("--shots", type=int, default=0, help="worked examples before each question")
    two.add_argument("--gen-length", type=int, default=128, help="tokens to generate, a multiple of 32")
    two.add_argument("--seed", type=int, default=0)
    two.add_argument("--dtype", default="auto")
    two.add_argument("--threads", type=int, default=0)
    two.set_defaults(run=evaluate)

    three = commands.add_parser("data", help="print what training sees")
    three.add_argument("--n", type=int, default=10)
    three.add_argument("--seed", type=int, default=0)
    three.add_argument("--progress", type=float, default=1.0, help="share of the run done, 0 to 1")
    three.set_defaults(run=data)

    four = commands.add_parser("problems", help="write held-out problems as JSON lines")
    four.add_argument("--out", type=Path, required=True)
    four.add_argument("--family", action="append", default=[], help="may be repeated; all by default")
    four.add_argument("--n", type=int, default=100, help="problems a family")
    four.add_argument("--shots", type=int, default=0, help="worked examples before each question")
    four.add_argument("--seed", type=int, default=0)
    four.set_defaults(run=problems)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        options = parser().parse_args(arguments)
        check(options)
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has left; Python would complain of that once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        said = error if error.filename is None else f"{error.filename}: {error.strerror}"
        print(f"error: {said}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
