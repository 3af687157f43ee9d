"""Files that are whole at any time, and that one process writes at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, renamed onto it on success and removed on failure."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: Path | None) -> None:
    """Raise ValueError, before any work, where a result could not be written; changes no file."""
    if path is None:
        return
    # Of a link, what it points to: a link to nothing is not ours to delete.
    target = Path(os.path.realpath(path))
    try:
        existed = target.exists()
        with target.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise ValueError(f"can't write {path}: {error.strerror}") from None
    if not existed:
        target.unlink()


def hold(file: IO[bytes] | int, name: object) -> None:
    """Keep an open file or folder from others who hold it, until it is closed or this process ends.

    Raises ValueError, telling its `name`, where another process has it.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"{name} is being written by another process; choose another") from None
    except OSError:
        # A file system without locks: as good as before there were any.
        return
