"""`observe`: both observations by family and rule, in tables and in a file; problems by family."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.cli import observe as observe_module
from analysis.correlation import correlate, drift_pairs
from analysis.observation import KINDS, SIGNALS, SPANS
from analysis.prompts import Prompt, distinct, family_prompts
from analysis.results import read_results
from analysis.trace import Trace
from tests import tiny

SIZE = [
    "--gen-length",
    "16",
    "--block-length",
    "8",
    "--threshold",
    "0.3",
    "--dtype",
    "float32",
    "--device",
    "cpu",
]


@pytest.fixture
def arguments(checkpoint: Callable[..., Path], tmp_path: Path) -> list[str]:
    prompts = tmp_path / "p.jsonl"
    families = ("sums", "sums", "code")
    records = [
        {"prompt_ids": list(ids), "answer": "7", "family": family}
        for ids, family in zip(tiny.PROMPTS, families, strict=True)
    ]
    prompts.write_text("\n".join(map(json.dumps, records)))
    return ["--model", str(checkpoint("llada")), "--prompts", str(prompts), *SIZE]


def test_each_family_and_rule_has_its_row_and_its_coefficients(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, kept = tmp_path / "out.json", tmp_path / "traces.jsonl"
    assert main(["observe", *arguments, "--markdown", "--json", str(out), "--traces", str(kept)]) == 0
    found = json.loads(out.read_text())
    assert found["complete"]
    groups = {(one["rule"], one["group"]): one for one in found["observations"]}
    assert set(groups) == {
        (rule, family) for rule in ("one-token", "run-rule") for family in ("sums", "code")
    }
    observed = {str(some[0].generation["unmask"]): some for some in read_results([kept]).observed.values()}
    assert {rule: len(traces) for rule, traces in observed.items()} == {"quota": 3, "threshold": 3}
    # Families are ranked apart: the file's coefficient is that of the family's own traces.
    pairs = drift_pairs(observed["quota"][:2])
    own = correlate(pairs, SIGNALS)
    one = groups["one-token", "sums"]
    assert [row["signal"] for row in one["signals"]] == list(SIGNALS)
    assert one["signals"][0]["rho"] == pytest.approx(own.plain["max_entropy"].rho)
    assert (one["prompts"], one["pairs"], one["tokens_per_step"]) == (2, 2 * 15, 1)
    inside = one["signals_in_answer"][0]
    assert (one["pairs_in_answer"], inside["n"]) == (pairs.in_answer.sum(), pairs.in_answer.sum())
    assert {(row["positions"], row["span"]) for row in one["kinds"]} == {
        (kind, span) for kind in KINDS for span in SPANS
    }
    assert one["mismatched"] == []
    said = capsys.readouterr().out
    rows = [line for line in said.splitlines() if line.startswith("|")]
    assert (
        sum(row.startswith("| sums |") for row in rows)
        == sum(row.startswith("| code |") for row in rows)
        == 2 * (2 + 2 + len(KINDS) + 2)
    )
    assert "within the answer" in said
    assert "does not vary" in said


def test_an_interrupted_observation_tells_what_it_has(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = observe_module.no_cache_trace

    def interrupted() -> Iterator[Callable[..., Trace]]:
        yield from (whole, whole, whole)
        raise KeyboardInterrupt

    passes, out = interrupted(), tmp_path / "out.json"
    monkeypatch.setattr(
        observe_module, "no_cache_trace", lambda *given, **named: next(passes)(*given, **named)
    )
    assert main(["observe", *arguments, "--json", str(out)]) == 1
    found = json.loads(out.read_text())
    assert not found["complete"]
    assert sorted(one["prompts"] for one in found["observations"]) == [1, 2]
    assert "interrupted" in capsys.readouterr().out


def test_problems_of_a_family_are_held_out_different_and_the_same_every_time() -> None:
    prompts = family_prompts(["math", "code"], 5)
    assert [prompt.problem and prompt.problem.family for prompt in prompts] == ["math"] * 5 + ["code"] * 5
    assert all(prompt.problem and prompt.problem.is_held_out for prompt in prompts)
    assert len({prompt.content for prompt in prompts}) == 10
    assert family_prompts(["code"], 5) == prompts[5:]


def test_other_wordings_of_one_content_are_no_further_prompts() -> None:
    prompts = family_prompts(["math", "code"], 32)
    kept = distinct(prompts)
    contents = [(prompt.problem.family, prompt.problem.signature) for prompt in kept if prompt.problem]
    assert len(set(contents)) == len(kept) < len(prompts)
    assert [prompt for prompt in prompts if prompt in kept] == kept
    twice = [Prompt("a"), Prompt((1, 2)), Prompt("a")]
    assert distinct(twice) == twice[:2]


def test_how_many_prompts_repeat_a_content_is_told(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts, out = Path(arguments[3]), tmp_path / "out.json"
    prompts.write_text(prompts.read_text() + "\n" + prompts.read_text().splitlines()[0])
    assert main(["observe", *arguments, "--rules", "one-token", "--json", str(out)]) == 0
    assert "4 prompts asked for, 3 of different content" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert found["prompts_asked"] == 4
    assert sum(one["prompts"] for one in found["observations"]) == 3


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (["--family", "poetry"], "poetry"),
        (["--family", "math,math"], "twice"),
        (["--family", "math", "--n", "0"], "--n"),
        (["--prompt", "a", "--n", "3"], "--family"),
        (["--family", "math", "--rules", "fast"], "fast"),
        (["--family", "math", "--json", "same", "--traces", "same"], "twice"),
    ],
)
def test_a_bad_observation_is_a_usage_error(
    extra: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["observe", *extra]) == 2
    assert named in capsys.readouterr().err


def test_ages_that_no_token_reached_are_not_zero(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["observe", *arguments, "--rules", "one-token"]) == 0
    lines = capsys.readouterr().out.splitlines()
    [row] = (line for line in lines if line.split()[:2] == ["sums", "answer"])
    # 16 steps leave ages up to 14: those of 16, 32 and 64 were not observed.
    assert row.split("  ").count("-") + row.split().count("-") >= 3
    assert np.isfinite(float(row.split()[3]))
