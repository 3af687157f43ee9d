"""device-check at a CPU's size: every point is on disk as it is measured, the roofline is the model's."""

import json
from pathlib import Path

import pytest
import torch

from analysis.__main__ import main
from analysis.bench_roofline import Device, ModelCost
from analysis.cli import device_check
from analysis.shapes import parse_shape

SHAPE = "small:hidden_size=64,num_layers=1,vocab_size=90"
SMALL = ["device-check", "--device", "cpu", "--dtype", "float32", "--shapes", SHAPE, "--gen-length", "64"]
SIZES = ["--prompt-lengths", "32,64", "--rows", "32,64", "--repeats", "2"]


def test_every_size_is_measured_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    peaks = ["--tflops", "0.5", "--bandwidth", "40"]
    assert main([*SMALL, *SIZES, *peaks, "--out", str(out)]) == 0
    header, *points = map(json.loads, out.read_text().splitlines())
    assert header["kind"] == "device-check"
    assert header["environment"]["model"]["device"] == "cpu"
    assert [(one["prompt"], one["rows"]) for one in points] == [
        (32, 96), (32, 32), (32, 64), (64, 128), (64, 32), (64, 64),
    ]  # fmt: skip
    cost = ModelCost.of(parse_shape(SHAPE), torch.float32.itemsize)
    for one in points:
        least = cost.seconds(Device("cpu", 0.5e12, 40e9, 0.0), one["rows"], 32, one["length"])
        assert one["roofline_seconds"] == pytest.approx(least)
        assert one["floor_seconds"] > 0
        assert 0 < one["parts"]["plan"] < one["step_seconds"]
    assert len(capsys.readouterr().out.splitlines()) == 3 + len(points)


def test_without_peaks_there_is_no_roofline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    assert main([*SMALL, "--prompt-lengths", "32", "--rows", "32", "--repeats", "1", "--out", str(out)]) == 0
    assert "roofline: not known" in capsys.readouterr().out
    assert json.loads(out.read_text().splitlines()[1])["roofline_seconds"] is None


@pytest.mark.parametrize("end", ["minutes", "interrupt", "failure"])
def test_an_early_end_loses_nothing(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, whole, clock, calls = tmp_path / "out.jsonl", device_check.measure_floor, [0.0], []

    def ending(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        clock[0] += 100
        if len(calls) > 2 and end != "minutes":
            raise KeyboardInterrupt if end == "interrupt" else RuntimeError("out of memory")
        return whole(*arguments, **options)

    monkeypatch.setattr(device_check, "measure_floor", ending)
    monkeypatch.setattr(device_check.time, "monotonic", lambda: clock[0])
    minutes = "3" if end == "minutes" else "60"
    command = [*SMALL, *SIZES, "--minutes", minutes, "--out", str(out)]
    if end == "failure":
        with pytest.raises(RuntimeError):
            main(command)
    else:
        assert main(command) == 1
        assert "of 6 sizes" in capsys.readouterr().out
    assert len(out.read_text().splitlines()) == 1 + 2


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--rows", "16"], "--rows is 16"),
        (["--rows", "96"], "--rows is 96"),
        (["--rows", "32,32"], "--rows names 32 twice"),
        (["--prompt-lengths", "0"], "--prompt-lengths is 0"),
        (["--prompt-lengths", "99999"], "--prompt-lengths for small"),
        (["--gen-length", "40"], "--gen-length is 40"),
        (["--gen-length", "32"], "--gen-length is 32"),
        (["--repeats", "0"], "--repeats is 0"),
        (["--repeats", "100"], "--repeats is 100"),
        (["--minutes", "nan"], "--minutes is nan"),
        (["--minutes", "-1"], "--minutes is -1"),
        (["--tflops", "5"], "give both or neither"),
        (["--tflops", "inf", "--bandwidth", "1"], "--tflops is inf"),
        (["--shapes", "small", "small"], "--shapes names small twice"),
        (["--shapes", "x"], "shape is 'x'"),
        (["--device", "nonsense"], "device is 'nonsense'"),
        (["--out", "/no/such/place"], "/no/such/place"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    options: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *usual = SMALL
    out = str(tmp_path / "out.jsonl")
    Path(out).write_text("kept")
    usual += ["--prompt-lengths", "32", "--rows", "32", "--repeats", "1", "--out", out]
    pairs = zip(usual[::2], usual[1::2], strict=True)
    others = [word for option, value in pairs if option not in options for word in (option, value)]
    assert main([command, *others, *options]) == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1
    assert Path(out).read_text() == "kept"
