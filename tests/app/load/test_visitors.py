"""Twenty visitors over HTTP, as tabs speak it, on a tiny model: order, places, and what is left of them."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import gradio as gr
import httpx
import pytest

from analysis.trace import Trace
from app.observe import observe
from app.ui import build, launch_options
from app.workshop import Workshop
from tests.app.conftest import GENERATION
from tests.app.load.apart import run_apart
from tests.app.load.visitor import Seen, Visitor, Wiring

VISITORS = 20
SHORT = {"gen_length": str(GENERATION.gen_length), "block_length": str(GENERATION.block_length)}
Use = Callable[[httpx.AsyncClient, Wiring], Awaitable[None]]


@pytest.fixture
def page(workshop: Workshop) -> Iterator[gr.Blocks]:
    page = build(workshop)
    page.launch(
        **launch_options(), prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", ssr_mode=False
    )
    yield page
    page.close()


def visit(page: gr.Blocks, use: Use) -> None:
    async def visiting() -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=page.local_url, limits=limits, timeout=60) as client:
            await use(client, Wiring.read((await client.get("config")).json()))

    run_apart(visiting())


def test_twenty_visitors_are_served_in_the_order_they_came_and_leave_nothing(
    page: gr.Blocks, workshop: Workshop
) -> None:
    ahead = workshop.turns.join("somebody at work")

    async def use(client: httpx.AsyncClient, wiring: Wiring) -> None:
        visitors = [await Visitor(client, wiring, **SHORT).__aenter__() for _ in range(VISITORS)]
        runs: list[asyncio.Task[Seen]] = []
        for count, visitor in enumerate(visitors):
            runs.append(asyncio.create_task(visitor.press_run()))
            while len(workshop.turns) < count + 2:
                await asyncio.sleep(0.01)
        ahead.leave()
        seen = await asyncio.gather(*runs)
        assert [one.end for one in seen] == ["done"] * VISITORS
        assert sorted(seen, key=lambda one: one.first_step) == seen
        for place, one in enumerate(seen, start=1):
            places = [int(n) for said in one.said for n in re.findall(r"(\d+) runs ahead", said)]
            assert places == sorted(set(places), reverse=True)
            assert max(places, default=1) <= place
        assert len(workshop.runs) == VISITORS
        for visitor in visitors:
            await visitor.close()
        while len(page.state_holder.session_data):
            await asyncio.sleep(0.05)
        assert len(workshop.runs) == len(workshop.turns) == 0

    visit(page, use)


@pytest.mark.parametrize("end", ["done", "stopped", "error"])
def test_figures_are_drawn_once_after_every_run_however_it_ends(
    page: gr.Blocks, workshop: Workshop, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    seen_steps: list[int] = []

    def interrupted(*args: Any) -> Iterator[Trace]:
        for trace in observe(*args):
            seen_steps.append(len(trace.steps))
            yield trace
            if len(trace.steps) == 2 and end == "stopped":
                workshop.turns.stop(named[0], "decode")
            if len(trace.steps) == 2 and end == "error":
                raise ValueError("no GPU for this: the quota is used up")

    named: list[str] = []
    monkeypatch.setattr("app.perform.observe", interrupted)

    async def use(client: httpx.AsyncClient, wiring: Wiring) -> None:
        async with Visitor(client, wiring, **SHORT, unmask="quota") as visitor:
            named.append(visitor.name)
            seen = await visitor.press_run()
            assert seen.end == end
            assert len(seen.drawn) == 1
            drawn = json.dumps(seen.drawn[0])
            for title in ("Recompute map", "What another", f"{len(set(seen_steps))} steps"):
                assert title in drawn
            assert len(workshop.runs.of(visitor.name)) == 1
            refused = Visitor(client, wiring, gen_length="none of these")
            refused.name = visitor.name
            seen = await refused.press_run()
            assert (seen.end, seen.drawn) == ("error", [])

    visit(page, use)


def test_tab_closed_in_mid_run_or_in_line_leaves_nothing(page: gr.Blocks, workshop: Workshop) -> None:
    async def use(client: httpx.AsyncClient, wiring: Wiring) -> None:
        for waiting in (False, True):
            ahead = workshop.turns.join("somebody at work") if waiting else None
            visitor = await Visitor(client, wiring, **SHORT, unmask="quota").__aenter__()
            run = asyncio.create_task(visitor.press_run(until="ahead of you" if waiting else "step 1"))
            await run
            await visitor.close()
            if ahead is not None:
                while len(workshop.turns) > 1:
                    await asyncio.sleep(0.01)
                ahead.leave()
            while len(workshop.turns) or len(page.state_holder.session_data):
                await asyncio.sleep(0.01)
            assert len(workshop.runs) == 0

    visit(page, use)


@pytest.mark.parametrize("back", [True, False])
def test_run_of_a_lost_connection_is_there_for_who_comes_back_and_freed_else(
    page: gr.Blocks, workshop: Workshop, back: bool
) -> None:
    workshop.absence._seconds = 3600 if back else 0.0

    async def use(client: httpx.AsyncClient, wiring: Wiring) -> None:
        visitor = await Visitor(client, wiring, **SHORT, unmask="quota").__aenter__()
        await visitor.press_run(until="step 1")
        await visitor.lose()
        while len(workshop.turns):
            await asyncio.sleep(0.01)
        if not back:
            while len(page.state_holder.session_data):
                await asyncio.sleep(0.01)
            assert len(workshop.runs) == len(workshop.going) == 0
            return
        await visitor.come_back()
        status, grid, *_ = await visitor.look()
        assert json.loads(status)["text"].startswith("done: ")
        assert len(json.loads(grid)["lanes"][0]["steps"]) == GENERATION.gen_length
        assert len(workshop.runs.of(visitor.name)) == 1
        await visitor.close()

    visit(page, use)
