"""Fixtures of the browser tests: the real app on the embedded model, Chromium, pages that must stay quiet."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.chrome import needed_chrome

ROOT = Path(__file__).resolve().parents[3]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
# A Space's page stands in a frame of huggingface.co, where Gradio adds no header of the platform's.
IN_FRAME = """const values = Object.values;
Object.values = (of) => of === location.ancestorOrigins ? ["https://huggingface.co"] : values(of);"""
START_SECONDS = 120
# Far more than a quiet machine needs: a busy one must not fail a test.
PATIENCE = 90
expect.set_options(timeout=PATIENCE * 1000)
WIDTHS = {"desktop": (1440, 900), "phone": (390, 844)}

# How Gradio answers a page that asks for the events of a session just given up, as after a cut connection.
STRANGER = re.compile(
    r"ERROR: +Exception in ASGI application\n(?:(?!ERROR:).*\n)*?"
    r"RuntimeError: Caught handled exception, but response already started\.\n"
)

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def chrome() -> str:
    return needed_chrome()


@pytest.fixture
def any_model() -> None:
    """For tests that load a model from a folder."""
    if os.environ.get("APP_SPACE"):
        pytest.skip("a Space offers the models of its list only")


@pytest.fixture(scope="session")
def address(chrome: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of `python app.py`, or of the server in APP_ADDRESS; its log must hold no traceback."""
    given = os.environ.get("APP_ADDRESS")
    if given:
        yield given.rstrip("/")
        return
    folder = tmp_path_factory.mktemp("server")
    port, environment = local_place(folder)
    log = folder / "log.txt"
    with log.open("w") as sink:
        server = subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=sink, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_up(url, server, log)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=20)
    faults = STRANGER.sub("", log.read_text())
    assert "Traceback" not in faults, faults[-3000:]


def local_place(folder: Path) -> tuple[int, dict[str, str]]:
    """A free port of this machine, and the environment of a server there whose files go to folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    return port, {
        **os.environ,
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_TEMP_DIR": str(folder),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "GRADIO_SSR_MODE": "False",
        "HF_HUB_OFFLINE": "1",
    }


def wait_until_up(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.poll() is None, f"the app ended while starting:\n{log.read_text()[-3000:]}"
        try:
            with urllib.request.urlopen(f"{url}/config", timeout=2):
                return
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"the app was not up after {START_SECONDS} s:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def browser(chrome: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chrome, args=list(FLAGS))
        yield running
        running.close()


def watch(page: Page, address: str, problems: list[str]) -> None:
    """Collect what a page should never do."""

    def spoken(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"console: {message.text}")

    def asked(request: Request) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            problems.append(f"foreign request: {request.url}")

    page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
    page.on("console", spoken)
    page.on("request", asked)


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Open]:
    """Opens the page, as in open_page("phone", dark=True); it must raise no error and ask nobody else."""
    problems: list[str] = []
    contexts = []

    def start(width: str = "desktop", dark: bool = False, query: str = "", calm: bool = False) -> Page:
        across, down = WIDTHS[width]
        context = browser.new_context(
            viewport={"width": across, "height": down},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if calm else "no-preference",
            accept_downloads=True,
            has_touch=width == "phone",
        )
        contexts.append(context)
        if os.environ.get("APP_SPACE"):
            context.add_init_script(IN_FRAME)
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on("console", lambda m: problems.append(f"console: {m.text}") if m.type == "error" else None)
        page.on(
            "request",
            lambda r: None if r.url.startswith((address, "data:", "blob:")) else problems.append(r.url),
        )
        page.goto(f"{address}/?__theme={'dark' if dark else 'light'}&{query}", wait_until="domcontentloaded")
        # Attached, not in sight: a link may lead to another tab.
        page.wait_for_selector("#run", state="attached")
        for panel in ("grid", "timeline", "scatter", "volatility", "status"):
            page.wait_for_selector(f"#{panel}[data-ready]", state="attached")
        return page

    yield start
    for context in contexts:
        context.close()
    assert problems == []


def status(page: Page) -> str:
    return page.inner_text("#status").strip()


def wait_for(page: Page, state: str) -> None:
    page.wait_for_selector(f'#status[data-state="{state}"]')


def set_generation(page: Page, **settings: str) -> None:
    fold = page.locator("#generation-fold")
    if not page.locator("#generation [data-name=gen_length]").is_visible():
        fold.get_by_role("button").first.click()
    page.wait_for_selector("#generation[data-ready]")
    left = settings
    while left:
        for name, value in left.items():
            entry = page.locator(f"#generation [data-name={name}]")
            if entry.evaluate("element => element.tagName") == "SELECT":
                entry.select_option(value)
            else:
                entry.fill(value)
        # The answer to the page's first event, links, draws the forms anew: nobody else enters so soon.
        page.wait_for_timeout(150)
        entered = {name: page.locator(f"#generation [data-name={name}]").input_value() for name in settings}
        left = {name: value for name, value in settings.items() if entered[name] != value}


def fill_tune(page: Page, prompts: str, taus: str, ks: str) -> None:
    """Open the Tune tab and say what to try on which prompts, one a line."""
    page.get_by_role("tab", name="Tune", exact=True).click()
    page.wait_for_selector("#tune-status[data-ready]")
    page.fill("#tune-prompts textarea", prompts)
    page.fill("#tune-taus input, #tune-taus textarea", taus)
    page.fill("#tune-ks input, #tune-ks textarea", ks)


def choose_policy(page: Page, name: str) -> None:
    page.click("#policy input")
    page.get_by_role("option", name=name, exact=True).click()
    page.wait_for_selector(f'#policy-settings [data-policy="{name}"]')


def settled(page: Page) -> None:
    page.wait_for_selector('#grid[data-settled="yes"]')


def run_to_its_end(page: Page, button: str = "#run") -> None:
    """Press Run, or another button that runs, and wait until it is done.

    A short run's "running" may come and go between two looks.
    """
    page.evaluate(
        """() => {
            const status = document.getElementById("status");
            const seen = window.seenStates = [];
            new MutationObserver((changes) => seen.push(...changes.map((change) => change.oldValue)))
                .observe(status, { attributeFilter: ["data-state"], attributeOldValue: true });
        }"""
    )
    page.click(button)
    page.wait_for_function(
        """() => window.seenStates.includes("running")
            && document.querySelector("#status[data-state='done']")"""
    )


def run_short(page: Page, compare: tuple[str, ...] = ()) -> None:
    """Run 32 tokens without watching drift, beside further policies, to its end."""
    for index, name in enumerate(compare):
        page.click("#lanes .es-add")
        page.locator("#lanes select").nth(index).select_option(name)
    set_generation(page, gen_length="32")
    page.locator("#observe").get_by_text("not at all").click()
    run_to_its_end(page)
