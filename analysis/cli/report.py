"""report: one HTML file, readable offline, from the files of other commands."""

import argparse
from pathlib import Path

from analysis.cli import parsing
from analysis.pictures import save_pictures
from analysis.report import render, titled_figures
from analysis.results import FILES, read_results

PICTURES_HELP = "also every figure as PNG and PDF; needs kaleido and a Chrome or Chromium"


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("report", help="one HTML file, readable offline, from other commands' files")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=FILES)
    parser.add_argument("--out", type=Path, required=True, metavar="OUT.html", help="where to write")
    parser.add_argument("--title", default="KV caching of a masked diffusion language model")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help=PICTURES_HELP)
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    # Some of what a file can lack shows only when it is drawn.
    with parsing.checking():
        parsing.check_apart(*arguments.files, arguments.out)
        results = read_results(arguments.files)
        parsing.check_writable(arguments.out)
        if arguments.pictures:
            parsing.check_folder(arguments.pictures)
        try:
            page = render(results, arguments.title).encode()
        except UnicodeEncodeError as error:
            raise parsing.UsageError(
                f"--title or a file holds what is no valid text: {error.reason}"
            ) from None
    arguments.out.write_bytes(page)
    print(f"wrote {arguments.out} ({arguments.out.stat().st_size / 1e6:.1f} MB, opens without a network)")
    if arguments.pictures:
        with parsing.checking():
            files = save_pictures(titled_figures(results), arguments.pictures)
        print(f"wrote {len(files)} pictures to {arguments.pictures}")
    return 0
