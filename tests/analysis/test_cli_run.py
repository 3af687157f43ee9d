"""`run` in process: files it writes, what it says, and one clear line for what it can't work with."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import Trace
from analysis.__main__ import main
from analysis.cli import run as run_module
from analysis.cli.symbols import SYMBOLS
from analysis.prompts import Prompt, read_prompts
from analysis.results import text_of
from core import POLICIES, GenerationConfig
from tests import tiny

IDS = ",".join(map(str, tiny.PROMPTS[0]))
SHORT = ["--gen-length", "16", "--block-length", "8", "--dtype", "float32", "--device", "cpu"]


@pytest.fixture
def folder(checkpoint: Callable[..., Path]) -> str:
    return str(checkpoint("llada"))


def test_run_writes_a_trace_whose_ratio_can_be_recounted(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    settings = ["--policy", "entropy", "--set", "entropy_threshold=inf", "recent=4"]
    assert main(["run", "--model", folder, "--prompt-ids", IDS, *SHORT, *settings, "--json", str(out)]) == 0
    data = json.loads(out.read_text())
    assert data["schema"] == 1
    assert data["policy"]["config"]["entropy_threshold"] == "inf"
    rows = sum(length for step in data["steps"] for _, length in step["refreshed_positions"])
    canvas = len(data["prompt_ids"]) + len(data["tokens"])
    assert data["totals"]["recompute_ratio"] == pytest.approx(rows / (len(data["steps"]) * canvas))
    said = capsys.readouterr()
    assert "not measured" in said.out
    assert "float32 on cpu" in said.out
    assert said.err == ""
    assert Trace.load(out).complete


def test_a_table_says_what_its_tokens_a_second_count(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`out` over `seconds` is another number wherever the end of the text comes early."""
    assert main(["run", "--model", folder, "--prompt-ids", IDS, *SHORT]) == 0
    under = capsys.readouterr().out.split("-----", 1)[1]
    assert "out: generated positions. tokens/s: answer tokens alone" in under


@pytest.mark.parametrize("command", [["run", "--policy"], ["compare", "--repeats", "1", "--policies"]])
def test_a_policy_of_its_own_order_says_what_it_commits(
    folder: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The line of the decoding names an unmask rule, which then has little to say."""
    name, *options = command
    for policy, told in (("dkv-greedy", True), ("dkv", False)):
        assert main([name, "--model", folder, "--prompt-ids", IDS, *SHORT, *options, policy]) == 0
        said = capsys.readouterr().out
        assert ("; commits 1 position a step in dkv-greedy's drawn order" in said) == told


@pytest.mark.parametrize(
    ("ends_first", "text", "told"),
    [
        (True, "", "(no text: the model wrote end-of-text first)"),
        (False, " \n", "(no text: nothing but white space)"),
        (False, " a ", " a "),
        (False, None, None),
    ],
)
def test_an_empty_answer_is_told_and_not_left_blank(
    ends_first: bool, text: str | None, told: str | None, trace: Trace
) -> None:
    [end] = trace.model["eos_token_ids"]
    tokens = (end if ends_first else end + 1, *[end] * (trace.gen_length - 1))
    written = replace(trace, tokens=tokens, text=text, model={**trace.model, "num_parameters": 9})
    assert text_of(written) == told
    lines = run_module._report(run_module.Results([written], [None]), [Prompt("a")], False)
    assert lines[-1] == told or told is None


def test_several_prompts_make_one_trace_a_line_and_drift_a_second_file(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts, out, drift = tmp_path / "p.jsonl", tmp_path / "out.jsonl", tmp_path / "drift.jsonl"
    lines = [{"prompt_ids": list(ids)} for ids in tiny.PROMPTS] + [{"prompt_ids": [5], "answer": "7"}]
    prompts.write_text("\n".join(map(json.dumps, lines)))
    watch = ["--staleness", "2"]
    files = ["--prompts", str(prompts), "--json", str(out), "--drift-json", str(drift)]
    assert main(["run", "--model", folder, *files, "--limit", "2", "--baselines", *watch, *SHORT]) == 0
    traces = [Trace.from_json(json.loads(line)) for line in out.read_text().splitlines()]
    assert [trace.prompt_ids for trace in traces] == [tuple(ids) for ids in tiny.PROMPTS[:2]]
    watched = [Trace.from_json(json.loads(line)) for line in drift.read_text().splitlines()]
    assert {len(trace.steps) for trace in watched} == {16}
    said = capsys.readouterr().out
    assert "times as fast, n = 2" in said
    assert "Spearman" in said
    assert "staleness over" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run"], "--prompt"),
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["run", "--prompt", "  "], "prompt is empty"),
        (["run", "--prompt", "a\ud800"], "no valid text"),
        (["run", "--prompt-ids", "5,1"], "mask token"),
        (["run", "--prompt-ids", "1,x"], "--prompt-ids"),
        (["run", "--prompt", "a", "--prompt-ids", "1"], "not allowed with"),
        (["run", "--prompts", "nowhere.jsonl"], "nowhere.jsonl"),
        (["run", "--prompt", "a", "--limit", "0"], "--limit"),
        (["run", "--prompt", "a", "--gen-length", "many"], "--gen-length"),
        (["run", "--prompt", "a", "--gen-length", "33", "--block-length", "32"], "gen_length 33"),
        (["run", "--prompt", "a", "--threshold", "2"], "threshold"),
        (["run", "--prompt", "a", "--unmask", "luck"], "unmask"),
        (["run", "--prompt", "a", "--set", "entropy_threshold=high"], "entropy_threshold"),
        (["run", "--prompt", "a", "--set", "entropy_threshold=nan"], "entropy_threshold"),
        (["run", "--prompt", "a", "--set", "tau=1"], "'tau', which policy entropy calls entropy_threshold"),
        (["run", "--prompt", "a", "--set", "k=8"], "'k', which policy entropy calls recent"),
        (["run", "--prompt", "a", "--policy", "dual", "--set", "k=8"], "calls recent"),
        (["sweep", "--prompt", "a", "--grid", "tau=1,2", "--out", "o"], "calls entropy_threshold"),
        (["tune", "--prompt", "a", "--grid", "recent=8", "k=1,2"], "calls recent"),
        (["compare", "--prompt", "a", "--policies", "none", "entropy:tau=1"], "calls entropy_threshold"),
        (["compare", "--prompt", "a", "--policies", "entropy", "--set", "tau=1"], "entropy_threshold"),
        (["bench", "--policies", "entropy:recent=8,tau=1"], "calls entropy_threshold"),
        (["run", "--prompt", "a", "--set", "recent"], "KEY=VALUE"),
        (["run", "--prompt", "a", "--set", "recent=1", "recent=2"], "recent"),
        (["run", "--prompt", "a", "--set", "seed=1", "--seed", "2"], "seed"),
        (["run", "--prompt", "a", "--policy", "guess"], "policy is 'guess'"),
        (["run", "--prompt", "a", "--model", "/no/such/place"], "model"),
        (["run", "--prompt", "a", "--dtype", "float8"], "dtype"),
        (["run", "--prompt", "a", "--json", "/no/such/place/out.json"], "/no/such/place/out.json"),
        (["run", "--prompt", "a", "--speed", "9"], "--speed"),
        (["run", "--prompt", "a", "--staleness", "0"], "--staleness"),
        (["run", "--prompt", "a", "--policy", "prefix", "--set", "window=sliding"], "block by block"),
        (["compare", "--prompt", "a", "--policies", "none", "dual:window=sliding"], "block by block"),
        (["compare", "--prompt", "a", "--policies", "none:gen_length=4096"], "over the model's context"),
        (["bench", "--policies", "none:gen_length=4096,steps=128"], "beside gen_length 4096"),
    ],
)
def test_a_usage_error_is_one_clear_line(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert named in said.err


def test_a_symbol_is_no_settings_own_name() -> None:
    """It would be refused where it is meant."""
    for symbol, name in SYMBOLS.items():
        assert name in POLICIES["entropy"].Config().to_dict()
        for policy in POLICIES.values():
            assert symbol not in policy.Config().to_dict()
        assert symbol not in GenerationConfig().to_dict()


def test_broken_model_folders_are_usage_errors(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    weights = Path(folder) / "model.safetensors"
    assert main(["run", "--model", str(empty), "--prompt-ids", IDS]) == 2
    weights.write_bytes(weights.read_bytes()[:-100])
    assert main(["run", "--model", folder, "--prompt-ids", IDS]) == 2
    weights.unlink()
    assert main(["run", "--model", folder, "--prompt-ids", IDS]) == 2
    assert capsys.readouterr().err.count("\n") == 3


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("not json", "line 1"),
        ("[1, 2]", "line 1"),
        ('{"prompt": 5}', "line 1"),
        ('{"prompt_ids": [1, "a"]}', "line 1"),
        ('{"prompt": "a", "answer": 3}', "answer"),
        ('{"prompt": "a", "function": "f"}', "tests"),
        ('{"prompt": "a", "function": 5, "tests": [[1, 2]]}', "function must be text"),
        ('{"prompt": "a", "function": "f", "tests": [[1]]}', "tests must be"),
        ("[" * 100_000, "line 1"),
        ("", "no prompt"),
    ],
)
def test_a_malformed_prompts_file_is_refused_by_line(
    line: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(line)
    assert main(["run", "--prompts", str(path)]) == 2
    assert named in capsys.readouterr().err


def test_a_prompts_file_may_hold_a_byte_order_mark_and_any_separator_in_its_text(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes('\ufeff{"prompt": "a\u2028b\x85c"}\r\n\r\n{"prompt": "d"}\n'.encode())
    assert [prompt.content for prompt in read_prompts(path)] == ["a\u2028b\x85c", "d"]


def test_one_file_is_not_written_for_two_purposes(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"prompt_ids": [5]}')
    assert main(["run", "--model", folder, "--prompts", str(path), "--json", str(path), *SHORT]) == 2
    assert "twice" in capsys.readouterr().err
    assert main(["report", str(path), "--out", str(path)]) == 2
    assert "twice" in capsys.readouterr().err
    assert path.read_text() == '{"prompt_ids": [5]}'


def test_a_bad_prompt_is_named(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"prompt_ids": [5]}\n{"prompt_ids": []}')
    assert main(["run", "--model", folder, "--prompts", str(path), *SHORT]) == 2
    assert "prompt 1: prompt is empty" in capsys.readouterr().err


def test_prompts_that_do_not_fit_are_refused_before_any_work(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    long = ",".join(["5"] * 120)
    assert main(["run", "--model", folder, "--prompt-ids", long, *SHORT, "--json", str(out)]) == 2
    assert "over the model's context of 128" in capsys.readouterr().err
    assert not out.exists()


def test_an_interrupted_run_keeps_its_steps(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run_module.observe

    def interrupted(*arguments: object) -> Iterator[Trace]:
        for trace in whole(*arguments):
            yield trace
            if len(trace.steps) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "observe", interrupted)
    out = tmp_path / "out.json"
    slow = ["--unmask", "quota"]
    assert main(["run", "--model", folder, "--prompt-ids", IDS, *SHORT, *slow, "--json", str(out)]) == 1
    trace = Trace.load(out)
    assert len(trace.steps) == 3
    assert not trace.complete
    assert "interrupted" in capsys.readouterr().out


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "tokens can differ between them" in said
    assert "a value is a number," in said
    assert main(["report", "--help"]) == 0
    assert "sweep --out" in " ".join(capsys.readouterr().out.split())


def test_a_setting_that_takes_infinity_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    for value in ("nan", "high"):
        assert main(["run", "--prompt", "a", "--set", f"entropy_threshold={value}"]) == 2
        assert "allowed: a number, or inf" in capsys.readouterr().err


def test_common_options_are_common(folder: str, tmp_path: Path) -> None:
    """A short generation needs no block length, and one policy may be named as every command does."""
    prompt = ["--prompt-ids", "3,4,5", "--gen-length", "8", "--dtype", "float32", "--device", "cpu"]
    trace, compared, swept = (tmp_path / name for name in ("run.json", "compare.json", "sweep.jsonl"))
    assert main(["run", "--model", folder, *prompt, "--policy", "dual", "--json", str(trace)]) == 0
    assert json.loads(trace.read_text())["generation"]["block_length"] == 8
    few = ["--repeats", "1", "--no-vanilla"]
    assert (
        main(["compare", "--model", folder, *prompt, "--policy", "dual", *few, "--json", str(compared)]) == 0
    )
    assert compared.stat().st_size
    assert main(["sweep", "--model", folder, *prompt, "--grid", "recent=1,2", "--json", str(swept)]) == 0
    assert swept.stat().st_size
