"""Files that results go to: looked at before any work, and whole whatever happens to their writer."""

import os
import shutil
from pathlib import Path

from analysis.cli.errors import UsageError
from core.files import replacing


def check_apart(*paths: Path | None) -> None:
    """Raise UsageError where one file is named for two purposes: the second would overwrite the first."""
    # Not Path.resolve, which knows no sentence for a link that leads to itself.
    named = [os.path.realpath(path) for path in paths if path is not None]
    for path in named:
        if named.count(path) > 1:
            raise UsageError(f"{path} is given twice; a result needs a file of its own")


def check_folder(path: Path) -> None:
    """Make the folder that results will go to. Raises UsageError where there can't be one."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write to a folder {path}: {error.strerror}") from None


def write_whole(path: Path, text: str) -> None:
    """Write a result; what stood there before is whole until the new one is."""
    # Of a link, what it points to.
    target = Path(os.path.realpath(path))
    if (target.exists() and not target.is_file()) or not os.access(target.parent, os.W_OK):
        # A device, or a folder that takes no second file.
        target.write_text(text, encoding="utf-8")
        return
    with replacing(target) as partial:
        partial.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, partial)
