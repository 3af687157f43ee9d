"""The MCP switch: off, nobody is served; on, the endpoints are tools with schemas that say what to give."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.ui import build, launch_options
from app.workshop import Workshop
from tests.app.load.apart import run_apart

TOOLS = {"policies", "models", "run", "compare"}
SHORT = {"gen_length": 16, "block_length": 8}


@contextmanager
def served(workshop: Workshop) -> Iterator[str]:
    page = build(workshop)
    page.launch(
        **launch_options(), prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", ssr_mode=False
    )
    try:
        yield f"{page.local_url.rstrip('/')}/gradio_api/mcp/"
    finally:
        page.close()


def test_it_is_off_unless_asked_for(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADIO_MCP_SERVER", raising=False)
    with served(workshop) as url:
        ask = urllib.request.Request(f"{url}schema", headers={"Accept": "application/json"})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(ask, timeout=60)


async def visit(url: str) -> dict[str, Any]:
    """What an assistant sees and gets: the tools, two answers, a refusal."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with (
        streamable_http_client(url) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        run = {"prompt": "one two", "policy": "dual", "generation": SHORT}
        return {
            "tools": (await session.list_tools()).tools,
            "models": await session.call_tool("models", {}),
            "run": await session.call_tool("run", run),
            "refused": await session.call_tool("run", {"prompt": "one", "policy": "magic"}),
        }


def test_assistant_finds_the_endpoints_as_tools(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp", reason="MCP needs the package mcp: requirements-optional.txt")
    monkeypatch.setenv("GRADIO_MCP_SERVER", "True")
    with served(workshop) as url:
        seen = run_apart(visit(url))
    tools = {tool.name: tool for tool in seen["tools"]}
    assert set(tools) == TOOLS
    for tool in tools.values():
        assert tool.description
        for name, schema in tool.inputSchema["properties"].items():
            assert schema.get("type") or schema.get("oneOf"), name
            assert schema["description"], f"{tool.name} does not say what {name} is"
    assert tools["run"].inputSchema["required"] == ["prompt"]
    assert tools["compare"].inputSchema["properties"]["policies"]["items"] == {"type": "string"}
    assert "embedded" in seen["models"].content[0].text
    assert "recompute_ratio" in seen["run"].content[0].text
    assert not seen["run"].isError
    assert seen["refused"].isError
    assert "policy is 'magic'" in seen["refused"].content[0].text
    assert json.dumps(tools["run"].inputSchema)
