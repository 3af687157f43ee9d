"""What tells a mistake in the input from a fault of ours. Imports nothing slow: `main` needs it first."""

from collections.abc import Iterator
from contextlib import contextmanager


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
