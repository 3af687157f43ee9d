"""Run and Stop in a real browser: what a press says at once, what it does next, by mouse and by keyboard."""

import re

from playwright.sync_api import Page, expect

from tests.app.browser.conftest import PATIENCE, Open, set_generation, settled, status, wait_for

LONG = {"gen_length": "256", "unmask": "quota"}
WAIT = PATIENCE * 1000


def start_long(page: Page) -> None:
    """Start a run of many steps and see some of them."""
    set_generation(page, **LONG)
    page.click("#run")
    page.wait_for_function("/step ([5-9]|\\d\\d)/.test(document.querySelector('#status').innerText)")


def test_stop_in_mid_run_keeps_what_was_decoded_and_the_next_run_works(open_page: Open) -> None:
    page = open_page()
    start_long(page)
    page.click("#stop")
    wait_for(page, "stopped")
    settled(page)
    kept = int(re.search(r"stopped: (\d+) tokens", status(page))[1])
    assert 3 < kept < 200
    cells = page.locator("#grid .es-cells .c")
    assert cells.count() == 256
    expect(page.locator("#grid .es-cells .c.m")).to_have_count(256 - kept)
    page.wait_for_timeout(600)
    assert page.locator("#grid .es-cells .c.m").count() == 256 - kept, "a late frame was drawn"
    set_generation(page, gen_length="64", unmask="threshold")
    page.click("#run")
    wait_for(page, "done")
    settled(page)
    expect(page.locator("#grid .es-cells .c")).to_have_count(64)
    expect(page.locator("#grid .es-cells .c.m")).to_have_count(0)


def test_buttons_say_which_of_them_can_be_pressed(open_page: Open) -> None:
    page = open_page(calm=True)
    run, stop = page.locator("#run"), page.locator("#stop")
    expect(stop).to_have_attribute("aria-disabled", "true")
    stop.press("Enter")
    expect(page.locator("#status")).to_contain_text("Nothing is running")
    start_long(page)
    expect(run).to_have_attribute("aria-disabled", "true")
    expect(stop).not_to_have_attribute("aria-disabled", "true")
    run.press("Space")
    expect(page.locator("#status")).to_contain_text("press Stop first")
    stop.press("Enter")
    wait_for(page, "stopped")
    expect(stop).to_have_attribute("aria-disabled", "true")
    expect(run).not_to_have_attribute("aria-disabled", "true")


def test_stop_answers_at_once_and_run_pressed_meanwhile_comes_next(open_page: Open) -> None:
    page = open_page(calm=True)
    start_long(page)
    told = page.evaluate(
        """() => {
            const words = () => document.querySelector('#status').innerText;
            document.querySelector('#stop').click();
            const stopping = words();
            document.querySelector('#run').click();
            return [stopping, words()];
        }"""
    )
    assert "stopping after this step" in told[0]
    assert "then running again" in told[1]
    wait_for(page, "running")
    page.wait_for_function("/, step \\d+/.test(document.querySelector('#status').innerText)")
    expect(page.locator("#status")).to_have_attribute("data-stopping", "no")
    page.click("#stop")
    wait_for(page, "stopped")


def test_the_same_mistake_twice_is_told_twice(open_page: Open) -> None:
    page = open_page(calm=True)
    page.fill("#prompt textarea", "")
    for _ in range(2):
        page.click("#run")
        expect(page.locator("#status")).to_contain_text("prompt is empty")
        # The words of the first time are still there while the second press is on its way.
        expect(page.locator("#run")).not_to_have_attribute("aria-disabled", "true")


def test_ctrl_enter_in_the_prompt_runs(open_page: Open) -> None:
    page = open_page(calm=True)
    set_generation(page, gen_length="32")
    page.locator("#prompt textarea").press("Control+Enter")
    wait_for(page, "done")


def test_figures_of_the_run_before_say_so_until_they_are_drawn_anew(open_page: Open) -> None:
    page = open_page(calm=True)
    page.get_by_role("tab", name="Recompute map").click()
    page.wait_for_selector("#map[data-ready]")
    expect(page.locator("#map .es-behind")).to_be_hidden()
    start_long(page)
    expect(page.locator("#map .es-behind")).to_contain_text("of the run before")
    page.click("#stop")
    wait_for(page, "stopped")
    expect(page.locator("#map .es-behind")).to_be_hidden()


def test_drift_that_a_stop_cut_off_can_be_measured(open_page: Open) -> None:
    page = open_page(calm=True)
    set_generation(page, gen_length="64")
    page.click("#run")
    expect(page.locator("#status")).to_contain_text("measuring drift")
    assert re.search(r"decoded; measuring drift, \d+ of 64 tokens", status(page))
    page.click("#stop")
    wait_for(page, "stopped")
    if page.locator("#scatter").get_by_role("button", name="measure drift").count():
        page.locator("#scatter").get_by_role("button", name="measure drift").click()
        expect(page.locator("#status")).to_contain_text("drift measured")
    expect(page.locator("#scatter")).to_contain_text("Spearman")
