"""axe finds nothing serious in any view: every tab, both themes and widths, before and after a run."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.app.browser.conftest import Open, run_short

EXPLAIN = ("What if?", "Recompute map", "Layers and tokens", "Signals", "Staleness", "Entropy and drift")


def serious(page: Page, part: str | None = None) -> list[str]:
    """What axe holds against the page, or a part of it, as serious or critical."""
    found = Axe().run(page, context=part).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:160]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def explained(page: Page) -> dict[str, list[str]]:
    """The same of every explanation, one opened after the other."""
    found = {}
    for tab in EXPLAIN:
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector("#explain .es-panel-plot[data-ready]:visible")
        page.wait_for_timeout(250)
        found[tab] = serious(page, "#explain")
    return found


@pytest.mark.parametrize("width", ["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(open_page: Open, width: str, dark: bool) -> None:
    page = open_page(width, dark=dark, calm=True)
    found = {"decode": serious(page), **explained(page)}
    page.locator("#keep-fold").get_by_role("button", name="Keep and share").click()
    page.locator("#policy-settings .es-policy-card").evaluate("card => card.open = true")
    run_short(page, compare=("none",))
    found |= {"compare": serious(page), "compare, explained": explained(page)["Recompute map"]}
    for tab, ready in (("Tune", "tune"), ("Models", "model")):
        page.get_by_role("tab", name=tab, exact=True).click()
        page.wait_for_selector(f"#{ready}-status[data-ready]")
        page.wait_for_timeout(250)
        found[tab] = serious(page)
    assert {view: faults for view, faults in found.items() if faults} == {}
