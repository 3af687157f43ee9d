"""Comparing and explaining in a real browser: runs side by side, linked views, projections, staleness."""

import re

from playwright.sync_api import Page, expect

from tests.app.browser.conftest import Open, run_short, run_to_its_end, settled, wait_for

MASKS = "#grid .es-lane:nth-child({}) .c.m"


def open_tab(page: Page, name: str, panel: str) -> None:
    page.get_by_role("tab", name=name).click()
    page.wait_for_selector(f"#{panel}[data-ready]")


def test_runs_stand_side_by_side_and_replay_together(open_page: Open) -> None:
    page = open_page(calm=True)
    run_short(page, compare=("none", "dual"))
    settled(page)
    lanes = page.locator("#grid .es-lane")
    expect(lanes).to_have_count(3)
    expect(page.locator("#grid h3")).to_have_text(["Aentropy · τ 1 · k 64", "Bnone", "Cdual"])
    agreements = page.locator("#cards .es-figure").filter(has_text="agreement")
    expect(agreements).to_have_count(2)  # not with itself
    for index in range(2):
        expect(agreements.nth(index)).to_contain_text("with B, none")
    page.locator("#grid input[type=range]").press("Home")
    page.wait_for_selector('#grid[data-shown="0 0 0"]')
    for lane in (1, 2, 3):
        expect(page.locator(MASKS.format(lane))).to_have_count(32)
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
    shown = int(page.get_attribute("#grid", "data-shown") or 0)
    total = page.evaluate("Scope.run.maxSteps")
    assert 0.3 * total < shown < 0.5 * total
    assert re.search(r"\d+ of \d+ steps recomputed everything", strip.get_attribute("aria-label") or "")


def test_projection_follows_the_slider_and_one_press_runs_it(open_page: Open) -> None:
    page = open_page(calm=True)
    open_tab(page, "What if?", "whatif")
    headline = page.locator("#whatif .es-headline")
    words = " ".join(headline.inner_text().split())
    told = re.search(r"projected (\d+) of (\d+) steps full.*recorded (\d+) full", words)
    assert told is not None
    projected, total, recorded = told.groups()
    assert projected == recorded
    page.fill("#whatif-tau input[type=number]", "3")
    page.keyboard.press("Enter")
    expect(headline).to_contain_text(f"projected 1 of {total} steps full")
    expect(headline).to_contain_text(f"recorded {recorded} full")
    expect(page.locator("#whatif")).to_contain_text("A projection, not a run")
    run_to_its_end(page, "#whatif-run")
    expect(page.locator("#policy-settings [data-name=entropy_threshold]")).to_have_value("3")
    expect(page.locator("#grid h3")).to_contain_text("τ 3")
    expect(page.locator("#timeline .es-headline")).to_contain_text("1 of ")


def test_settings_beyond_the_sliders_are_projected_and_run_as_they_are(open_page: Open) -> None:
    page = open_page(calm=True)
    for name, value in (("entropy_threshold", "inf"), ("recent", "200")):
        page.fill(f"#policy-settings [data-name={name}]", value)
    run_short(page)
    open_tab(page, "What if?", "whatif")
    headline = page.locator("#whatif .es-headline")
    expect(headline).to_contain_text("with τ inf, k 200: projected 1 of ")
    expect(page.locator("#whatif-never input")).to_be_checked()
    expect(page.locator("#whatif-k input[type=number]")).to_have_value("200")
    page.fill("#whatif-k input[type=number]", "150")
    page.keyboard.press("Enter")
    expect(headline).to_contain_text("with τ inf, k 150: projected 1 of ")
    run_to_its_end(page, "#whatif-run")
    expect(page.locator("#policy-settings [data-name=entropy_threshold]")).to_have_value("inf")
    expect(page.locator("#policy-settings [data-name=recent]")).to_have_value("150")


def test_maps_layers_and_signals_are_drawn_when_their_tab_is_opened(open_page: Open) -> None:
    page = open_page(calm=True)
    for tab, panel in (("Recompute map", "map"), ("Layers and tokens", "tokens"), ("Signals", "signals")):
        open_tab(page, tab, panel)
        assert page.evaluate(f"document.querySelector('#{panel} .js-plotly-plot').data.length") > 0
        assert len(page.inner_text(f"#{panel} .es-how")) > 60


def test_map_parts_the_run_from_what_is_shown_of_it(open_page: Open) -> None:
    page = open_page(calm=True)
    run_short(page, compare=("none",))
    open_tab(page, "Recompute map", "map")
    rows = page.locator("#map .es-choices")
    expect(rows.nth(0).locator(".es-letter")).to_have_text(["A", "B"])
    expect(rows.nth(1).locator("button")).to_have_text(["recomputed", "age of K/V"])
    expect(rows.nth(1).locator(".es-letter")).to_have_count(0)
    page.locator("#timeline").get_by_role("button", name="B none").click()
    second = page.locator("#map").get_by_role("button", name="B none")
    expect(second).to_have_attribute("aria-pressed", "true")
    rows.nth(1).get_by_role("button", name="age of K/V").click()
    expect(second).to_have_attribute("aria-pressed", "true")
    page.wait_for_selector("#map .js-plotly-plot .infolayer .colorbar")


def test_staleness_is_measured_on_demand(open_page: Open) -> None:
    page = open_page(calm=True)
    open_tab(page, "Staleness", "staleness")
    measure = page.locator("#staleness").get_by_role("button", name="measure staleness")
    measure.click()
    wait_for(page, "error")
    open_tab(page, "Entropy and drift", "scatter")
    run_short(page)
    open_tab(page, "Staleness", "staleness")
    measure.click()
    expect(page.locator("#status")).to_contain_text("staleness measured")
    expect(page.locator("#staleness .es-headline")).to_contain_text("partial step")
