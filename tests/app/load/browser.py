"""What a browser does with a run: how soon a step is painted, how long a move of the scrubber takes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.app.browser.conftest import FLAGS, WIDTHS, status, watch
from tests.chrome import HOW_TO_GET_ONE, found_chrome

TOKENS = 256
SCRUBBED_STEPS = 128
LIVE = f"policy=entropy&gen_length={TOKENS}&unmask=quota&observe=off"
COMPARED = f"{LIVE}&steps={SCRUBBED_STEPS}&with=none|prefix|dual"
REST_SECONDS = 2
RUN_SECONDS = 90

# A message that is posted while a frame is drawn is handled once the frame has been painted.
TOOLS = """
window.load = {
  now: () => performance.timeOrigin + performance.now(),
  painted: () => new Promise((resolve) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(null);
  })),
};
"""
WATCH_RUN = """() => {
  const { run } = window.Scope;
  const { now } = window.load;
  const grid = document.querySelector("#grid");
  const log = (window.load.log = { frames: [], paints: [] });
  const take = run.take.bind(run);
  run.take = (frame) => {
    const got = now();
    const taken = take(frame);
    if (taken && frame.state === "running") {
      log.frames.push({ sent: 1000 * frame.at, got, steps: run.lanes[0]?.steps.length || 0 });
    }
    return taken;
  };
  new MutationObserver(() => {
    const steps = Number(grid.dataset.shown.split(" ")[0]);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => log.paints.push({ at: now(), steps });
    port2.postMessage(null);
  }).observe(grid, { attributes: true, attributeFilter: ["data-ready"] });
}"""
SCRUB = """async (moves) => {
  const { painted } = window.load;
  const grid = document.querySelector("#grid");
  const range = grid.querySelector("input[type=range]");
  const taken = [];
  for (const step of moves) {
    await painted();
    await new Promise((resolve) => setTimeout(resolve, 20 * Math.random()));
    const start = performance.now();
    range.value = step;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    await painted();
    taken.push(performance.now() - start);
    const shown = grid.dataset.shown.split(" ").map(Number);
    if (shown.some((at) => at !== step)) throw new Error(`at ${shown}, not at ${step}`);
  }
  return taken;
}"""
WATCH_KEYS = """() => {
  window.load.keys = [];
  new PerformanceObserver((list) => {
    const pressed = list.getEntries().filter((entry) => entry.name === "keydown");
    window.load.keys.push(...pressed.map((entry) => entry.duration));
  }).observe({ type: "event", durationThreshold: 16 });
}"""


@contextmanager
def page_of(address: str, settings: str) -> Iterator[Page]:
    """The page in a real browser at desktop width, with the settings of a link's query filled in.

    Raises AssertionError where the page has spoken of errors or asked anybody else.
    """
    found = found_chrome()
    if found is None:
        raise SystemExit(HOW_TO_GET_ONE)
    problems: list[str] = []
    across, down = WIDTHS["desktop"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        page = browser.new_page(viewport={"width": across, "height": down})
        watch(page, address, problems)
        page.set_default_timeout(1000 * RUN_SECONDS)
        page.add_init_script(TOOLS)
        page.goto(f"{address}/?{settings}", wait_until="domcontentloaded")
        page.wait_for_selector("#volatility[data-ready]")
        page.get_by_text("settings from the link").wait_for()
        page.wait_for_timeout(1000 * REST_SECONDS)
        yield page
        browser.close()
    assert not problems, problems


def processor_seconds(page: Page) -> float:
    """Processor time that the page's own process has taken by now: scripts, layout and painting."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = {
        metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]
    }
    session.detach()
    return float(metrics["ProcessTime"])


def press_run(page: Page) -> None:
    """Press Run and wait for the end of the run; AssertionError where it does not come."""
    deadline = time.monotonic() + 2 * RUN_SECONDS
    page.click("#run")
    # Not by waiting for a selector, which looks at the page in each of its frames.
    for state in ("running", "done"):
        while page.evaluate("document.querySelector('#grid').dataset.state") != state:
            assert time.monotonic() < deadline, status(page)
            page.wait_for_timeout(250)


def watched_run(page: Page) -> dict[str, Any]:
    """Press Run: when frames were sent, came in, and were painted, in ms.

    {"frames": [{"sent", "got", "steps"}], "paints": [{"at", "steps"}]}; steps counts all up to then.
    """
    page.evaluate(WATCH_RUN)
    press_run(page)
    return dict(page.evaluate("window.load.log"))


def latencies(log: dict[str, Any]) -> list[float]:
    """Milliseconds from a step's frame being sent to the step's first paint, one a step."""
    taken, before = [], 0
    for frame in log["frames"]:
        for step in range(before, frame["steps"]):
            painted = [paint["at"] for paint in log["paints"] if paint["steps"] > step]
            if painted:
                taken.append(min(painted) - frame["sent"])
        before = frame["steps"]
    return taken


def on_the_way(log: dict[str, Any]) -> list[float]:
    """Milliseconds from a frame being sent to the grid's script having it."""
    return [frame["got"] - frame["sent"] for frame in log["frames"]]


def updates(log: dict[str, Any]) -> list[float]:
    """Times in ms of the paints that showed more steps of this run than the one before, to the last step.

    Paints from before the run's first frame, of what was on show until then, are none of its.
    """
    first = log["frames"][0]["sent"]
    shown, times = 0, []
    for paint in log["paints"]:
        if paint["at"] >= first and paint["steps"] > shown:
            times.append(float(paint["at"]))
            shown = paint["steps"]
    return times


def per_second(times: Sequence[float]) -> float:
    """How many follow one another a second, from the first to the last of times in ms; 0 of fewer than two.

    What comes after the last, as the drawing of figures, is no part of it.
    """
    return 1000 * (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0


def scrub(page: Page, moves: list[int]) -> list[float]:
    """Milliseconds from each move of the scrubber to its paint."""
    return [float(taken) for taken in page.evaluate(SCRUB, moves)]


def key_presses(page: Page, presses: int) -> list[float]:
    """Milliseconds from a press of the right arrow to the next paint, by the browser's own account.

    It counts in steps of 8 ms and leaves out what took less than 16.
    """
    page.evaluate(WATCH_KEYS)
    slider = page.locator("#grid input[type=range]")
    slider.press("Home")
    page.wait_for_timeout(300)
    page.evaluate("window.load.keys.length = 0")
    for _ in range(presses):
        slider.press("ArrowRight")
        page.wait_for_timeout(60)
    page.wait_for_timeout(300)
    return [float(taken) for taken in page.evaluate("window.load.keys")]
