"""Command line: train, evaluate, look at the data, write the held-out problems."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import torch

from core.training.recipe import Recipe

DEFAULTS = {field.name: field.default for field in fields(Recipe)}


def train(options: argparse.Namespace) -> None:
    from core.training.trainer import Trainer

    if options.threads:
        torch.set_num_threads(options.threads)
    chosen = {name: getattr(options, name) for name in DEFAULTS}
    dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[options.dtype]
    Trainer(Recipe(**chosen), options.out, options.device, dtype, not options.no_compile).run()


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m core.training", description=__doc__)
    commands = root.add_subparsers(dest="command", required=True)

    one = commands.add_parser("train", help="train from scratch, or go on from OUT/checkpoint.pt")
    one.add_argument("--out", type=Path, required=True, help="folder of checkpoint, log and exported model")
    one.add_argument("--device", default="cpu")
    one.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    one.add_argument("--threads", type=int, default=0, help="CPU threads; 0 leaves torch's choice")
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
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
