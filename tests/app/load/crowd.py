"""What twenty visitors get, what is left of a closed tab, and whether memory grows; over HTTP, no browser."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.app.load.apart import run_apart
from tests.app.load.server import Server
from tests.app.load.visitor import Seen, Visitor, Wiring

SHORT = {"gen_length": "32"}
LONG = {"gen_length": "128", "unmask": "quota"}
VISITORS = 20
RUNS_EACH = 10
FREED_SECONDS = 60.0
MOST_SECONDS = float(os.environ.get("LOAD_SECONDS", "300"))


@dataclass(frozen=True)
class Crowd:
    """seen: in the order in which they pressed Run. served: their names in the order of their first steps."""

    seen: list[Seen]
    served: list[str]


@dataclass(frozen=True)
class Closed:
    """A tab closed in mid-run. steps: computed after the server knew; run, traces: seconds until freed."""

    steps: int
    run: float
    traces: float


Use = Callable[[httpx.AsyncClient, Wiring], Awaitable[Any]]


def visit(server: Server, use: Use) -> Any:
    """Call with a client and the page's wiring, after one run that warms the server up."""

    async def visiting() -> Any:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=server.address, limits=limits, timeout=60) as client:
            wiring = Wiring.read((await client.get("/config")).json())
            async with Visitor(client, wiring, **SHORT) as first:
                await first.press_run("one token a step")
            server.held()
            return await use(client, wiring)

    return run_apart(visiting())


def twenty(server: Server) -> Crowd:
    """Twenty visitors press Run within half a second."""

    async def use(client: httpx.AsyncClient, wiring: Wiring) -> Crowd:
        visitors = [await Visitor(client, wiring, **SHORT).__aenter__() for _ in range(VISITORS)]
        runs = []
        for visitor in visitors:
            runs.append(asyncio.create_task(visitor.press_run()))
            await asyncio.sleep(0.02)
        seen = await asyncio.gather(*runs)
        for visitor in visitors:
            await visitor.close()
        joined = [who for _, what, who in server.notes() if what == "joined"]
        in_order = sorted(seen, key=lambda one: joined.index(one.visitor))
        return Crowd(in_order, [one.visitor for one in sorted(seen, key=lambda one: one.first_step)])

    return visit(server, use)


def closings(server: Server, tabs: int = 10) -> list[Closed]:
    """Tabs closed while they decode, one after the other."""

    async def use(client: httpx.AsyncClient, wiring: Wiring) -> list[Closed]:
        before = server.held()["traces"]
        found = []
        for tab in range(tabs):
            visitor = await Visitor(client, wiring, **LONG).__aenter__()
            # Its stream ends with this, the rest of its connections right after.
            closed = (await visitor.press_run(until=f"step {5 + tab}")).ended
            await visitor.close()
            notes, left = server.wait_for("left", visitor.name, FREED_SECONDS)
            knew = next((at for at, what, who in notes if what == "closed" and who == visitor.name), closed)
            while server.held()["traces"] > before and time.time() < closed + FREED_SECONDS:
                await asyncio.sleep(0.25)
            steps = sum(1 for at, what, _ in notes if what == "step" and at > knew)
            found.append(Closed(steps, (left or float("inf")) - closed, time.time() - closed))
        return found

    return visit(server, use)


def many_runs(server: Server, runs: int = 200) -> list[dict[str, int]]:
    """What the server holds before any, then after each visitor of RUNS_EACH runs has closed the tab.

    Fewer runs where these take longer than MOST_SECONDS.
    """

    async def use(client: httpx.AsyncClient, wiring: Wiring) -> list[dict[str, int]]:
        held = [server.held()]
        until = time.monotonic() + MOST_SECONDS
        for _ in range(runs // RUNS_EACH):
            if time.monotonic() > until:
                break
            async with Visitor(client, wiring, **SHORT) as visitor:
                for turn in range(RUNS_EACH):
                    seen = await visitor.press_run("one token a step" if turn == 0 else "not at all")
                    assert seen.end == "done", seen.said
            await asyncio.sleep(0.5)
            held.append(server.held())
        return held

    return visit(server, use)
