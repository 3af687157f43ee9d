"""A page whose connection is cut in mid-run: it says so, stays usable, and shows the run as it then is."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.app.browser.conftest import PATIENCE, run_to_its_end, set_generation, settled, status, wait_for

WAIT = PATIENCE * 1000
MUCH_LONGER_THAN_A_HEARTBEAT = "02:00"


class Line:
    """Passes connections on to a server, until they are cut. To be used as a context manager."""

    def __init__(self, address: str) -> None:
        self._server = urlsplit(address)
        self._open: set[asyncio.StreamWriter] = set()
        self._down = self._silent = False
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),))
        self._ready = threading.Event()

    def __enter__(self) -> "Line":
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(PATIENCE)

    def cut(self, down: bool) -> None:
        """End all connections; down: let no new ones through until `up`."""
        self._down = down
        self._loop.call_soon_threadsafe(self._close_all)

    def up(self) -> None:
        self._down = False

    def silence(self, silent: bool) -> None:
        """Pass nothing on, and end nothing either."""
        self._silent = silent

    def _close_all(self) -> None:
        for writer in self._open:
            writer.close()

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with await asyncio.start_server(self._pass_on, "127.0.0.1", 0) as listening:
            self.address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            self._ready.set()
            await self._ended.wait()
            self._down, self._silent = True, False
            while self._open:
                self._close_all()
                await asyncio.sleep(0.01)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        self._open |= ends
        try:
            if not self._down:
                answers, asked = await asyncio.open_connection(self._server.hostname, self._server.port)
                ends.add(asked)
                self._open.add(asked)
                await asyncio.gather(self._pump(reader, asked), self._pump(answers, writer))
        finally:
            for end in ends:
                end.close()
                with suppress(OSError):
                    await end.wait_closed()
            self._open -= ends

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                while self._silent:
                    await asyncio.sleep(0.01)
                writer.write(data)
                await writer.drain()
        writer.close()


@pytest.fixture
def line(address: str) -> Iterator[Line]:
    with Line(address) as line:
        yield line


@pytest.fixture
def page(browser: Browser, line: Line) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.goto(f"{line.address}/?__theme=light", wait_until="domcontentloaded")
    page.wait_for_selector("#status[data-ready]")
    page.evaluate("window.same = true")
    yield page
    errors = page.locator(".toast-body").all_inner_texts()
    context.close()
    assert errors == []


def start_long(page: Page) -> None:
    set_generation(page, gen_length="256", unmask="quota")
    page.locator("#observe").get_by_text("not at all").click()
    page.click("#run")


def see_its_end(page: Page) -> None:
    """The run goes on where it was and ends as any other; the page is still the same one."""
    wait_for(page, "done")
    assert re.match(r"done: 256 steps", status(page))
    settled(page)
    expect(page.locator("#grid .es-cells .c.m")).to_have_count(0)
    assert page.evaluate("window.same")
    page.get_by_role("tab", name="Recompute map").click()
    expect(page.locator("#map .es-behind")).to_be_hidden()
    set_generation(page, gen_length="32")
    run_to_its_end(page)
    page.locator("#keep-fold").get_by_role("button").first.click()
    expect(page.locator("#history")).to_contain_text("run 2")
    expect(page.locator("#history")).to_contain_text("run 1")
    expect(page.locator("#history")).not_to_contain_text("run 3")


def test_network_that_is_gone_for_a_while(page: Page, line: Line) -> None:
    start_long(page)
    page.wait_for_function("/step \\d/.test(document.querySelector('#status').innerText)")
    line.cut(down=True)
    wait_for(page, "error")
    assert status(page).startswith("error: connection lost; your run is shown here as soon as")
    expect(page.locator("#run")).not_to_have_attribute("aria-disabled", "true")
    page.click("#run")
    expect(page.locator("#status")).to_contain_text("No connection to the server.")
    line.up()
    see_its_end(page)


@pytest.mark.parametrize("steps", [False, True])
def test_connections_that_are_cut_once(page: Page, line: Line, steps: bool) -> None:
    start_long(page)
    begun = "step \\d" if steps else "running"
    page.wait_for_function(f"/{begun}/.test(document.querySelector('#status').innerText)")
    line.cut(down=False)
    page.wait_for_selector("#status[data-state='done'], #status[data-state='stopped']")
    if page.get_attribute("#status", "data-state") == "stopped":
        # The press was cut off before the server acted on it.
        assert not steps
        assert "nothing of yours is running" in status(page)
        page.click("#run")
    see_its_end(page)


def test_press_that_never_arrives_is_told(page: Page) -> None:
    """A browser may take a press for delivered that a cut connection has swallowed."""
    page.route("**/queue/join*", lambda route: route.fulfill(json={"event_id": "nobody's"}), times=1)
    start_long(page)
    wait_for(page, "stopped")
    assert "nothing of yours is running" in status(page)
    page.click("#run")
    see_its_end(page)


def test_run_of_a_press_whose_answer_was_lost_is_found(page: Page) -> None:
    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.fulfill(json={"event_id": "nobody's"})

    page.route("**/queue/join*", lose_the_answer, times=1)
    start_long(page)
    see_its_end(page)


def test_run_that_the_stream_tells_nothing_more_of_is_shown_to_its_end(page: Page) -> None:
    """As where a cut stream is resumed before the server notices the cut, and gives up what it told."""
    sessions: list[str] = []

    def note(request: Request) -> None:
        sessions.extend(parse_qs(urlsplit(request.url).query).get("session_hash", []))

    page.on("request", note)
    start_long(page)
    page.wait_for_function("/step \\d/.test(document.querySelector('#status').innerText)")
    page.evaluate(
        """(session_hash) => {
            const { id } = gradio_config.dependencies.find(({ api_name: name }) => name === "presence");
            return fetch("gradio_api/run/predict", {
                method: "POST",
                headers: { "Content-Type": "application/json" },
                body: JSON.stringify({ data: ["back"], fn_index: id, session_hash }),
            });
        }""",
        sessions[-1],
    )
    see_its_end(page)


def test_stream_that_is_ended_in_due_form_before_its_time(page: Page) -> None:
    """As by a proxy that allows no answer more than so many seconds: no error tells the page of it."""

    def end(route: Route) -> None:
        route.fulfill(body="", headers={"Content-Type": "text/event-stream"})

    page.route("**/queue/data*", end, times=1)
    start_long(page)
    see_its_end(page)


def test_connection_that_is_dead_without_a_word(page: Page, line: Line) -> None:
    """As after a laptop's sleep: nothing ends, and nothing comes any more."""
    page.clock.install()
    page.reload(wait_until="domcontentloaded")
    page.wait_for_selector("#status[data-ready]")
    page.evaluate("window.same = true")
    start_long(page)
    page.wait_for_function("/step \\d/.test(document.querySelector('#status').innerText)")
    line.silence(True)
    page.clock.fast_forward(MUCH_LONGER_THAN_A_HEARTBEAT)
    wait_for(page, "error")
    assert "connection lost" in status(page)
    line.silence(False)
    see_its_end(page)


def test_search_whose_connection_is_cut_is_over(page: Page, line: Line) -> None:
    page.get_by_role("tab", name="Tune").click()
    page.click("#tune-run")
    page.wait_for_selector('#tune-status[data-state="running"]')
    page.wait_for_function("!document.querySelector('#tune-status').innerText.includes('starting')")
    line.cut(down=False)
    page.wait_for_selector('#tune-status[data-state="error"]')
    expect(page.locator("#tune-status")).to_contain_text("the connection was lost, and this with it")
    expect(page.locator("#tune-run")).not_to_have_attribute("aria-disabled", "true")
    page.get_by_role("tab", name="Decode").click()
    set_generation(page, gen_length="32")
    run_to_its_end(page)
