"""A progress bar with the time left, on standard error of a terminal only."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def progress(items: Sequence[T], label: str) -> Iterator[T]:
    """The items one by one, showing how many are done and how long the rest will take."""
    console = Console(stderr=True)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not console.is_terminal or len(items) < 2
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        yield from bar.track(items, total=len(items))
