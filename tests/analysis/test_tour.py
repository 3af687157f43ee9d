"""The README's tour of the command line: a block to paste whole, which asks for nothing that is not there."""

import shlex
from pathlib import Path

from analysis.__main__ import build_parser

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TOUR = README.split("## Quick tour: the command line", 1)[1].split("## ", 1)[0]


def test_every_line_of_the_tour_works_with_what_is_there_or_an_earlier_line_wrote() -> None:
    """A path to put one's own in, among them, would end a paste in an error."""
    block = TOUR.split("```")[1].splitlines()
    lines = [shlex.split(line)[3:] for line in block if line.startswith("python -m analysis")]
    written: list[Path] = []
    asked = [line for line in lines if line != ["--help"]]
    assert len(asked) >= 4
    for line in asked:
        arguments = build_parser().parse_args(line)
        assert getattr(arguments, "model", "embedded") == "embedded"
        assert set(getattr(arguments, "files", ())) <= set(written)
        written += [arguments.json] if getattr(arguments, "json", None) else []


def test_the_tour_says_what_a_parquet_file_needs() -> None:
    assert "Parquet, which needs pyarrow" in TOUR
    optional = Path(__file__).parents[2] / "requirements-optional.txt"
    assert "pyarrow" in optional.read_text(encoding="utf-8")
