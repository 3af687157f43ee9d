"""What tells a mistake in the input from a fault of ours. Imports nothing slow: `main` needs it first."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class UsageError(ValueError):
    """Input that a command can't work with; its text is the one line the user reads."""


@contextmanager
def checking() -> Iterator[None]:
    """The part of a command that checks its input: any ValueError in it is a UsageError.

    Outside of it a ValueError is a fault of ours, and is told with its traceback.
    """
    try:
        yield
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error


@dataclass
class Cut:
    """Whether a measurement ended before its time, and what fault of the model ended it if not Ctrl-C."""

    short: bool = False
    fault: FloatingPointError | None = None

    def code(self) -> int:
        """The exit code, once what there is has been told; tells the fault."""
        if self.fault is not None:
            print(f"error: {self.fault}", file=sys.stderr)
        return 1 if self.short else 0


@contextmanager
def cutting() -> Iterator[Cut]:
    """A measurement that Ctrl-C, or logits that are not finite, may cut short: what is finished is kept."""
    cut = Cut()
    try:
        yield cut
    except KeyboardInterrupt:
        cut.short = True
    except FloatingPointError as error:
        cut.short, cut.fault = True, error


@contextmanager
def on_prompt(index: int) -> Iterator[None]:
    """Let a fault of the model name the prompt that it met, counted from 0."""
    try:
        yield
    except FloatingPointError as error:
        raise FloatingPointError(f"prompt {index}: {error}") from None
