"""Comparisons: order of runs, what the summary makes of known outcomes, and the command on a tiny model."""

import gc
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from analysis.__main__ import main
from analysis.cli.compare import with_baselines
from analysis.comparison import agreement, summarise
from analysis.executors import InProcess, Task
from analysis.measure import Outcome, Unit, interleaved, reference_of, vanilla
from analysis.prompts import Prompt
from analysis.settings import Setting
from core import UNMASK_RULES, GenerationConfig, LanguageModel
from tests import tiny

BASE = GenerationConfig(gen_length=4, block_length=4)
NONE, ENTROPY = Setting("none"), Setting.parse("entropy:recent=8")
EOS = (1,)


def outcome(setting: Setting, prompt: int, repeat: int, seconds: float, **other: object) -> Outcome:
    made = Outcome(
        setting=setting.label,
        prompt=prompt,
        repeat=repeat,
        steps=2,
        full_steps=1,
        recompute_ratio=0.5,
        tokens_per_step=2.0,
        decision_overhead=0.1,
        seconds=seconds,
        flops=100.0,
        num_tokens=3,
        tokens=(5, 6, 1, 1),
        solved=None,
    )
    return replace(made, **other)


def test_every_setting_meets_every_prompt_and_nobody_always_goes_first() -> None:
    units = list(interleaved([NONE, ENTROPY], num_prompts=3, repeats=2))
    assert len({unit.key for unit in units}) == 12
    assert {unit.setting.label for unit in units[::2]} == {NONE.label, ENTROPY.label}
    assert all(a.prompt == b.prompt for a, b in zip(units[::2], units[1::2], strict=True))


def test_runs_after_the_warm_up_are_not_stopped_to_collect_what_was_there(
    models: dict[str, LanguageModel],
) -> None:
    """A collection falls into the same run of a measurement every time, and is longer than it."""
    gc.unfreeze()
    before = len(gc.get_objects())
    task = Task("", "cpu", "float32", (Prompt(tuple(tiny.PROMPTS[0])),), BASE)
    for _ in InProcess(models["llada"], task)([Unit(NONE, 0), Unit(ENTROPY, 0)]):
        assert len(gc.get_objects()) < before / 10


@pytest.mark.parametrize("steps", [None, 2, 4])
@pytest.mark.parametrize("rule", UNMASK_RULES)
def test_no_run_is_measured_under_two_names(rule: str, steps: int | None) -> None:
    base = replace(BASE, unmask=rule, steps=steps)
    settings = with_baselines([ENTROPY], base, no_vanilla=False)
    decodings = [setting.decoding(base) for setting in settings if setting.policy == "none"]
    assert len({(one.unmask, one.quota_steps) for one in decodings}) == len(decodings)
    slowest = vanilla(base).decoding(base)
    assert (slowest.unmask, slowest.quota_steps) == ("quota", base.gen_length)


def test_an_answer_cut_short_or_drawn_out_agrees_no_further_than_it_does() -> None:
    """Up to the later of the two ends: else whoever ends at once agrees with everybody."""
    whole, short, (end,) = (5, 6, 7, 1, 1, 1), (5, 1, 1, 1, 1, 1), EOS
    assert end == 1
    assert agreement(short, whole, EOS) == agreement(whole, short, EOS) == pytest.approx(2 / 4)
    assert agreement(whole, whole, EOS) == 1


def test_tokens_a_second_are_the_median_of_the_prompts() -> None:
    runs = [outcome(NONE, prompt, 0, seconds) for prompt, seconds in enumerate((1.0, 2.0, 30.0))]
    [row] = summarise(runs, [NONE], BASE, EOS).summaries
    assert row.tokens_per_second == pytest.approx(3 / 2)


def test_speedups_are_medians_of_the_prompts_ratios() -> None:
    slow = vanilla(BASE)
    runs = [outcome(slow, p, 0, 8.0) for p in (0, 1)] + [outcome(NONE, p, 0, 4.0) for p in (0, 1)]
    runs += [outcome(ENTROPY, 0, r, seconds) for r, seconds in enumerate((1.0, 1.0, 9.0))]
    runs += [outcome(ENTROPY, 1, r, 2.0) for r in range(3)]
    rows = {row.setting: row for row in summarise(runs, [slow, NONE, ENTROPY], BASE, EOS).summaries}
    ours = rows[ENTROPY.label]
    assert ours.speedup_vanilla == pytest.approx((8 + 4) / 2)
    assert ours.speedup_parallel == pytest.approx((4 + 2) / 2)
    assert ours.repeat_spread == pytest.approx((8.0 + 0.0) / 2)
    assert (ours.prompts, ours.repeats) == (2, 3)
    assert rows[slow.label].speedup_vanilla == 1
    # Of two prompts the range, since quartiles would be interpolated.
    assert (ours.speedup_vanilla_low, ours.speedup_vanilla_high) == (4, 8)
    assert ours.speedup_text("parallel") == "3 (range 2..4)"
    assert rows[NONE.label].speedup_fastest == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert ours.speedup_fastest == 1


def test_a_speedups_spread_is_of_prompts_compared_with_themselves() -> None:
    """Prompts of very different length, each exactly twice as fast: there is no spread."""
    runs = [outcome(NONE, p, 0, 2.0 * (p + 1)) for p in range(8)]
    runs += [outcome(ENTROPY, p, 0, 1.0 + p) for p in range(8)]
    [row] = summarise(runs, [ENTROPY], BASE, EOS).summaries
    assert row.high > 2 * row.low
    assert (row.speedup_parallel_low, row.speedup_parallel, row.speedup_parallel_high) == (2, 2, 2)
    assert (row.speedup_vanilla_low, row.speedup_vanilla_high) == (None, None)
    assert row.speedup_text("parallel") == "2 (2..2)"
    assert row.speedup_text("vanilla") == "not measured"


def test_equal_counts_of_solved_prompts_may_be_of_different_prompts() -> None:
    answers = {0: (True, False), 1: (False, True), 2: (True, True), 3: (True, False), 4: (None, True)}
    runs = [outcome(NONE, p, 0, 1.0, solved=theirs) for p, (theirs, _) in answers.items()]
    runs += [outcome(ENTROPY, p, 0, 1.0, solved=ours) for p, (_, ours) in answers.items()]
    none, ours = summarise(runs, [NONE, ENTROPY], BASE, EOS).summaries
    assert (ours.solved, ours.lost, ours.gained) == (3, 2, 1)
    assert (none.solved, none.lost, none.gained) == (3, 0, 0)
    assert ours.changed_text == "2, 1"
    [alone] = summarise(runs, [ENTROPY], BASE, EOS).summaries
    assert (alone.lost, alone.gained) == (2, 1)
    ungraded = summarise([outcome(ENTROPY, 0, 0, 1.0), outcome(NONE, 0, 0, 1.0)], [ENTROPY], BASE, EOS)
    assert ungraded.summaries[0].changed_text == "not graded"


def test_each_share_of_a_row_is_of_the_runs_that_it_names() -> None:
    """Over prompts the mean of first runs; of the decision the median of all runs."""
    first = {"recompute_ratio": 0.1, "full_steps": 1, "tokens_per_step": 2.0, "decision_overhead": 0.1}
    again = {"recompute_ratio": 0.9, "full_steps": 2, "tokens_per_step": 9.0, "decision_overhead": 0.3}
    runs = [outcome(NONE, p, 0, 6.0) for p in range(3)]
    for prompt, seconds in enumerate((1.0, 2.0, 3.0)):
        runs += [outcome(ENTROPY, prompt, r, seconds, **(again if r else first)) for r in range(3)]
    runs += [outcome(ENTROPY, 3, 0, 4.0, **{**first, "recompute_ratio": 0.5, "full_steps": 2})]
    [none, ours] = summarise(runs, [NONE, ENTROPY], BASE, EOS).summaries
    assert ours.recompute_ratio == pytest.approx((0.1 * 3 + 0.5) / 4)
    assert ours.full_step_ratio == pytest.approx((0.5 * 3 + 1) / 4)
    assert ours.tokens_per_step == pytest.approx(2)
    assert ours.decision_overhead == pytest.approx(0.3)
    assert ours.speedup_fastest == 1
    assert none.speedup_fastest == pytest.approx(2 / 6)
    assert (none.speedup_fastest_low, none.speedup_fastest_high) == pytest.approx((1 / 6, 3 / 6))
    assert ours.low == pytest.approx(3 / 4 + 0.75 * (1 - 3 / 4))
    assert ours.high == pytest.approx(3 / 2 + 0.25 * (3 - 3 / 2))


def test_seconds_of_another_number_of_tokens_are_no_baseline() -> None:
    short = Setting.parse("entropy:gen_length=2")
    runs = [outcome(vanilla(BASE), 0, 0, 8.0), outcome(NONE, 0, 0, 4.0), outcome(ENTROPY, 0, 0, 1.0)]
    runs += [outcome(short, 0, 0, 1.5, tokens=(5, 1), num_tokens=2)]
    *_, whole, half = summarise(runs, [vanilla(BASE), NONE, ENTROPY, short], BASE, EOS).summaries
    assert whole.speedup_vanilla == 8
    assert half.speedup_vanilla is None
    assert half.speedup_fastest is None


def test_a_missing_baseline_is_not_measured_rather_than_one() -> None:
    rows = summarise([outcome(ENTROPY, 0, 0, 1.0)], [ENTROPY], BASE, EOS).summaries
    assert rows[0].speedup_vanilla is None
    assert rows[0].agreement is None
    assert rows[0].accuracy is None


def test_the_reference_keeps_a_settings_own_decoding() -> None:
    greedy = Setting.parse("entropy:recent=8,threshold=0.5")
    assert reference_of(greedy).label == "none:threshold=0.5"


def test_agreement_ends_with_the_text() -> None:
    assert agreement((5, 6, 1, 9), (5, 6, 1, 8), EOS) == 1
    assert agreement((5, 6, 1, 9), (5, 7, 1, 9), EOS) == pytest.approx(2 / 3)
    assert agreement((5, 1, 1, 1), (5, 6, 7, 1), EOS) == pytest.approx(2 / 4)
    assert agreement((5, 6, 7, 1), (5, 1, 1, 1), EOS) == pytest.approx(2 / 4)


def test_accuracy_counts_graded_prompts_once() -> None:
    runs = [outcome(ENTROPY, 0, r, 1.0, solved=True) for r in range(3)]
    runs += [outcome(ENTROPY, 1, 0, 1.0, solved=False), outcome(ENTROPY, 2, 0, 1.0)]
    row = summarise(runs, [ENTROPY], BASE, EOS).summaries[0]
    assert (row.solved, row.graded, row.accuracy) == (1, 2, 0.5)
    assert row.accuracy_interval is not None
    low, high = row.accuracy_interval
    assert 0 < low < 0.5 < high < 1
    assert row.solved_text == f"1 of 2, {low:.0%}..{high:.0%}"


def test_outcomes_read_back() -> None:
    made = outcome(ENTROPY, 1, 2, 0.25, solved=True)
    assert Outcome.from_json(json.loads(json.dumps(made.to_json()))) == made
    with pytest.raises(ValueError, match="seconds"):
        Outcome.from_json({k: v for k, v in made.to_json().items() if k != "seconds"})


@pytest.fixture
def arguments(checkpoint: Callable[..., Path], tmp_path: Path) -> list[str]:
    prompts = tmp_path / "p.jsonl"
    prompts.write_text("\n".join(json.dumps({"prompt_ids": list(ids)}) for ids in tiny.PROMPTS))
    decoding = ["--gen-length", "16", "--block-length", "8", "--threshold", "0.3", "--dtype", "float32"]
    return ["--model", str(checkpoint("llada")), "--prompts", str(prompts), *decoding]


def test_compare_adds_both_baselines_and_a_lossless_setting_agrees(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    wanted = ["--policies", "entropy:entropy_threshold=-1", "dual", "--repeats", "2", "--json", str(out)]
    assert main(["compare", *arguments, *wanted]) == 0
    data = json.loads(out.read_text())
    rows = {row["setting"]: row for row in data["summary"]}
    assert list(rows) == ["none:unmask=quota,steps=16", "none", "entropy:entropy_threshold=-1", "dual"]
    lossless = rows["entropy:entropy_threshold=-1"]
    assert (lossless["agreement"], lossless["identical"], lossless["recompute_ratio"]) == (1, 1, 1)
    assert rows["dual"]["recompute_ratio"] < 1
    assert len(data["outcomes"]) == 4 * 3 * 2
    assert data["environment"]["model"]["dtype"] == "float32"
    assert data["settings"]["entropy:entropy_threshold=-1"].startswith(
        "entropy entropy_threshold=-1 recent=64 "
    )
    assert {"speedup_parallel_low", "speedup_fastest_high", "lost", "gained"} <= set(lossless)
    said = capsys.readouterr().out
    assert "not graded" in said
    for text in data["settings"].values():
        assert text in said
    assert f"{torch.get_num_threads()} thread" in said


def test_settings_may_change_the_blocks(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [
        "--limit",
        "1",
        "--repeats",
        "1",
        "--policies",
        "dual",
        "dual:block_length=16",
        "dual:block_length=2",
    ]
    assert main(["compare", *arguments, *wanted]) == 0
    assert "dual:block_length=16" in capsys.readouterr().out


def test_one_measurement_has_no_quartiles(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    once = ["--limit", "1", "--repeats", "1", "--no-vanilla", "--policies", "dual"]
    assert main(["compare", *arguments, *once]) == 0
    said = capsys.readouterr().out
    assert "one measurement" in said
    assert ".." not in said
    assert "n = 1 prompt, one measurement of each" in said


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (["--policies", "guess"], "guess"),
        (["--policies", "dual:threshold=5"], "threshold"),
        (["--repeats", "0"], "--repeats"),
        (["--set", "recent=3"], "NAME:KEY=VALUE"),
    ],
)
def test_a_bad_comparison_is_a_usage_error(
    arguments: list[str], extra: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments, *extra]) == 2
    assert named in capsys.readouterr().err
