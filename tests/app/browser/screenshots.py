"""make screenshots: the page after a run and after a comparison, written to assets/screenshots.

Named so that the test run leaves it out; it uses the browser tests' app and browser.
"""

import pytest
from playwright.sync_api import Page

from tests.app.browser.conftest import ROOT, WIDTHS, Open

FOLDER = ROOT / "assets" / "screenshots"


def run(page: Page) -> None:
    """Press Run and wait for its end, drift figures included."""
    page.wait_for_selector("#grid .c")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("document.querySelector('#status').textContent.trim().startsWith('done')")
    page.wait_for_timeout(1500)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_decode(open_page: Open, width: str, dark: bool) -> None:
    page = open_page(width, dark=dark, calm=True)
    page.set_default_timeout(180_000)
    run(page)
    FOLDER.mkdir(exist_ok=True)
    theme = "dark" if dark else "light"
    page.screenshot(path=FOLDER / f"decode_{width}_{theme}.png", full_page=True)
