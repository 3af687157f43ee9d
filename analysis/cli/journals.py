"""The journal that a command writes to, opened or refused."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from analysis.cli.parsing import checking, warn
from analysis.journal import Journal, purpose
from analysis.prompts import Prompt
from analysis.wording import counted
from core import GenerationConfig, LanguageModel

# What seconds depend on beside the measurement itself.
TIMING = ("processor", "threads", "workers")


def kept_lines(path: Path | None, kept: int, total: int) -> list[str]:
    """What of a measurement was in its file before, so that old seconds aren't taken for new ones."""
    if path is None or not kept:
        return []
    if kept == total:
        return [f"all {counted(total, 'run')} were in {path.name} already; nothing was measured"]
    return [f"{kept} of {counted(total, 'run')} were in {path.name} already"]


@contextmanager
def opened_journal(
    path: Path | None,
    model: LanguageModel,
    prompts: Sequence[Prompt],
    base: GenerationConfig,
    machine: dict[str, Any],
) -> Iterator[Journal]:
    """The journal at a path, or one that keeps nothing for None. UsageError for another measurement's.

    Warns where the seconds in the file were taken otherwise than those to come.
    """
    with ExitStack() as stack:
        with checking():
            journal = stack.enter_context(Journal(path, purpose(model, prompts, base), machine))
        if path is not None and journal.begun_on is not None:
            differ = [name for name in TIMING if journal.begun_on.get(name) != machine[name]]
            if differ:
                text = f"{path.name} was begun with another number or kind of {', '.join(differ)}"
                warn(f"{text}; its seconds do not compare with new ones")
        yield journal
