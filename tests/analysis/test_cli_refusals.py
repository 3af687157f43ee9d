"""Odd input of every kind, at every command: one sentence that names it, exit code 2, no traceback."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.__main__ import build_parser, main
from analysis.grid import Axis, random_settings
from analysis.records import LARGEST, check_numbers
from analysis.wording import figure
from core.command_line import Once
from tests import tiny
from tests.refusals import refusal

SIZE = ["--gen-length", "16", "--block-length", "8", "--dtype", "float32", "--device", "cpu"]
PROMPT = ["--prompt-ids", ",".join(map(str, tiny.PROMPTS[0]))]
Refused = Callable[..., str]


@pytest.fixture
def model(checkpoint: Callable[..., Path]) -> list[str]:
    return ["--model", str(checkpoint("llada"))]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that must refuse in one line; returns the line."""

    return lambda *arguments: refusal(main, arguments, capsys)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["compare", *PROMPT, "--policies", "none", "none"], "none twice"),
        (["compare", *PROMPT, "--policies", "dual", "entropy", "dual:"], "dual twice"),
        (["compare", *PROMPT, "--policies", "entropy", "entropy:recent=64"], "entropy and entropy:recent=64"),
        (["compare", *PROMPT, "--policies", "dual", "dual:threshold=0.9"], "dual and dual:threshold=0.9"),
        (["bench", "--policies", "dual", "dual"], "dual twice"),
        (["bench", "--shapes", "small", "small"], "--shapes names small twice"),
        (["bench", "--prompt-lengths", "8,4,8"], "--prompt-lengths names 8 twice"),
        (["bench", "--batches", "1,1"], "--batches names 1 twice"),
        (["floor", "--rows", "32,32"], "--rows names 32 twice"),
        (["observe", *PROMPT, "--rules", "one-token", "one-token"], "--rules names one-token twice"),
        (["run", "--family", "math,math"], "--family names math twice"),
        (
            ["sweep", *PROMPT, "--grid", "entropy_threshold=1,1.0", "--out", "out.jsonl"],
            "lists a value twice",
        ),
        (["tune", *PROMPT, "--grid", "recent=1,01"], "lists a value twice"),
        (["report", "a.json", "./a.json", "--out", "out.html"], "given twice"),
    ],
)
def test_what_is_named_twice_is_refused(arguments: list[str], named: str, refused: Refused) -> None:
    assert named in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "--family", "math", "--n", "99999999999999"], "--n is 99999999999999; allowed: 1 to"),
        (["bench", "--batches", "99999999999"], "--batches is 99999999999; allowed: 1 to"),
        *(
            ([*command, "--repeats", "9" * 14], "--repeats is 99999999999999; allowed: 1 to 10000")
            for command in (
                ["bench"],
                ["compare", *PROMPT],
                ["sweep", *PROMPT, "--grid", "recent=1", "--out", "o"],
            )
        ),
        (["bench", "--shapes", "small:hidden_size=99999999"], "hidden_size is 99999999; it must be"),
        (["bench", "--shapes", "small:num_layers=999999999999"], "num_layers is 999999999999; it must be"),
        (["bench", "--shapes", "small:vocab_size=2"], "vocab_size is 2"),
        (
            ["sweep", *PROMPT, "--random", "99999999", "--grid", "recent=1..2", "--out", "o"],
            "--random is 999",
        ),
        (["sweep", *PROMPT, "--workers", "99999999", "--grid", "recent=1", "--out", "o"], "--workers is 999"),
        (
            [
                "sweep",
                *PROMPT,
                "--workers",
                "1",
                "--worker-threads",
                "9999",
                "--grid",
                "recent=1",
                "--out",
                "o",
            ],
            "--worker-threads is 9999",
        ),
    ],
)
def test_sizes_beyond_all_machines_are_refused_at_once(
    arguments: list[str], named: str, refused: Refused
) -> None:
    assert named in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", *PROMPT, "--steps", "4"], ["steps is 4, which has no effect without unmask quota or klass"]),
        (["run", *PROMPT, "--unmask", "quota", "--threshold", "0.9"], ["threshold is 0.9, which has"]),
        (["run", *PROMPT, "--set", "kl_history=3", "factor=2"], ["factor is 2", "kl_history is 3"]),
        (["run", *PROMPT, "--set", "top_k=3"], ["top_k is 3, which has no effect without a"]),
        (["run", *PROMPT, "--set", "top_k=3", "--temperature", "1"], []),
        (["run", *PROMPT, "--unmask", "klass", "--steps", "4", "--threshold", "0.8"], []),
        (["compare", *PROMPT, "--steps", "4", "--repeats", "1", "--policies", "dual:unmask=quota"], []),
        (["compare", *PROMPT, "--repeats", "1", "--policies", "none:steps=4", "dual:unmask=quota,steps=4"],
         ["none:steps=4: steps has no effect without"]),
        (["sweep", *PROMPT, "--grid", "steps=4,8", "--out", "OUT"], ["entropy:steps=4", "entropy:steps=8"]),
        (["observe", *PROMPT, "--steps", "4", "--rules", "run-rule"], ["steps is 4, which"]),
        *((["bench", "--prompt-lengths", "4", "--repeats", "1", *more], told) for more, told in
          (([], []), (["--unmask", "threshold"], []), (["--set", "unmask=factor"], []),
           (["--unmask", "factor", "--steps", "4"], ["steps is 4"]))),
    ],
)  # fmt: skip
def test_a_setting_that_says_nothing_is_told(
    arguments: list[str],
    told: list[str],
    model: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(tmp_path / "out.jsonl") if word == "OUT" else word for word in arguments]
    assert main([*given, *model, *SIZE]) == 0
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == len(told)
    for line, part in zip(sorted(warnings), sorted(told), strict=True):
        assert line.startswith("warning: ")
        assert part in line


def test_an_option_is_given_once_at_every_command(refused: Refused) -> None:
    """The first of two would be forgotten without a word."""
    [commands] = [action.choices for action in build_parser()._actions if action.choices]
    assert isinstance(commands, dict)
    told = 0
    for name, parser in commands.items():
        for action in parser._actions:
            for option in action.option_strings if isinstance(action, Once) else ():
                given = [option, str(next(iter(action.choices)) if action.choices else 1)]
                assert f"{action.option_strings[0]} is given twice" in refused(
                    name, *given, action.option_strings[0], given[1]
                )
                told += 1
    assert told > 100


def test_a_part_of_an_options_name_is_no_name(refused: Refused) -> None:
    for arguments in (
        ["run", *PROMPT, "--gen", "8"],
        ["bench", "--repeat", "1"],
        ["--hel"],
        ["run", "--hel"],
    ):
        assert refused(*arguments)


@pytest.mark.parametrize("device", ["nonsense", "meta", "mps", "", "cuda:99"])
def test_a_device_that_is_not_here_is_named(device: str, refused: Refused) -> None:
    for command in (["run", *PROMPT], ["bench", "--shapes", "small"], ["floor", "--shape", "small"]):
        assert f"device is {device!r}" in refused(*command, "--device", device)


def test_a_link_that_leads_to_itself_is_no_traceback(
    tmp_path: Path, model: list[str], refused: Refused
) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for option in (["run", "--json"], ["compare", "--journal"], ["observe", "--traces"]):
        said = refused(option[0], *model, *PROMPT, *SIZE, option[1], str(loop))
        assert "loop" in said
    assert "loop" in refused("report", str(loop), "--out", str(tmp_path / "out.html"))
    assert "loop" in refused("export", str(loop), "--out", str(tmp_path / "out.csv"))


@pytest.mark.parametrize("name", ["\0", "a" * 300])
def test_a_name_that_no_file_can_have_is_refused(name: str, model: list[str], refused: Refused) -> None:
    refused("run", *model, *PROMPT, *SIZE, "--json", name)


def test_a_report_checks_its_pictures_folder_and_title_first(tmp_path: Path, refused: Refused) -> None:
    file, out = tmp_path / "bench.json", tmp_path / "out.html"
    shape = ["--shapes", "small:hidden_size=64,num_layers=1", "--prompt-lengths", "4", "--steps", "2"]
    assert main(["bench", *shape, *SIZE, "--repeats", "1", "--json", str(file)]) == 0
    command = ["report", str(file), "--out", str(out)]
    assert str(file) in refused(*command, "--pictures", str(file))
    assert "--title" in refused(*command, "--title", "\ud800")
    assert not out.exists()


@pytest.fixture
def journal(model: list[str], tmp_path: Path) -> list[str]:
    """Lines of a journal of one comparison."""
    path = tmp_path / "whole.jsonl"
    command = ["compare", *model, *PROMPT, *SIZE, "--policies", "dual", "--repeats", "1"]
    assert main([*command, "--journal", str(path)]) == 0
    return path.read_text().splitlines()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seconds", 1e308), ("seconds", 0), ("seconds", float("inf")), ("seconds", float("nan")),
        ("flops", 0), ("flops", 1e308), ("tokens_per_step", float("inf")), ("decision_overhead", -1e308),
        ("full_steps", 10**400), ("num_tokens", 2**70), ("tokens", []), ("tokens", [2**70]), ("steps", 0),
    ],
)  # fmt: skip
def test_a_number_that_no_measurement_gives_is_refused_wherever_it_is_read(
    field: str, value: object, journal: list[str], model: list[str], tmp_path: Path, refused: Refused
) -> None:
    broken = tmp_path / "broken.jsonl"
    header, outcome = journal[0], json.loads(journal[1])
    broken.write_text(header + "\n" + json.dumps({**outcome, field: value}) + "\n")
    assert field in refused("report", str(broken), "--out", str(tmp_path / "out.html"))
    assert field in refused("export", str(broken), "--out", str(tmp_path / "out.csv"))
    command = ["compare", *model, *PROMPT, *SIZE, "--policies", "dual", "--repeats", "1"]
    assert field in refused(*command, "--journal", str(broken))


def test_a_tuning_holds_finite_numbers_though_its_decoding_may_not(
    model: list[str], tmp_path: Path, refused: Refused
) -> None:
    file, out = tmp_path / "tuning.json", ["--out", str(tmp_path / "out.html")]
    grid = ["--grid", "recent=2,4", "--set", "entropy_bound=inf", "--json", str(file)]
    assert main(["tune", *model, *PROMPT, *SIZE, *grid]) == 0
    assert main(["report", str(file), *out]) == 0
    whole = json.loads(file.read_text())
    for change in (
        {"measured": float("inf")},
        {"full_grid": 2**70},
        *({"candidates": [{**whole["candidates"][0], name: bad}]} for name in ("cost", "loss", "prompts")
          for bad in (10**400, 1e308, float("inf"))),
    ):  # fmt: skip
        file.write_text(json.dumps({**whole, **change}))
        assert "tuning.json" in refused("report", str(file), *out)


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "\0", "", "null", "[]", "3"]
)
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    assert refused("report", str(path), "--out", str(tmp_path / "out.html"))
    said = refused("export", str(path), "--out", str(tmp_path / "out.csv"))
    assert "file.json" in said
    assert "attribute" not in said


def test_a_file_of_another_option_is_refused_with_what_to_give_instead(
    model: list[str], tmp_path: Path, refused: Refused
) -> None:
    """And what is named is taken."""
    out = {name: str(tmp_path / name) for name in ("run", "tune", "seen", "journal.jsonl", "traces.jsonl")}
    page, rows = ["--out", str(tmp_path / "out.html")], ["--out", str(tmp_path / "out.csv")]
    common = [*model, *PROMPT, *SIZE]
    assert main(["run", *common, "--json", out["run"]]) == 0
    files = ["--json", out["tune"], "--journal", out["journal.jsonl"]]
    assert main(["tune", *common, "--grid", "recent=2", "--objective", "flops", *files]) == 0
    watched = ["--rules", "one-token", "--json", out["seen"], "--traces", out["traces.jsonl"]]
    assert main(["observe", *common, *watched]) == 0
    assert "of observe give the file of --traces" in refused("report", out["seen"], *page)
    assert "of tune give the file of --journal" in refused("export", out["tune"], *rows)
    assert "of compare give the file of --json or --journal" in refused("export", out["run"], *rows)
    assert main(["report", out["traces.jsonl"], *page]) == 0
    assert main(["export", out["journal.jsonl"], *rows]) == 0


def test_numbers_are_checked_at_any_depth() -> None:
    check_numbers({"a": [1, 2.5, None, "x", True, float("nan"), {"b": (LARGEST, -(2**63))}]})
    for bad in (2**63, 10**400, 1.01 * LARGEST, float("inf"), float("-inf")):
        with pytest.raises(ValueError, match=r"a\.b is"):
            check_numbers({"a": {"b": [0, [bad]]}})


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e308, -1e308, 5e-324, 10**30])
def test_any_number_can_be_shown(value: float) -> None:
    assert figure(value)


def test_draws_end_where_there_are_no_more() -> None:
    drawn = random_settings("entropy", [Axis.parse("recent=1..3")], 9_000, seed=0)
    assert sorted(setting.config["recent"] for setting in drawn) == [1, 2, 3]
