"""The parser of our command lines: its errors are one sentence, and an option is given once."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn


class Once(argparse.Action):
    """Keeps an option's value, as argparse does, but refuses a second one instead of forgetting the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(parser, Parser)
        if option_string is not None and self.dest in parser.given:
            parser.error(f"{option_string} is given twice")
        parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises ValueError where argparse would print its usage and leave."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # A part of a name would mean another option one day.
        super().__init__(*arguments, **{"allow_abbrev": False, **options})
        self.given: set[str] = set()
        for name in (None, "store"):
            self.register("action", name, Once)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.given.clear()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)
