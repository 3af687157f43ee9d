"""Plain tables for standard output, and the lines around them that say what their numbers hold for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from analysis.settings import Setting, setting_texts
from analysis.wording import NOT_MEASURED, counted, figure, own_order, percent
from core import GenerationConfig, LanguageModel

__all__ = [
    "NOT_MEASURED",
    "counted",
    "figure",
    "heading",
    "legend",
    "percent",
    "settings_text",
    "table",
    "table_line",
]


def heading(model: LanguageModel, base: GenerationConfig, threads: str | None = None) -> list[str]:
    """Model, machine and decoding of a measurement; threads: those of this process unless given."""
    facts = model.facts()
    return [
        f"model {facts['ref']}: {facts['family']}, {facts['num_parameters'] / 1e6:.2f} M parameters, "
        f"{facts['dtype']} on {facts['device']}, {threads or counted(torch.get_num_threads(), 'thread')}, "
        "batch 1",
        f"decoding: {settings_text(base.to_dict())}",
    ]


def legend(labels: Iterable[str], markdown: bool = False) -> list[str]:
    """Every setting of the rows with these labels, defaults included: a line each.

    markdown: a line for all, of the defaults alone; a row's label holds what differs from them.
    """
    if markdown:
        policies = dict.fromkeys(Setting.parse(label).policy for label in labels)
        defaults = ", ".join(f"`{Setting(policy).described}`" for policy in policies)
        return [f"Settings that a row does not name are at their defaults: {defaults}."]
    named = {label: _whole(Setting.parse(label)) for label in labels}
    width = max(map(len, named), default=0)
    return ["all settings of each row:", *(f"  {name.ljust(width)}  {text}" for name, text in named.items())]


def _whole(setting: Setting) -> str:
    order = own_order(setting.policy, setting.make_policy().config.to_dict())
    return f"{setting.described}; {order}" if order else setting.described


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, markdown: bool = False) -> str:
    """Columns as wide as their content; the first `left` are words, in the others numbers line up.

    markdown: a table to paste into a document instead.
    """
    if markdown:
        rules = ["---" if column < left else "---:" for column in range(len(header))]
        return "\n".join(f"| {' | '.join(row)} |" for row in (header, rules, *rows))
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [table_line(row, widths, left) for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def table_line(row: Sequence[str], widths: Sequence[int], left: int = 1) -> str:
    """One line of a table whose columns are so wide."""
    padded = [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def settings_text(config: Mapping[str, Any]) -> str:
    """A config as one would write it after --set."""
    return " ".join(setting_texts(config)) or "no settings"
