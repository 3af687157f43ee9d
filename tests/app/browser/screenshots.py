"""make screenshots: every view of the page, in both themes and widths, written to assets/screenshots.

Named so that the test run leaves it out; it uses the browser tests' app and browser. One visit a width: a
view is taken in the light, then in the dark, so that nothing is decoded twice for it.
"""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page

from tests.app.browser.conftest import ROOT, WIDTHS, Open, run_to_its_end

FOLDER = ROOT / "assets" / "screenshots"
EXPLAIN = {
    "whatif": "What if?",
    "map": "Recompute map",
    "layers": "Layers and tokens",
    "signals": "Signals",
    "staleness": "Staleness",
}
MAX_BYTES = 6_000_000
COLOURS = 192
PATIENCE = 180_000
# In a picture of the whole page what sticks to the window would lie over something.
UNSTUCK = """
.es-dock, #controls, #go { position: static !important }
#controls { max-height: none !important }
"""


def save(picture: bytes, path: Path) -> None:
    """A PNG of few colours: a third of the size, and no eye can tell."""
    with Image.open(io.BytesIO(picture)) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        few.save(path, optimize=True)


def take(page: Page, view: str, width: str, part: str | None = None, whole: bool = True) -> None:
    """A view in the light and in the dark; part: only what this selector shows."""
    for theme in ("light", "dark"):
        if page.evaluate("Scope.dark()") is not (theme == "dark"):
            page.click("#corner button")
        page.mouse.move(2, 2)
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(700)
        page.add_style_tag(content=UNSTUCK)
        picture = page.locator(part).screenshot() if part else page.screenshot(full_page=whole)
        save(picture, FOLDER / f"{view}_{width}_{theme}.png")


def run(page: Page) -> None:
    """Press Run and wait for its end, drift figures included."""
    run_to_its_end(page)
    page.wait_for_selector('#grid[data-settled="yes"]')


def decode(page: Page, width: str) -> None:
    run(page)
    take(page, "decode", width)


def compare(page: Page, width: str) -> None:
    for index, policy in enumerate(("none", "dual")):
        page.click("#lanes .es-add")
        page.locator("#lanes .es-lane-choice select").nth(index).select_option(policy)
    run(page)
    page.get_by_role("button", name="measure vs no cache").first.click()
    page.wait_for_function("document.querySelector('#status').innerText.includes('speeds measured')")
    page.locator("#grid input[type=range]").evaluate(
        "range => { range.value = range.max / 2; range.dispatchEvent(new Event('input')); }"
    )
    take(page, "compare", width)


def explain(page: Page, width: str) -> None:
    page.locator("#grid .es-cells .c").nth(14).click()
    for view, tab in EXPLAIN.items():
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector(f"#{view}[data-ready]")
        if view == "staleness":
            page.get_by_role("button", name="measure staleness").click()
            page.wait_for_selector("#staleness .main-svg")
        take(page, view, width, "#explain")
    page.keyboard.press("Escape")


def keep(page: Page, width: str) -> None:
    page.locator("#keep-fold").get_by_role("button", name="Keep and share").click()
    page.wait_for_selector("#history input")
    for box in page.locator("#history input").all()[:2]:
        box.check()
    page.locator("#keep-fold").scroll_into_view_if_needed()
    take(page, "keep", width, "#controls")


def tune(page: Page, width: str) -> None:
    page.get_by_role("tab", name="Tune", exact=True).click()
    page.wait_for_selector("#tune-status[data-ready]")
    prompts = page.input_value("#tune-prompts textarea").splitlines()
    page.fill("#tune-prompts textarea", "\n".join(prompts[:3]))
    page.fill("#tune-taus input, #tune-taus textarea", "0.1, 0.5, 1, inf")
    page.fill("#tune-ks input, #tune-ks textarea", "8, 64")
    page.click("#tune-run")
    page.wait_for_selector('#tune-status[data-state="running"]')
    page.wait_for_selector('#tune-status:not([data-state="running"])')
    take(page, "tune", width)


def models(page: Page, width: str) -> None:
    page.get_by_role("tab", name="Models", exact=True).click()
    page.wait_for_selector("#model-status[data-ready]")
    page.click("#model-estimate")
    page.wait_for_selector('#model-status[data-state="done"]')
    take(page, "models", width, whole=False)


@pytest.mark.parametrize("width", WIDTHS)
def test_views(open_page: Open, width: str) -> None:
    views: list[Callable[[Page, str], None]] = [decode, compare, explain, keep, tune, models]
    page = open_page(width, calm=True)
    page.set_default_timeout(PATIENCE)
    FOLDER.mkdir(exist_ok=True)
    for view in views:
        view(page, width)
    assert sum(path.stat().st_size for path in FOLDER.glob("*.png")) < MAX_BYTES
