"""export: the outcomes of a sweep, comparison or tuning as a Parquet or CSV file."""

import argparse
from pathlib import Path

from analysis.cli import parsing
from analysis.measure import to_frame
from analysis.parquet import packages, write_parquet
from analysis.results import read_outcomes
from analysis.wording import counted

SUFFIXES = (".parquet", ".csv")


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("export", help="outcomes as a Parquet file (needs pyarrow) or as CSV")
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="of sweep --out, compare --json or --journal, tune --journal"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="OUT", help="OUT.parquet or OUT.csv")
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Read, check and write. A Parquet file keeps what the outcomes hold for, so `report` reads it too."""
    with parsing.checking():
        if arguments.out.suffix not in SUFFIXES:
            raise parsing.UsageError(f"--out {arguments.out}: allowed: a name in {' or '.join(SUFFIXES)}")
        if arguments.out.suffix == ".parquet":
            packages()
        parsing.check_apart(arguments.file, arguments.out)
        header, outcomes = read_outcomes(arguments.file)
        parsing.check_writable(arguments.out)
    if arguments.out.suffix == ".parquet":
        write_parquet(arguments.out, header, outcomes)
    else:
        to_frame(outcomes).to_csv(arguments.out, index=False)
    print(f"wrote {counted(len(outcomes), 'outcome')} to {arguments.out}")
    return 0
