"""Plain tables for standard output."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.settings import setting_texts

NOT_MEASURED = "not measured"


def figure(value: float | None, digits: int = 3) -> str:
    """A number in `digits` significant digits, or that it was not measured."""
    if value is None or value != value:
        return NOT_MEASURED
    if value == round(value) and abs(value) < 1e6:
        return str(round(value))
    return f"{value:.{digits}g}" if abs(value) < 1e3 else f"{value:.0f}"


def percent(value: float | None) -> str:
    return NOT_MEASURED if value is None or value != value else f"{value:.1%}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns as wide as their content; the first `left` are words, in the others numbers line up."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def settings_text(config: Mapping[str, Any]) -> str:
    """A config as one would write it after --set."""
    return " ".join(setting_texts(config)) or "no settings"
