"""The papers' symbols where a setting's own name belongs: refused with the name that they stand for."""

from collections.abc import Iterable, Sequence
from typing import Any

from analysis.cli.errors import UsageError
from analysis.settings import Setting, parse_settings

# As README's words have them. No name resembles a symbol, so that a search for a misspelt one finds nothing.
SYMBOLS = {"tau": "entropy_threshold", "k": "recent"}


def given_settings(texts: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE texts as a dictionary. Raises ValueError for another form, UsageError for a symbol."""
    settings = parse_settings(texts)
    refuse_symbols(settings)
    return settings


def given_setting(text: str) -> Setting:
    """Read name or name:key=value,key=value. Raises ValueError for a bad one, UsageError for a symbol."""
    given_settings([part for part in text.partition(":")[2].split(",") if part])
    return Setting.parse(text)


def refuse_symbols(names: Iterable[str]) -> None:
    """Raise UsageError for the first symbol among names of settings."""
    for name in names:
        if name in SYMBOLS:
            own = SYMBOLS[name]
            raise UsageError(f"setting is {name!r}, which policy entropy calls {own}; allowed: {own}=VALUE")
