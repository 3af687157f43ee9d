"""Floor: parts and products of a step, and plain loops that decode what the engine decodes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from analysis.__main__ import build_parser, main
from analysis.bench_floor import PARTS, PRODUCTS, FloorPoint, measure_floor
from analysis.bench_floor import to_frame as floor_frame
from analysis.bench_plain import KINDS, PlainModel, measure_plain, plain_generate
from analysis.cli import floor as floor_module
from analysis.shapes import random_model
from core import GenerationConfig, LanguageModel, create_policy, generate
from tests.refusals import refusal
from tests.tiny import PROMPTS

TINY = "small:num_layers=2,hidden_size=64,vocab_size=90"
LOOPS = GenerationConfig(gen_length=24, block_length=8, unmask="quota", steps=12)


@pytest.fixture(scope="module")
def small() -> LanguageModel:
    return random_model(TINY, torch.device("cpu"), torch.float32)


def measured(model: LanguageModel, **options: object) -> list[FloorPoint]:
    size = {"length": 128, "row_counts": [40, 128], "repeats": 3, "gen_length": 64} | options
    return list(measure_floor(model, **size))  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [1, 2])
def test_steps_recompute_as_many_rows_as_asked(small: LanguageModel, batch: int) -> None:
    points = measured(small, batch=batch)
    assert [(p.rows, p.targets, p.batch, p.repeats) for p in points] == [
        (40, 32, batch, 3),
        (128, 32, batch, 3),
    ]
    for point in points:
        assert set(point.parts) == {*PARTS, "rest"}
        assert set(point.products) == set(PRODUCTS)
        assert sum(point.parts.values()) == pytest.approx(point.step_seconds)
        assert point.ratio_low <= point.ratio <= point.ratio_high
        assert 0 < point.plan_share < 1
    frame = floor_frame(points)
    assert list(frame["rows"]) == [40, 128]
    assert frame["products.mlp"].gt(0).all()


def test_a_full_steps_products_take_longer_than_a_partial_steps(small: LanguageModel) -> None:
    few, all_of_them = measured(small, clock="cpu", repeats=9)
    assert all_of_them.floor_seconds > few.floor_seconds


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"row_counts": [31]}, "rows"),
        ({"row_counts": [129]}, "rows"),
        ({"clock": "sun"}, "clock"),
        ({"repeats": 40}, "repeats"),
        ({"length": 64}, "length"),
        ({"length": 10**6}, "length"),
    ],
)
def test_sizes_that_cannot_be_measured_are_refused(
    small: LanguageModel, options: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        measured(small, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["llada", "a2d-qwen3"])
def test_a_plain_loop_decodes_what_the_engine_decodes(
    models: dict[str, LanguageModel], family: str, kind: str
) -> None:
    plain = PlainModel(models[family])
    for prompt in PROMPTS:
        ours = generate(models[family], [prompt], LOOPS, create_policy(kind))[0]
        assert plain_generate(plain, prompt, LOOPS, kind) == list(ours.tokens)


def test_loops_and_engine_are_timed_in_pairs(models: dict[str, LanguageModel]) -> None:
    points = list(measure_plain(models["llada"], PROMPTS[0], LOOPS, repeats=2))
    assert [(p.kind, p.repeats, p.equal) for p in points] == [(kind, 2, 1.0) for kind in KINDS]
    assert all(p.ratio_low <= p.ratio <= p.ratio_high for p in points)


def test_loops_that_cannot_be_compared_are_refused(models: dict[str, LanguageModel]) -> None:
    with pytest.raises(ValueError, match="shifted"):
        list(measure_plain(models["dream"], PROMPTS[0], LOOPS))
    with pytest.raises(ValueError, match="steps"):
        list(measure_plain(models["llada"], PROMPTS[0], GenerationConfig(gen_length=24, block_length=8)))


def test_floor_prints_and_writes_its_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "floor.json"
    size = [
        "--shape",
        TINY,
        "--length",
        "128",
        "--rows",
        "32,128",
        "--repeats",
        "2",
        "--plain",
        "1",
        "--memory",
    ]
    assert main(["floor", *size, "--device", "cpu", "--threads", "1", "--json", str(out)]) == 0
    data = json.loads(out.read_text())
    assert [point["rows"] for point in data["points"]] == [32, 128]
    assert [loop["kind"] for loop in data["plain"]] == list(KINDS)
    assert data["memory"]["kv_bytes"] == 2 * 2 * 64 * 4 * 128
    assert data["memory"]["peak_bytes"] >= 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("projections", "quartiles", "plain loop", "peak above"))


def test_one_round_has_no_quartiles(capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--shape", TINY, "--length", "128", "--rows", "32", "--plain", "1", "--device", "cpu"]
    assert main(["floor", *size, "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("one measurement") == 1 + len(KINDS)
    assert "1 round," in printed


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--rows", "0"], "--rows is 0"),
        (["--rows", "31"], "--rows is 31; allowed: 32 to --length 1024"),
        (["--rows", "32,1025"], "--rows is 1025; allowed: 32 to --length 1024"),
        (["--length", "10"], "--length is 10; allowed: at least 128 for --repeats 20"),
        (["--length", "-5"], "--length is -5; allowed: at least"),
        (["--length", "127", "--repeats", "1"], "--length is 127; allowed: at least 128 for --repeats 1"),
        (["--length", "9999999"], "--length is 9999999;"),
        (["--repeats", "0"], "--repeats is 0; allowed: 1 to 221"),
        (["--repeats", "222"], "--repeats is 222; allowed: 1 to 221"),
        *(([f"--{name}", "99999999"], f"--{name} is 99999999; allowed: 1 to")
          for name in ("threads", "batch", "repeats", "plain")),
        (["--threads", "0"], "--threads is 0; allowed: 1 to 1024"),
        (["--shape", "huge"], "huge"),
        (["--clock", "sun"], "sun"),
    ],
)  # fmt: skip
def test_a_bad_floor_is_refused_in_terms_of_its_options(
    extra: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(main, ["floor", "--device", "cpu", *extra], capsys)


def test_every_length_and_repeats_that_are_let_in_can_be_measured(small: LanguageModel) -> None:
    for length, repeats in ((128, 1), (128, 29), (129, 29), (191, 4), (192, 61), (300, 20), (1024, 221)):
        parsed = build_parser().parse_args(["floor", "--length", str(length), "--repeats", str(repeats)])
        rows = floor_module._sizes(parsed)
        assert rows == sorted({*(count for count in (32, 64, 128) if count <= length), length})
        size = {"length": length, "gen_length": floor_module.generated(length), "repeats": repeats}
        points = list(measured(small, row_counts=rows[:1], **size))
        assert points[0].length == length


@pytest.mark.parametrize("fault", [KeyboardInterrupt, RuntimeError])
def test_rows_are_told_as_they_come_and_kept_whatever_ends_the_rest(
    fault: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "floor.json"
    whole = floor_module.measure_floor

    def ending(*arguments: Any, **options: Any) -> Iterator[FloorPoint]:
        yield next(whole(*arguments, **options))
        told = capsys.readouterr().out
        assert "canvas 128" in told
        assert told.splitlines()[-1].split()[0] == "32"
        raise fault

    monkeypatch.setattr(floor_module, "measure_floor", ending)
    command = ["floor", "--shape", TINY, "--length", "128", "--device", "cpu", "--repeats", "1"]
    if fault is RuntimeError:
        with pytest.raises(RuntimeError):
            main([*command, "--json", str(out)])
    else:
        assert main([*command, "--json", str(out)]) == 1
        assert "interrupted" in capsys.readouterr().out
    kept = json.loads(out.read_text())
    assert [point["rows"] for point in kept["points"]] == [32]
    assert not kept["complete"]
