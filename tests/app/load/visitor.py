"""Visitor: a browser tab as the server sees it, spoken over plain HTTP, so that many fit on one machine."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

END = ("done", "stopped", "error")
MOST_SECONDS = 180.0


@dataclass(frozen=True)
class Wiring:
    """Which of the page's functions Run is, what it takes by element id, and which outputs are whose.

    drawings: the functions that draw more of the page once one of Run's states has changed, by that state.
    presence: the function that a tab tells of its coming and going. look: the one that tells how a run
    stands whose connection was lost.
    """

    function: int
    presence: int
    look: int
    inputs: tuple[tuple[str, Any], ...]
    outputs: tuple[str, ...]
    drawings: dict[int, int]

    @classmethod
    def read(cls, config: dict[str, Any]) -> "Wiring":
        """From the page's /config."""
        parts = {part["id"]: part["props"] for part in config["components"]}
        names = {key: str(props.get("elem_id") or key) for key, props in parts.items()}
        names_of = {name: key for key, name in names.items()}
        chosen = next(d for d in config["dependencies"] if [names_of["run"], "click"] in d["targets"])
        inputs = tuple((names[key], parts[key].get("value")) for key in chosen["inputs"])
        outputs = tuple(names[key] for key in chosen["outputs"])
        changed = [(target, d["id"]) for d in config["dependencies"] for target in d["targets"]]
        drawings = {key: function for (key, event), function in changed if event == "change"}
        return cls(
            chosen["id"],
            next(d["id"] for d in config["dependencies"] if d["api_name"] == "presence"),
            next(d["id"] for d in config["dependencies"] if [names_of["status"], "click"] in d["targets"]),
            inputs,
            outputs,
            {key: drawings[key] for key in drawings if key in chosen["outputs"]},
        )


@dataclass
class Seen:
    """One press of Run as a visitor saw it; times are seconds since the epoch, 0 where it did not come.

    drawn: what each drawing after the end has brought.
    """

    visitor: str
    pressed: float
    first_step: float = 0.0
    ended: float = 0.0
    said: list[str] = field(default_factory=list)
    frames: int = 0
    drawn: list[Any] = field(default_factory=list)

    @property
    def end(self) -> str:
        """done, stopped or error; empty before the end."""
        return next((word for word in END if self.said and self.said[-1].startswith(word)), "")


class Visitor:
    """A tab. Enter it as a context manager to keep it open; leaving the block closes it."""

    def __init__(self, client: httpx.AsyncClient, wiring: Wiring, **generation: Any) -> None:
        self.name = secrets.token_hex(6)
        self._client, self._wiring, self._generation = client, wiring, generation

    async def __aenter__(self) -> "Visitor":
        self._heartbeat = asyncio.create_task(self._stay())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """What closing a tab does: it says so, and its connections end."""
        await self._post("run/predict", self._wiring.presence, ["gone"])
        await self.lose()

    async def lose(self) -> None:
        """What a lost network does, seen from the server: the connections end without a word."""
        self._heartbeat.cancel()
        await asyncio.gather(self._heartbeat, return_exceptions=True)

    async def come_back(self) -> None:
        """What a tab says whose connection was lost and is there again."""
        await self._post("run/predict", self._wiring.presence, ["back"])

    async def look(self) -> list[Any]:
        """The page's parts as they are now, Run's outputs first, for a tab that has seen no run's end."""
        return (await self._post("run/predict", self._wiring.look, [], {"seen": -1}))["data"]

    async def _stay(self) -> None:
        async with self._client.stream("GET", f"/gradio_api/heartbeat/{self.name}") as stream:
            async for _ in stream.aiter_lines():
                pass

    async def press_run(self, observe: str = "not at all", until: str | None = None) -> Seen:
        """Press Run and watch to the end, or until the status line holds a text.

        What the page then has drawn is awaited too, but no part of the run.
        """
        seen = Seen(self.name, time.time())
        entries = {**dict(self._wiring.inputs), "observe": observe}
        entries["generation"] = json.dumps({**json.loads(entries["generation"]), **self._generation})
        await self._post("queue/join", self._wiring.function, list(entries.values()))
        self._changed: list[int] = []
        async with asyncio.timeout(MOST_SECONDS):
            async for status, frame in self._told():
                if status:
                    seen.said.append(status)
                if frame:
                    seen.frames += 1
                    seen.first_step = seen.first_step or time.time()
                if until is not None and until in status:
                    break
        seen.ended = time.time()
        if until is None:
            for state in self._changed:
                answer = await self._post("run/predict", self._wiring.drawings[state], [None])
                seen.drawn.append(answer["data"])
        return seen

    async def _post(self, path: str, function: int, data: list[Any], event: Any = None) -> Any:
        body = {"data": data, "fn_index": function, "session_hash": self.name, "event_data": event}
        answer = await self._client.post(f"/gradio_api/{path}", json=body)
        answer.raise_for_status()
        return answer.json()

    async def _told(self) -> AsyncIterator[tuple[str, bool]]:
        """Each message's status line, empty where it did not change, and whether it brought a frame."""
        status, grid = (self._wiring.outputs.index(name) for name in ("status", "grid"))
        values: dict[int, Any] = {}
        async with self._client.stream(
            "GET", "/gradio_api/queue/data", params={"session_hash": self.name}
        ) as stream:
            async for line in stream.aiter_lines():
                message: dict[str, Any] = {"msg": ""}
                if line.startswith("data:"):
                    message = json.loads(line[5:])
                if message["msg"] == "close_stream":
                    return
                output = message.get("output") or {}
                self._changed += output.get("changed_state_ids") or []
                data = output.get("data") or []
                if message["msg"] != "process_generating" or len(data) <= max(status, grid):
                    continue
                new = {}
                for part in (status, grid):
                    values[part], new[part] = edited(values.get(part), data[part])
                yield json.loads(values[status])["text"] if new[status] else "", new[grid]


def edited(before: Any, sent: Any) -> tuple[Any, bool]:
    """An output after what Gradio has sent of it, the value itself or edits; and whether it is a new text."""
    value = sent
    if isinstance(sent, list):
        value = before
        for action, _, part in sent:
            value = value + part if action == "append" else part
    return value, isinstance(value, str) and value != before
