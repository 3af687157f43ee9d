"""python -m analysis: measure KV-cache policies from a terminal or, through `main`, from a program."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from analysis.cli.errors import UsageError

if TYPE_CHECKING:
    from analysis.cli.parsing import Parser

INTERRUPTED = 1


def build_parser() -> "Parser":
    """Every command with its options. Loads torch."""
    from analysis.cli import (
        bench,
        compare,
        device_check,
        evaluate,
        export,
        floor,
        observe,
        policies,
        report,
        run,
        sweep,
        tune,
    )
    from analysis.cli.parsing import Parser

    parser = Parser(prog="python -m analysis", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND", parser_class=Parser)
    for module in (
        run, compare, sweep, tune, observe, bench, device_check, evaluate, floor, report, export, policies
    ):  # fmt: skip
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns its exit code.

    0; 2 for input that can't be used; 1 for anything else, a measurement that Ctrl-C ended among it,
    whether results so far were kept or there were none. A usage error is one line on
    standard error. Errors that are no fault of the input propagate.
    """
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has left; Python would complain of that once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = build_parser().parse_args(argv)
        # Loads torch, as the parser has by now.
        from analysis.environment import asked_by

        with asked_by(argv):
            return int(arguments.command(arguments))
    except SystemExit as stop:
        # argparse prints help and leaves; its errors are UsageError here.
        return int(stop.code or 0)
    except UsageError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except (OSError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _leave(*_: Any) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # An exception out of the middle of a library's import may be swallowed or turned into another.
        signal.signal(signal.SIGINT, _leave)
        build_parser()
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
