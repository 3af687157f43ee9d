"""How a command must refuse what it can't work with: exit code 2 and one line, nothing else said."""

from collections.abc import Callable, Sequence

import pytest


def refusal(
    main: Callable[[Sequence[str]], int], arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> str:
    """Runs a command that must refuse; returns the line."""
    capsys.readouterr()
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err
