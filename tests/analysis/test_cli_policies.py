"""`policies`: every registered policy is listed and describes itself; how commands are told of one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.__main__ import main
from core import POLICIES

SMALL = ["--gen-length", "16", "--block-length", "8", "--dtype", "float32", "--device", "cpu"]


def test_the_table_lists_every_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in POLICIES)
    assert "entropy_threshold=-1.0" in said


@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_names_its_source_and_settings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", name]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{name}: ")
    assert all(setting in said for setting in POLICIES[name].Config().to_dict())


def test_an_unknown_policy_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "guess"]) == 2
    assert "guess" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["compare", "bench"])
def test_settings_of_the_only_policy_may_stand_apart_from_it(
    command: str, checkpoint: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--policy entropy --set recent=3` is `--policies entropy:recent=3`, as at every other command."""
    prompt = ["--prompt-ids", "5,6"] if command == "compare" else ["--prompt-lengths", "4"]
    common = [command, "--model", str(checkpoint("llada")), *prompt, *SMALL, "--repeats", "1"]
    assert main([*common, "--policy", "entropy", "--set", "recent=3", "threshold=0.8"]) == 0
    said = capsys.readouterr().out
    assert "entropy:recent=3" in said
    for more, named in (
        (["dual", "--set", "recent=3"], "recent"),
        (["entropy:recent=2", "--set", "recent=3"], "recent is given both"),
        (["entropy", "dual", "--set", "recent=3"], "NAME:KEY=VALUE"),
    ):
        assert main([*common, "--policies", *more]) == 2
        assert named in capsys.readouterr().err


@pytest.mark.parametrize(("length", "block"), [(8, 8), (24, 8), (20, 4), (6, 2)])
def test_bench_takes_any_length_without_a_word_on_steps(
    length: int, block: int, checkpoint: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    size = [
        "--gen-length",
        str(length),
        "--block-length",
        str(block),
        "--dtype",
        "float32",
        "--device",
        "cpu",
    ]
    command = ["bench", "--model", str(checkpoint("llada")), "--prompt-lengths", "4", "--repeats", "1", *size]
    assert main([*command, "--policies", "dual"]) == 0
    capsys.readouterr()
