"""What stays in sight while the page scrolls, and what must not be cut, on the page and offline."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app.examples import recorded_example
from app.offline import offline_page
from tests.app.browser.conftest import PATIENCE, Open, run_short, settled
from tests.app.browser.test_phone import boxes, overlaps


def scroll_to(page: Page, selector: str, block: str = "start") -> None:
    page.locator(selector).evaluate("(e, block) => e.scrollIntoView({ block, behavior: 'instant' })", block)
    page.wait_for_function("new Promise(done => requestAnimationFrame(() => done(true)))")


def test_controls_stay_beside_the_figures(open_page: Open) -> None:
    page = open_page(calm=True)
    scroll_to(page, "#explain")
    assert page.evaluate("scrollY") > 400
    [(_, _, top, _, bottom)] = boxes(page, "#controls")
    assert top == pytest.approx(12, abs=1)
    assert bottom <= 900
    [run] = boxes(page, "#run")
    assert 0 <= run[2] < run[4] <= 900
    page.locator("#keep-fold").get_by_role("button", name="Keep and share").click()
    page.wait_for_selector("#copy-link")
    scroll_to(page, "#copy-link", "nearest")
    [copy] = boxes(page, "#copy-link")
    assert 0 <= copy[2] < copy[4] <= 900


@pytest.mark.parametrize(("kind", "across"), [("desktop", 1440), ("phone", 390)])
def test_player_stays_in_sight_below_a_long_run(open_page: Open, kind: str, across: int) -> None:
    page = open_page(kind, calm=True)
    # As a long run in a tall window, without the time to decode one.
    page.set_viewport_size({"width": across, "height": 360})
    settled(page)
    scroll_to(page, "#grid")
    [grid], [player] = boxes(page, "#grid"), boxes(page, "#grid .es-player")
    assert grid[4] > 380, "else nothing needs to stick"
    assert 0 < player[2] < player[4] <= 360
    page.evaluate("scrollBy(10000, 0)")
    assert page.evaluate("scrollX") == 0


def test_a_tap_tells_the_facts_where_they_can_be_seen(open_page: Open) -> None:
    page = open_page("phone", calm=True)
    tip = page.locator("#grid .es-tip")
    expect(tip).to_contain_text("Tap a token for its facts")
    scroll_to(page, "#grid")
    cell = page.locator("#grid .es-cells .c").nth(5)
    cell.tap()
    expect(tip).to_contain_text("position 5 (from 0)")
    [told], [player] = boxes(page, "#grid .es-tip"), boxes(page, "#grid .es-player")
    assert 0 < told[2] < told[4] <= player[2] < 844
    assert overlaps([told, *boxes(page, "#grid .es-cells .c.pin")]) == []
    cell.tap()
    expect(tip).to_contain_text("Tap a token for its facts")


@pytest.mark.parametrize("kind", ["desktop", "phone"])
def test_long_tokens_are_not_cut_in_their_cells(open_page: Open, kind: str) -> None:
    page = open_page(kind, calm=True)
    settled(page)
    page.evaluate(
        """() => {
            const { run, emit } = Scope;
            ["January", "September", "Later", "begins"].forEach((text, at) => (run.lanes[0].text[at] = text));
            emit("hover", { positions: [0] });
        }"""
    )
    first = page.locator("#grid .es-cells .c").first
    expect(first).to_have_text("January")
    cut = """cells => cells.slice(0, 64).filter(cell => {
        const words = document.createRange();
        words.selectNodeContents(cell);
        return words.getBoundingClientRect().width > cell.clientWidth;
    }).map(cell => cell.textContent)"""
    assert page.locator("#grid .es-cells .c").evaluate_all(cut) == []
    assert first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 6


def test_a_short_answer_has_room_for_its_lines(open_page: Open) -> None:
    page = open_page(calm=True)
    run_short(page)
    settled(page)
    text = page.locator("#grid .es-text")
    assert text.evaluate("e => e.clientHeight") >= 118
    [box], [dock] = boxes(page, "#grid .es-text"), boxes(page, "#grid .es-dock")
    assert box[4] <= dock[2]


@pytest.fixture
def offline(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The report of the recorded example on a phone."""
    example = recorded_example()
    report = tmp_path / "report.html"
    link = "prompt=" + "+".join(["word"] * 60)
    report.write_text(offline_page(example.record, example.frame, link), encoding="utf-8")
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, offline=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(report.as_uri())
    page.wait_for_selector("#grid[data-ready]")
    yield page
    context.close()


def test_report_fits_a_phone_and_folds_its_link(offline: Page) -> None:
    assert offline.evaluate("document.documentElement.scrollWidth") <= 390
    head = boxes(offline, "#grid .es-card-head > :is(h2, label)")
    assert len(head) == 2
    assert overlaps(head) == []
    words = boxes(offline, "#grid .es-card-head :is(h2, .es-choose span, select)")
    assert overlaps(words) == []
    [card] = boxes(offline, "#grid")
    assert all(right <= card[3] for *_, right, _ in words)
    expect(offline.get_by_text("Settings as a link")).to_be_visible()
    link = offline.get_by_text("?prompt=word")
    expect(link).to_be_hidden()
    offline.get_by_text("Settings as a link").tap()
    expect(link).to_be_visible()


def test_report_tells_a_tapped_token_in_sight(offline: Page) -> None:
    scroll_to(offline, "#grid")
    offline.locator("#grid .es-cells .c").nth(5).tap()
    expect(offline.locator("#grid .es-tip")).to_contain_text("position 5 (from 0)")
    [told] = boxes(offline, "#grid .es-tip")
    assert 0 < told[2] < told[4] <= 844
