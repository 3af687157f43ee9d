"""Bench: shapes as text, what a point counts, and the command on a model of a few thousand weights."""

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from analysis import TraceRecorder
from analysis.__main__ import main
from analysis.bench import Place, _BatchRun, bench, check_clock, random_prompts
from analysis.bench_point import BenchPoint, to_frame
from analysis.settings import Setting
from analysis.shapes import SHAPES, parse_shape, random_model
from core import GenerationConfig, generate
from core.timing import CLOCKS

TINY = "small:num_layers=2,hidden_size=64,vocab_size=64"
BASE = GenerationConfig(gen_length=8, block_length=4, unmask="quota", steps=4)


def test_a_shape_scales_with_its_width() -> None:
    spec = parse_shape("small:hidden_size=512,num_layers=3")
    assert (spec.hidden_size, spec.num_layers, spec.num_heads, spec.intermediate_size) == (512, 3, 8, 1536)
    assert parse_shape(TINY).mask_token_id == 63
    assert parse_shape("llada-8b") == SHAPES["llada-8b"]


def test_published_shapes_have_their_published_number_of_weights() -> None:
    assert SHAPES["llada-8b"].num_parameters == pytest.approx(8.0e9, rel=0.01)
    assert SHAPES["dream-7b"].num_parameters == pytest.approx(7.6e9, rel=0.01)


@pytest.mark.parametrize("text", ["huge", "small:width=3", "small:num_layers=0", "small:family=3", "small:x"])
def test_a_bad_shape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"shape|setting"):
        parse_shape(text)


def test_points_tell_full_from_partial_steps() -> None:
    model = random_model(TINY, torch.device("cpu"), torch.float32)
    settings = [Setting("none"), Setting.parse("entropy:entropy_threshold=inf,recent=4")]
    points = list(bench(model, BASE, settings, [Place(5, 1), Place(9, 2)], repeats=2))
    assert [(p.setting.partition(":")[0], p.prompt_length, p.batch) for p in points] == [
        ("none", 5, 1),
        ("entropy", 5, 1),
        ("none", 9, 2),
        ("entropy", 9, 2),
    ]
    none, cached = points[:2]
    assert none.partial_seconds is None
    assert none.full_seconds is not None
    assert cached.partial_rows is not None
    assert 2 <= cached.partial_rows < 13
    assert none.peak_bytes is None
    assert len(to_frame(points)) == 4
    assert [BenchPoint.from_json(vars(point)) for point in points] == points
    with pytest.raises(ValueError, match="positions"):
        list(bench(model, BASE, settings, [Place(40000, 1)], repeats=1))


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("policy", ["none", "dual", "entropy:entropy_threshold=inf,recent=4"])
def test_a_batch_takes_until_its_last_sequence_ends_and_counts_all_it_generated(
    batch: int, policy: str
) -> None:
    # Of so few words end-of-text comes soon, but not in every sequence at the same step.
    shape, setting = TINY.replace("vocab_size=64", "vocab_size=8"), Setting.parse(policy)
    model = random_model(shape, torch.device("cpu"), torch.float32)
    base = GenerationConfig(gen_length=64, block_length=32, threshold=0.9, stop_at_eos=True)
    made = generate(model, random_prompts(model, Place(5, batch), seed=0), base, setting.make_policy())
    [eos] = model.spec.eos_token_ids
    useful = [one.tokens.index(eos) + 1 if eos in one.tokens else 64 for one in made]
    assert batch == 1 or len({one.num_steps for one in made}) > 1
    assert sum(useful) < 64 * batch
    [point] = bench(model, base, [setting], [Place(5, batch)], repeats=1)
    assert point.steps == max(one.num_steps for one in made)
    assert point.positions_per_second is not None
    done = point.positions_per_second * point.seconds
    assert done == pytest.approx(sum(int((np.array(one.decoded_at) >= 0).sum()) for one in made))
    # Without a stop at the end of the text, that is every position.
    [whole] = bench(model, replace(base, stop_at_eos=False), [setting], [Place(5, batch)], repeats=1)
    assert whole.positions_per_second is not None
    assert whole.positions_per_second * whole.seconds == pytest.approx(64 * batch)
    assert point.num_plans == point.steps - 1


def test_a_pass_is_full_where_it_is_for_any_sequence(recorder: TraceRecorder) -> None:
    long, other = recorder.traces()
    refreshed = [replace(step, full=step.step < 2) for step in other.steps[:3]]
    run = _BatchRun.of([replace(other, steps=tuple(refreshed)), long])
    assert [step.full for step in run.steps] == [True, True, False, False]
    assert run.seconds == pytest.approx(4.0)
    assert run.positions == long.num_committed.sum() + 3


def test_random_prompts_hold_no_special_token() -> None:
    model = random_model(TINY, torch.device("cpu"), torch.float32)
    prompts = random_prompts(model, Place(500, 2), seed=0)
    assert [len(prompt) for prompt in prompts] == [500, 500]
    assert not {62, 63} & {token for prompt in prompts for token in prompt}
    assert prompts == random_prompts(model, Place(500, 2), seed=0)


def test_bench_writes_every_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    size = ["--gen-length", "8", "--block-length", "4", "--steps", "4", "--prompt-lengths", "4,8"]
    where = ["--shapes", TINY, "--device", "cpu", "--clock", "cpu", "--repeats", "1", "--json", str(out)]
    assert main(["bench", *size, *where, "--policies", "dual"]) == 0
    data = json.loads(out.read_text())
    assert [point["setting"] for point in data["points"]] == ["none", "dual"] * 2
    assert data["environment"]["torch"]
    said = " ".join(capsys.readouterr().out.split())
    for wanted in (
        "untrained",
        "a step after the first",
        "the first step's included",
        "positions/s: all generated positions of the batch",
        "1 run after a warm-up, cpu seconds",
        "one measurement",
        "dual (no settings)",
    ):
        assert wanted in said


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (["--shapes", "huge"], "huge"),
        (["--prompt-lengths", "a"], "--prompt-lengths"),
        (["--batches", "0"], "--batches"),
        (["--policies", "guess"], "guess"),
        (["--repeats", "0"], "--repeats"),
        (["--shapes", TINY, "--dtype", "int8", "--device", "cpu"], "dtype"),
    ],
)
def test_a_bad_bench_is_a_usage_error(
    extra: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *extra]) == 2
    assert named in capsys.readouterr().err


def test_decisions_are_a_table_of_every_deciding_setting_with_its_spread(
    capsys: pytest.CaptureFixture[str],
) -> None:
    size = ["--shapes", TINY, "--prompt-lengths", "5,9", "--gen-length", "8", "--block-length", "4"]
    asked = ["--policies", "entropy:entropy_threshold=inf", "elastic", "--device", "cpu", "--decisions"]
    assert main(["bench", *size, "--steps", "4", "--repeats", "2", *asked]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [(row[0].lstrip("| ").partition(":")[0], row[3]) for row in rows[2:]] == [
        ("entropy", "5"), ("elastic", "5"), ("entropy", "9"), ("elastic", "9")
    ]  # fmt: skip
    # The first decision of a run admits the prompt and is left out.
    assert {row[8] for row in rows[2:]} == {"6"}
    for row in rows[2:]:
        low, high = map(float, row[7].split(" to "))
        assert low <= float(row[6]) <= high
        # Quartiles of two runs would be made up.
        assert row[10].startswith("range ")


def test_processor_seconds_leave_out_what_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step in which this process waits for something else counts as what it computed."""
    model = random_model(TINY, torch.device("cpu"), torch.float32)
    head = model.backbone.logits
    monkeypatch.setattr(model.backbone, "logits", lambda hidden: time.sleep(0.05) or head(hidden))
    found = {
        clock: next(bench(model, BASE, [Setting("none")], [Place(5, 1)], 1, clock=clock)) for clock in CLOCKS
    }
    assert found["wall"].seconds >= 4 * 0.05
    assert found["cpu"].seconds < found["wall"].seconds / 2
    assert [point.clock for point in found.values()] == ["wall", "cpu"]
    with pytest.raises(ValueError, match="clock is 'sun'; allowed on cpu: wall, cpu"):
        next(bench(model, BASE, [Setting("none")], [Place(5, 1)], 1, clock="sun"))
    with pytest.raises(ValueError, match="allowed on cuda: wall"):
        check_clock("cpu", torch.device("cuda"))


def test_points_written_without_quartiles_are_read() -> None:
    point = next(bench(random_model(TINY, torch.device("cpu"), torch.float32), BASE, [Setting("none")],
                       [Place(5, 1)], repeats=1))  # fmt: skip
    assert point.overhead_low is None
    old = {name: value for name, value in vars(point).items() if not name.endswith(("_low", "_high"))}
    assert BenchPoint.from_json(old).seconds == point.seconds
    with pytest.raises(ValueError, match="seconds"):
        BenchPoint.from_json({name: value for name, value in old.items() if name != "seconds"})
