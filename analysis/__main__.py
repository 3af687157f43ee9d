"""python -m analysis: measure KV-cache policies from a terminal or, through `main`, from a program."""

import sys
from collections.abc import Sequence

from analysis.cli import bench, compare, evaluate, floor, policies, report, run, sweep, tune
from analysis.cli.parsing import Parser

COMMANDS = (run, compare, sweep, tune, bench, evaluate, floor, report, policies)


def build_parser() -> Parser:
    """Every command with its options."""
    parser = Parser(prog="python -m analysis", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND", parser_class=Parser)
    for module in COMMANDS:
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns its exit code: 0, 2 for input that can't be used, 1 for anything else.

    A usage error is one line on standard error. Errors that are no fault of the input propagate.
    """
    try:
        arguments = build_parser().parse_args(argv)
        code = arguments.command(arguments)
    except SystemExit as stop:
        # argparse prints help and leaves; its errors are UsageError here.
        return int(stop.code or 0)
    except ValueError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 1
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
