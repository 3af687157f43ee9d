"""Traces: what the recorder keeps, what the totals count, and that a file gives back what was saved."""

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

from analysis import Trace, TraceRecorder
from tests.analysis.conftest import GEN_LENGTH, MASK, NUM_LAYERS, run_events


def test_canvas_positions_are_counted_without_padding(recorder: TraceRecorder) -> None:
    longer, shorter = recorder.traces()
    assert (longer.canvas_length, shorter.canvas_length) == (7, 6)
    assert [step.committed for step in shorter.steps] == [(1,), (0,), (2,), (3,)]
    assert shorter.steps[1].refreshed.tolist() == [0, 2, 2, 0, 0, 0]
    assert shorter.tokens == (21, 22, 23, 24)


def test_totals_count_what_the_steps_hold(trace: Trace) -> None:
    rows = 7 + 3 * (2 * 2 / NUM_LAYERS)
    totals = trace.totals
    assert totals["recompute_ratio"] == pytest.approx(rows / (4 * 7))
    assert totals["tokens_per_step"] == 1, "every committed position counts"
    assert totals["full_steps"] == 1
    assert totals["decision_overhead"] == pytest.approx(0.1)
    assert totals["tokens_per_second"] == pytest.approx(3 / 4), "tokens after end-of-text count for nothing"


def test_max_entropy_and_decoded_at(trace: Trace) -> None:
    assert trace.max_entropy == pytest.approx([0.1, 0.4, 0.7, 1.0])
    assert trace.decoded_at.tolist() == [0, 1, 2, 3]


def test_trace_can_be_read_in_mid_run() -> None:
    recorder = TraceRecorder(decode=lambda ids: " ".join(map(str, ids)))
    with pytest.raises(ValueError, match="no run"):
        recorder.trace()
    for event in list(run_events())[:3]:
        recorder.observe(event)
    partial = recorder.trace(0)
    assert partial.tokens == (11, 12, MASK, MASK)
    assert not partial.complete
    assert partial.text == "11 12"
    assert partial.decoded_at.tolist() == [0, 1, -1, -1]
    assert Trace.from_json(partial.to_json()).totals == partial.totals
    with pytest.raises(ValueError, match="request is 2"):
        recorder.trace(2)


def test_a_run_without_steps_has_no_ratios() -> None:
    recorder = TraceRecorder()
    recorder.observe(next(iter(run_events())))
    totals = recorder.trace(0).totals
    assert totals["steps"] == 0
    assert totals["recompute_ratio"] is None
    assert totals["tokens_per_second"] is None
    assert len(recorder.trace(0).to_frame()) == 0


def test_file_round_trip_keeps_everything(trace: Trace, tmp_path: Any) -> None:
    path = tmp_path / "trace.json"
    trace.save(path)
    again = Trace.load(path)
    assert json.loads(path.read_text())["schema"] == 1
    assert again.to_json() == trace.to_json()
    assert again.policy["config"]["entropy_threshold"] == math.inf
    for name in ("drift", "flips", "seen"):
        before, after = trace.steps[2].measurements[name], again.steps[2].measurements[name]
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(trace.refreshed, again.refreshed)


def test_recounting_refreshed_positions_gives_the_ratio(trace: Trace) -> None:
    data = trace.to_json()
    rows = 0.0
    for step in data["steps"]:
        layers = step.get("refreshed_layers", [NUM_LAYERS] * len(step["refreshed_positions"]))
        rows += sum(c * n for (_, c), n in zip(step["refreshed_positions"], layers, strict=True)) / NUM_LAYERS
    canvas = len(data["prompt_ids"]) + len(data["tokens"])
    assert data["totals"]["recompute_ratio"] == pytest.approx(rows / (len(data["steps"]) * canvas))


def damage(data: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split("/")
    for part in parents:
        data = data[int(part) if part.isdigit() else part]
    if value is KeyError:
        del data[last]
    else:
        data[last] = value


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("schema", 2, "schema"),
        ("steps", KeyError, "steps"),
        ("tokens", "abc", "tokens"),
        ("prompt_ids", [], "prompt_ids"),
        ("model/num_layers", 0, "model.num_layers"),
        ("model/eos_token_ids", None, "model.eos_token_ids"),
        ("generation/block_length", KeyError, "generation.block_length"),
        ("generation/block_length", 0, "generation.block_length"),
        ("steps/1/full", "yes", r"steps\[1\].full"),
        ("steps/1/tokens", [1, 2], r"steps\[1\].tokens"),
        ("steps/1/step", 3, r"steps\[1\].step"),
        ("steps/1/committed", [9], r"steps\[1\].committed"),
        ("steps/1/committed", [0], r"steps\[1\].committed"),
        # The canvas goes on for the prompt's length.
        ("steps/1/committed", [GEN_LENGTH], r"steps\[1\].committed"),
        ("steps/1/tokens", [2**31], r"steps\[1\].tokens"),
        ("steps/1/tokens", [9], r"steps\[1\].tokens"),
        ("steps/0/seconds/forward", 1e308, r"steps\[0\].seconds.forward"),
        ("steps/1/reason", "\ud800", "written again"),
        ("model/ref", "a\udfff", "written again"),
        ("model/num_layers", 2**63, "model.num_layers"),
        ("steps/1/refreshed", 40, r"steps\[1\].refreshed"),
        ("steps/0/refreshed_positions", [[0, 8]], r"steps\[0\].refreshed_positions"),
        ("steps/0/seconds/plan", -1.0, r"steps\[0\].seconds.plan"),
        ("steps/0/measurements/drift", [[1], [1, 2]], r"steps\[0\].drift"),
    ],
)
def test_a_damaged_file_is_refused_by_field(trace: Trace, path: str, value: Any, named: str) -> None:
    data = json.loads(json.dumps(trace.to_json()))
    assert Trace.from_json(copy.deepcopy(data)).totals == trace.totals
    damage(data, path, value)
    with pytest.raises(ValueError, match=named) as caught:
        Trace.from_json(data)
    assert "\n" not in str(caught.value)


def test_a_text_that_no_step_wrote_is_refused(trace: Trace) -> None:
    """Steps cut away, or tokens changed: what is counted of them would be of another run."""
    data = json.loads(json.dumps(trace.to_json()))
    with pytest.raises(ValueError, match=r"tokens: a token that no step committed"):
        Trace.from_json({**data, "steps": data["steps"][:1]})


def test_a_small_file_does_not_become_gigabytes(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is drawn of a trace is of size steps x canvas."""
    data = json.loads(json.dumps(trace.to_json()))
    idle = {**data["steps"][-1], "committed": [], "tokens": [], "confidence": [], "entropy": []}
    endless = {**data, "steps": data["steps"] + [idle] * 1500}
    with pytest.raises(ValueError, match=r"steps: 1504 steps for 4 tokens"):
        Trace.from_json(endless)
    monkeypatch.setattr("analysis.trace_file.MAX_CELLS", 1000)
    with pytest.raises(ValueError, match="at most 1000"):
        Trace.from_json({**data, "prompt_ids": [1] * 1000})


def test_a_position_is_committed_once(trace: Trace) -> None:
    data = json.loads(json.dumps(trace.to_json()))
    step = data["steps"][1]
    for name in ("committed", "tokens", "confidence", "entropy"):
        step[name] = step[name] * 2
    with pytest.raises(ValueError, match=r"steps\[1\].committed: one position twice"):
        Trace.from_json(data)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema": 1, "extra": ' + "[" * 100_000])
def test_endless_nesting_is_no_trace(text: str, tmp_path: Any) -> None:
    (tmp_path / "deep.json").write_text(text)
    with pytest.raises(ValueError, match=r"deep\.json is not JSON"):
        Trace.load(tmp_path / "deep.json")


def test_frames_have_a_row_a_step_and_a_row_a_token(trace: Trace) -> None:
    assert trace.to_frame()["num_committed"].tolist() == [1, 1, 1, 1]
    tokens = trace.tokens_frame()
    assert len(tokens) == GEN_LENGTH
    assert tokens["entropy"].tolist() == pytest.approx([0.1, 0.4, 0.7, 1.0])
