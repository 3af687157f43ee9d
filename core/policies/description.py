"""What a policy's docstring says, by part: the text behind cards, tables and the command line."""

import inspect
import re
from dataclasses import dataclass, fields

from core.policies.base import CachePolicy


@dataclass(frozen=True)
class Description:
    """One policy in words, each part one line of plain text.

    summary: what it does. decides: what it bases a step on. recomputes: which rows, with the symbols of
    `core`. cost: of the decision, a step. source: paper and section. differs: where this form is not the
    released one, and why.
    """

    summary: str
    decides: str
    recomputes: str
    cost: str
    source: str
    differs: str


def describe(policy: type[CachePolicy]) -> Description:
    """Read the parts off the docstring; ValueError names a part that it lacks or has twice."""
    parts = [field.name.capitalize() for field in fields(Description) if field.name != "summary"]
    text = inspect.cleandoc(policy.__doc__ or "")
    pieces = re.split(rf"^({'|'.join(parts)}): ", text, flags=re.MULTILINE)
    found = ["summary", *(label.lower() for label in pieces[1::2])]
    wanted = [field.name for field in fields(Description)]
    if found != wanted or not pieces[0].strip():
        raise ValueError(f"docstring of {policy.__name__} has the parts {found}; allowed: {wanted}")
    plain = [" ".join(piece.split()) for piece in (pieces[0], *pieces[2::2])]
    return Description(*plain)
