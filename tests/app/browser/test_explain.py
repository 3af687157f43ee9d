"""Comparing and explaining in a real browser: runs side by side, linked views, projections, staleness."""

import re

from playwright.sync_api import Page, expect

from tests.app.browser.conftest import Open, run_short, settled, wait_for

MASKS = "#grid .es-lane:nth-child({}) .c.m"


def open_tab(page: Page, name: str, panel: str) -> None:
    page.get_by_role("tab", name=name).click()
    page.wait_for_selector(f"#{panel}[data-ready]")


def point_of(page: Page, panel: str, index: int) -> tuple[float, float]:
    """Pixels of a point of a panel's first trace."""
    page.locator(f"#{panel}").scroll_into_view_if_needed()
    x, y = page.evaluate(
        """([panel, index]) => {
            const plot = document.querySelector(`#${panel} .js-plotly-plot`);
            const {_size: size, xaxis, yaxis} = plot._fullLayout;
            const {x, y} = plot._fullData[0];
            const box = plot.getBoundingClientRect();
            return [box.left + size.l + xaxis.d2p(x[index]), box.top + size.t + yaxis.d2p(y[index])];
        }""",
        [panel, index],
    )
    return x, y


def test_runs_stand_side_by_side_and_replay_together(open_page: Open) -> None:
    page = open_page(calm=True)
    run_short(page, compare=("none", "dual"))
    settled(page)
    lanes = page.locator("#grid .es-lane")
    expect(lanes).to_have_count(3)
    assert [lane.inner_text() for lane in page.locator("#grid h3").all()] == [
        "A\nentropy · τ 1 · k 64", "B\nnone", "C\ndual"
    ]  # fmt: skip
    cards = page.inner_text("#cards")
    assert cards.count("agreement") >= 3
    assert "100.0%" in cards.replace("\n", "")
    page.locator("#grid input[type=range]").press("Home")
    page.wait_for_selector('#grid[data-shown="0 0 0"]')
    for lane in (1, 2, 3):
        assert page.locator(MASKS.format(lane)).count() == 32
    page.locator("#grid input[type=range]").press("ArrowRight")
    page.wait_for_selector('#grid[data-shown="1 1 1"]')
    page.locator("#timeline").get_by_role("button", name="B none").click()
    expect(page.locator("#timeline .es-headline")).to_contain_text("100.0 % of all rows")


def test_race_ends_with_the_slowest(open_page: Open) -> None:
    page = open_page(calm=True)
    run_short(page, compare=("none",))
    settled(page)
    steps = page.get_attribute("#grid", "data-shown")
    page.get_by_role("button", name="by step").click()
    expect(page.locator("#grid .es-where")).to_contain_text(" s")
    page.locator("#grid input[type=range]").press("Home")
    page.wait_for_selector('#grid[data-shown="0 0"]')
    page.click("#grid .es-play")
    page.wait_for_selector(f'#grid[data-shown="{steps}"][data-settled="yes"]')


def test_strip_over_the_scrubber_goes_to_a_step(open_page: Open) -> None:
    page = open_page(calm=True)
    strip = page.locator("#grid .es-strip")
    box = strip.bounding_box()
    assert box is not None
    strip.click(position={"x": box["width"] * 0.4, "y": 8})
    settled(page)
    shown, total = int(page.get_attribute("#grid", "data-shown") or 0), 22
    assert 0.3 * total < shown < 0.5 * total
    assert re.search(r"\d+ of \d+ steps recomputed everything", strip.get_attribute("aria-label") or "")


def test_token_point_and_step_light_each_other_up(open_page: Open) -> None:
    page = open_page(calm=True)
    page.locator("#grid .es-cells .c").nth(11).click()
    page.mouse.move(2, 2)
    expect(page.locator("#scatter .es-spot")).to_be_visible()
    cursor = "(e => e.hidden ? '' : e.style.transform)(document.querySelector('#timeline .es-cursor'))"
    marked = page.evaluate(cursor)
    assert marked
    page.keyboard.press("Escape")
    expect(page.locator("#scatter .es-spot")).to_be_hidden()
    assert page.evaluate(cursor) != marked
    page.mouse.move(*point_of(page, "scatter", 90))
    page.wait_for_selector("#grid .c.hover")
    assert page.locator("#grid .es-cells .c.hover").count() == 1
    x, y = point_of(page, "timeline", 0)
    page.mouse.click(x, y + 12)
    page.wait_for_selector('#grid[data-shown="1"]')


def test_projection_follows_the_slider_and_one_press_runs_it(open_page: Open) -> None:
    page = open_page(calm=True)
    open_tab(page, "What if?", "whatif")
    expect(page.locator("#whatif .es-headline")).to_contain_text("projected 6 of 22 steps full")
    page.fill("#whatif-tau input[type=number]", "3")
    page.keyboard.press("Enter")
    expect(page.locator("#whatif .es-headline")).to_contain_text("projected 1 of 22 steps full")
    expect(page.locator("#whatif .es-headline")).to_contain_text("recorded 6 full")
    assert "A projection, not a run" in page.inner_text("#whatif")
    page.click("#whatif-run")
    wait_for(page, "running")
    wait_for(page, "done")
    assert page.input_value("#policy-settings [data-name=entropy_threshold]") == "3"
    expect(page.locator("#grid h3")).to_contain_text("τ 3")
    expect(page.locator("#timeline .es-headline")).to_contain_text("1 of ")


def test_maps_layers_and_signals_are_drawn_when_their_tab_is_opened(open_page: Open) -> None:
    page = open_page(calm=True)
    for tab, panel in (("Recompute map", "map"), ("Layers and tokens", "tokens"), ("Signals", "signals")):
        open_tab(page, tab, panel)
        assert page.evaluate(f"document.querySelector('#{panel} .js-plotly-plot').data.length") > 0
        assert len(page.inner_text(f"#{panel} .es-how")) > 60


def test_staleness_is_measured_on_demand(open_page: Open) -> None:
    page = open_page(calm=True)
    open_tab(page, "Staleness", "staleness")
    page.click("#measure-staleness")
    wait_for(page, "error")
    open_tab(page, "Entropy and drift", "scatter")
    run_short(page)
    open_tab(page, "Staleness", "staleness")
    page.click("#measure-staleness")
    expect(page.locator("#status")).to_contain_text("staleness measured")
    expect(page.locator("#staleness .es-headline")).to_contain_text("partial steps")
