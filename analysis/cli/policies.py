"""policies: the registry of cache policies as a table, or one of them in full."""

import argparse
import inspect
import textwrap
from typing import Any

from analysis.cli import parsing
from analysis.cli.text import table
from analysis.settings import setting_texts
from core import POLICIES, CachePolicy, create_policy
from core.policies import description


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("policies", help="list the cache policies, or describe one")
    parser.add_argument("policy", nargs="?", metavar="NAME", help="describe this one and its settings")
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    if arguments.policy is None:
        print(table(("policy", "settings and their defaults", "lossless at"), _rows(), left=3))
        print("\nlossless at: settings whose tokens equal those without a cache; - where there are none")
        for name, policy in POLICIES.items():
            print("\n".join(["", *says(name, policy)]))
        return 0
    # Creating it refuses an unknown name in the registry's own words.
    with parsing.checking():
        chosen = type(create_policy(arguments.policy))
    print("\n".join(describe(chosen)))
    return 0


def describe(policy: type[CachePolicy]) -> list[str]:
    """Everything a policy says of itself."""
    defaults = setting_texts(policy.Config().to_dict())
    lines = [f"{policy.name}: {' '.join(defaults) or 'no settings'}", "", inspect.getdoc(policy) or ""]
    if defaults:
        lines += ["", inspect.getdoc(policy.Config) or ""]
    lines += ["", f"reasons it gives for a step: {', '.join(policy.REASONS)}"]
    if policy.layerwise:
        lines.append("layerwise: recomputes other positions in other layers")
    if policy.needs_blocks:
        lines.append("works block by block: a sliding window is refused")
    return lines


def says(name: str, policy: type[CachePolicy]) -> list[str]:
    """What decides, what is recomputed, what deciding costs and where it is from, a labelled line each."""
    words = description.describe(policy)
    lines = [f"{name}: {words.summary}"]
    for label in ("decides", "recomputes", "cost", "source"):
        text = getattr(words, label)
        lines += textwrap.wrap(text, 110, initial_indent=f"  {label:<12}", subsequent_indent=" " * 14)
    return lines


def _rows() -> list[list[str]]:
    rows = []
    for name, policy in POLICIES.items():
        defaults = policy.Config().to_dict()
        rows.append([name, " ".join(setting_texts(defaults)) or "-", _lossless(policy, defaults)])
    return rows


def _lossless(policy: type[CachePolicy], defaults: dict[str, Any]) -> str:
    """Where the lossless config differs from the defaults."""
    if policy.lossless is None:
        return "-"
    differs = {key: value for key, value in policy.lossless.to_dict().items() if value != defaults[key]}
    return " ".join(setting_texts(differs)) or "always"
