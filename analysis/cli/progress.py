"""A progress bar with the time left, on standard error of a terminal only."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


class Counter:
    """Counts what is done against a total; `done` were finished before. Use with `with`."""

    def __init__(self, label: str, total: int, done: int = 0) -> None:
        console = Console(stderr=True)
        columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        hidden = not console.is_terminal or total < 2
        self._bar = Progress(*columns, console=console, transient=True, disable=hidden)
        self._task = self._bar.add_task(label, total=total, completed=done)

    def __enter__(self) -> "Counter":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self) -> None:
        self._bar.advance(self._task)


def progress(items: Sequence[T], label: str) -> Iterator[T]:
    """The items one by one, showing how many are done and how long the rest will take."""
    with Counter(label, len(items)) as counter:
        for item in items:
            yield item
            counter.advance()
