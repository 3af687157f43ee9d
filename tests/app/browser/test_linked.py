"""Linked views in a real browser: what is pointed at or pinned in one place lights up in all others."""

import pytest
from playwright.sync_api import Page, expect

from tests.app.browser.conftest import Open

TOKEN = 11


def point_of(page: Page, panel: str, index: int, trace: int = 0) -> tuple[float, float]:
    """Pixels of a point of one of a panel's traces."""
    page.locator(f"#{panel}").scroll_into_view_if_needed()
    x, y = page.evaluate(
        """([panel, index, trace]) => {
            const plot = document.querySelector(`#${panel} .js-plotly-plot`);
            const {_size: size, xaxis, yaxis} = plot._fullLayout;
            const {x, y} = plot._fullData[trace];
            const box = plot.getBoundingClientRect();
            return [box.left + size.l + xaxis.d2p(x[index]), box.top + size.t + yaxis.d2p(y[index])];
        }""",
        [panel, index, trace],
    )
    return x, y


def pin_a_token(page: Page) -> None:
    page.locator("#grid .es-cells .c").nth(TOKEN).click()
    page.mouse.move(2, 2)
    page.wait_for_selector("#grid .es-cells .c.pin")


def place_of(page: Page, mark: str) -> str:
    return str(page.locator(mark).first.evaluate("mark => mark.style.transform"))


def test_pinned_token_is_marked_in_every_figure_until_escape(open_page: Open) -> None:
    page = open_page(calm=True)
    pin_a_token(page)
    marks = ["#timeline .es-cursor.pinned", "#scatter .es-spot.pinned", "#volatility .es-cursor.pinned"]
    for mark in marks:
        expect(page.locator(mark)).to_be_visible()
    # Figures that are opened only now know of it, too.
    later = {
        "Recompute map": ("#map .es-across.pinned", "#map .es-cursor.pinned"),
        "Layers and tokens": ("#tokens .es-across.pinned", "#tokens .es-cursor.pinned"),
        "What if?": ("#whatif .es-cursor.pinned",),
    }
    for tab, shown in later.items():
        page.get_by_role("tab", name=tab).click()
        for mark in shown:
            expect(page.locator(mark)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#grid .c.pin")).to_have_count(0)
    expect(page.locator(".es-mark.pinned:visible")).to_have_count(0)
    assert page.locator("#timeline .es-cursor.now").is_visible()


def test_token_is_marked_at_its_step_counted_from_one(open_page: Open) -> None:
    page = open_page(calm=True)
    pin_a_token(page)
    step = page.evaluate(f"Scope.run.lanes[0].decodedAt[{TOKEN}]")
    expect(page.locator("#grid .es-tip")).to_contain_text(f"committed at step {step + 1},")
    pinned = place_of(page, "#timeline .es-cursor.pinned")
    page.evaluate(f"Scope.emit('seek', {{step: {step}}})")
    page.wait_for_selector(f'#grid[data-shown="{step + 1}"]')
    expect(page.locator("#grid .es-where")).to_contain_text(f"step {step + 1} of")
    page.wait_for_function(
        "place => document.querySelector('#timeline .es-cursor.now').style.transform === place", arg=pinned
    )


@pytest.mark.parametrize(("trace", "index"), [(0, 40), (1, 40)], ids=["within the answer", "after its end"])
def test_point_of_the_scatter_lights_its_token_and_its_step(open_page: Open, trace: int, index: int) -> None:
    page = open_page(calm=True)
    page.mouse.move(*point_of(page, "scatter", index, trace))
    page.wait_for_selector("#grid .c.hover")
    expect(page.locator("#grid .es-cells .c.hover")).to_have_count(1)
    expect(page.locator("#timeline .es-cursor.hovered")).to_be_visible()
    expect(page.locator("#volatility .es-cursor.hovered")).to_be_visible()
    page.mouse.move(2, 2)
    expect(page.locator("#grid .es-cells .c.hover")).to_have_count(0)


def test_step_lights_its_tokens_and_a_click_goes_there_and_pins_them(open_page: Open) -> None:
    page = open_page(calm=True)
    committed = page.evaluate("Scope.run.lanes[0].steps[0].c.length")
    x, y = point_of(page, "timeline", 0)
    page.mouse.move(x, y + 12)
    expect(page.locator("#grid .es-cells .c.hover")).to_have_count(committed)
    expect(page.locator("#scatter .es-spot.hovered:visible")).to_have_count(committed)
    page.mouse.click(x, y + 12)
    page.wait_for_selector('#grid[data-shown="1"]')
    expect(page.locator("#grid .es-cells .c.pin")).to_have_count(committed)
    page.keyboard.press("Escape")
    expect(page.locator("#grid .es-cells .c.pin")).to_have_count(0)


def test_every_figure_says_how_to_read_it_and_defines_its_numbers(open_page: Open) -> None:
    page = open_page(calm=True)
    for tab in page.locator("#explain [role=tab]").all():
        tab.click()
        page.wait_for_timeout(100)
        for card in page.locator(".es-panel-plot:visible").all():
            assert len(card.locator(".es-how").inner_text()) > 60
            card.locator(".es-help summary").click()
            assert card.locator(".es-help dd").count() >= 1
            assert card.locator(".es-help dd").first.is_visible()
            card.locator(".es-help summary").click()
