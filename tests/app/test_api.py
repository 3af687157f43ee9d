"""The endpoints over HTTP, as a program uses them: typed, checked, in line with the page's visitors."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.trace import Trace
from app.ui import build, launch_options
from app.workshop import Workshop
from core import POLICIES

SHORT = {"gen_length": 16, "block_length": 8}
HANDBOOK = Path(__file__).resolve().parents[2] / "docs" / "deploy.md"
ENDPOINTS = ("/policies", "/models", "/run", "/compare")


@pytest.fixture
def address(workshop: Workshop) -> Iterator[str]:
    page = build(workshop)
    page.launch(
        **launch_options(), prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", ssr_mode=False
    )
    yield page.local_url.rstrip("/")
    page.close()


def call(address: str, name: str, *data: object) -> object:
    """POST the call, then read its event stream to the end. Raises AssertionError with the error's text."""
    body = json.dumps({"data": data}).encode()
    request = urllib.request.Request(
        f"{address}/gradio_api/call/{name}", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{address}/gradio_api/call/{name}/{event}", timeout=60) as stream:
        lines = stream.read().decode().splitlines()
    kind, content = next((k, c) for k, c in pairwise(lines) if k in ("event: complete", "event: error"))
    assert kind == "event: complete", content
    return json.loads(content.removeprefix("data: "))[0]


def test_program_can_list_run_and_compare(address: str) -> None:
    assert list(call(address, "policies")) == list(POLICIES)
    trace = Trace.from_json(
        call(address, "run", "one two", "entropy:entropy_threshold=-1", SHORT, "embedded")
    )
    assert trace.complete
    assert trace.totals["recompute_ratio"] == 1
    both = call(address, "compare", "one two", ["none", "dual"], SHORT, "embedded")
    assert [Trace.from_json(trace).policy["name"] for trace in both["traces"]] == ["none", "dual"]
    assert len(both["lanes"]) == 2
    with pytest.raises(AssertionError, match="policy is 'magic'"):
        call(address, "run", "one two", "magic", SHORT, "embedded")
    with pytest.raises(AssertionError, match="generation has no setting 'gen_len'"):
        call(address, "run", "one two", "none", {"gen_len": 64}, "embedded")
    with pytest.raises(AssertionError, match="policy is ''"):
        call(address, "compare", "one two", ["none", "", "dual"], SHORT, "embedded")
    with urllib.request.urlopen(f"{address}/gradio_api/info", timeout=60) as answer:
        named = json.load(answer)["named_endpoints"]
    assert set(named) == set(ENDPOINTS)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("run", ["one two", 5, SHORT, "embedded"], "policies are no list of texts"),
        ("compare", ["one two", [5], SHORT, "embedded"], "policies are no list of texts"),
        ("compare", ["one two", None, SHORT, "embedded"], "policies are no list of texts"),
        ("compare", ["one two", "none", SHORT, "embedded"], "policies are no list of texts"),
        ("run", ["one two", "none", SHORT, ["embedded"]], "model is \\['embedded'\\]; allowed: a text"),
        ("run", [7, "none", SHORT, "embedded"], "prompt is 7; allowed: a text"),
        ("run", ["one two", "none", "short", "embedded"], "generation"),
    ],
)
def test_arguments_of_another_kind_are_one_sentence(
    address: str, name: str, data: list[object], told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        call(address, name, *data)


def test_example_of_the_handbook_runs(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", HANDBOOK.read_text(encoding="utf-8"), re.DOTALL)
    assert "http://127.0.0.1:7860" in example
    exec(compile(example.replace("http://127.0.0.1:7860", address), HANDBOOK.name, "exec"), {})
    text, ratio = capsys.readouterr().out.splitlines()[-1].rsplit(" ", 1)
    assert text
    assert 0 < float(ratio) <= 1


def test_program_can_choose_among_the_models_that_are_offered(address: str, workshop: Workshop) -> None:
    offered = call(address, "models")
    assert {"model": "embedded", "loaded": workshop.shelf.holds("embedded")} in offered
    workshop.shelf.allowed = ("embedded",)
    assert call(address, "models") == [{"model": "embedded", "loaded": workshop.shelf.holds("embedded")}]
    with pytest.raises(AssertionError, match="allowed here: embedded"):
        call(address, "run", "one two", "none", SHORT, "/etc")
    assert call(address, "run", "one two", "none", SHORT, "embedded")
