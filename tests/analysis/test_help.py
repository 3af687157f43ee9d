"""Help that says what a command does: its own defaults, and settings that it does not refuse."""

import argparse

import pytest

from analysis.__main__ import build_parser, main
from analysis.cli.bench import _decoding
from analysis.cli.floor import WINDOW
from core import GenerationConfig
from tests.refusals import refusal

SHARED = ("run", "compare", "sweep", "tune", "observe", "bench", "evaluate")


def help_of(command: str, option: str) -> str:
    [commands] = [action.choices for action in build_parser()._actions if action.choices]
    assert isinstance(commands, dict)
    [text] = [one.help for one in commands[command]._actions if option in one.option_strings]
    return str(text)


def test_a_bench_says_its_own_defaults_and_not_the_engines() -> None:
    base = _decoding(build_parser().parse_args(["bench"]))
    assert help_of("bench", "--gen-length").endswith(f"({base.gen_length})")
    assert help_of("bench", "--unmask").endswith(f"({base.unmask})")
    assert help_of("bench", "--steps").endswith("(one for every 4 positions of a block)")
    assert base.steps == base.gen_length // 4
    engine = GenerationConfig()
    assert help_of("run", "--gen-length").endswith(f"({engine.gen_length})")
    assert help_of("run", "--unmask").endswith(f"({engine.unmask})")


@pytest.mark.parametrize(
    "arguments", [["observe", "--prompt-ids", "3,4"], ["bench"], ["compare", "--prompt-ids", "3,4"]]
)
def test_set_promises_no_policy_setting_that_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no decoding setting" in refusal(main, [*arguments, "--set", "recent=8"], capsys)
    told = help_of(arguments[0], "--set")
    assert told.startswith("generation settings")
    assert ("where --policies names a single one" in told) == (arguments[0] != "observe")
    assert "policy settings" not in told


@pytest.mark.parametrize("command", SHARED)
def test_lengths_say_that_one_divides_the_other(command: str) -> None:
    block = GenerationConfig().block_length
    assert f"a multiple of block-length ({block})" in help_of(command, "--gen-length")
    assert "gen-length must be a multiple of" in help_of(command, "--block-length")


def test_rows_of_a_floor_say_what_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{WINDOW} to --length" in help_of("floor", "--rows")
    assert f"{WINDOW} to --length" in refusal(main, ["floor", "--rows", str(WINDOW // 2)], capsys)


def test_every_option_has_help_that_can_be_shown() -> None:
    [commands] = [action.choices for action in build_parser()._actions if action.choices]
    assert isinstance(commands, dict)
    for parser in commands.values():
        assert isinstance(parser, argparse.ArgumentParser)
        assert parser.format_help()
