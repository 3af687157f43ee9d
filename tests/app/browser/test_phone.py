"""The page on a phone: everything in reach, nothing cut off, nothing over anything else, in both themes."""

import pytest
from playwright.sync_api import Page

from tests.app.browser.conftest import Open, fill_tune, run_to_its_end, set_generation, settled, wait_for

EXPLAIN = {
    "What if?": ("whatif",),
    "Recompute map": ("map",),
    "Layers and tokens": ("layers", "tokens"),
    "Signals": ("signals",),
    "Entropy and drift": ("scatter", "volatility"),
}
BOXES = """selector => [...document.querySelectorAll(selector)]
    .filter(e => e.offsetParent || e.ownerSVGElement)
    .map(e => [e.textContent, e.getBoundingClientRect()]).filter(([_, box]) => box.width > 0)
    .map(([text, box]) => [text, box.left, box.top, box.right, box.bottom])"""
Box = tuple[str, float, float, float, float]


def boxes(page: Page, selector: str) -> list[Box]:
    """What a selector shows: text, left, top, right, bottom."""
    return [tuple(box) for box in page.evaluate(BOXES, selector)]


def overlaps(boxes: list[Box], slack: float = 2) -> list[tuple[str, str]]:
    """Pairs that lie over each other by more than `slack` pixels both ways."""
    return [
        (a[0], b[0])
        for index, a in enumerate(boxes)
        for b in boxes[index + 1 :]
        if min(a[3], b[3]) - max(a[1], b[1]) > slack and min(a[4], b[4]) - max(a[2], b[2]) > slack
    ]


@pytest.mark.parametrize("dark", [False, True])
def test_phone_shows_everything_without_scrolling_sideways(open_page: Open, dark: bool) -> None:
    page = open_page("phone", dark=dark, calm=True)
    set_generation(page, gen_length="32")
    page.click("#run")
    wait_for(page, "done")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.body.classList.contains('dark')") is dark


def test_every_tab_can_be_seen(open_page: Open) -> None:
    page = open_page("phone", calm=True)
    tabs = boxes(page, "[role=tab]")
    assert [tab[0] for tab in tabs][:3] == ["Decode", "Tune", "Models"]
    assert {tab[0] for tab in tabs} > set(EXPLAIN)
    assert all(tab[1] >= 0 and tab[3] <= 390 for tab in tabs)
    assert overlaps(tabs) == []


def test_the_settings_of_what_if_stay_in_their_box(open_page: Open) -> None:
    page = open_page("phone", calm=True)
    page.get_by_role("tab", name="What if?").click()
    page.locator("#whatif-never").wait_for()
    [(*_, room, _)] = boxes(page, "#whatif-settings")
    words = boxes(page, "#whatif-settings :is(label, button, span)")
    assert any("never" in word for word, *_ in words)
    assert all(right <= room for *_, right, _ in words)
    assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('#whatif-never'))") <= 0


LINES = """selector => [...document.querySelectorAll(selector)].map(element => {
    const range = document.createRange();
    const words = [];
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        for (const { 0: word, index } of node.data.matchAll(/[\\w%]+/g)) {
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            words.push([word, new Set([...range.getClientRects()].map(box => Math.round(box.top))).size]);
        }
    return words;
}).flat()"""


def broken_words(page: Page, selector: str) -> list[str]:
    """Words of a selector that stand on more than one line."""
    words = page.evaluate(LINES, selector)
    assert words
    return [word for word, lines in words if lines > 1]


def test_no_table_breaks_a_word_nor_widens_the_page(open_page: Open) -> None:
    page = open_page("phone", calm=True)
    page.get_by_role("tab", name="Models", exact=True).click()
    page.wait_for_selector("#model-sizes td")
    assert broken_words(page, "#model-sizes :is(th, td)") == []
    box = page.locator("#model-sizes")
    assert box.evaluate("e => [e, e.querySelector('table')].every(one => one.scrollWidth <= e.clientWidth)")
    fill_tune(page, "hello there", taus="inf", ks="4")
    page.click("#tune-run")
    page.wait_for_selector("#tune-status[data-state=done]")
    page.wait_for_selector("#tune-table th:visible")
    assert broken_words(page, "#tune-table th") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_end_of_every_answer_is_in_sight(open_page: Open) -> None:
    page = open_page("phone", calm=True)
    for name in ("none", "dual", "prefix"):
        page.click("#lanes .es-add")
        page.locator("#lanes select").last.select_option(name)
    page.locator("#observe").get_by_text("not at all").click()
    run_to_its_end(page)
    settled(page)
    below = "e => e.scrollHeight - e.clientHeight - e.scrollTop"
    hidden = f"[...document.querySelectorAll('.es-text')].map({below})"
    assert page.evaluate(hidden) == [0, 0, 0, 0]
    page.evaluate("document.querySelectorAll('.es-text').forEach(e => (e.style.maxHeight = '40px'))")
    page.locator("#grid input[type=range]").press("Home")
    page.locator("#grid input[type=range]").press("End")
    settled(page)
    assert max(page.evaluate(hidden)) <= 1


def test_player_stands_in_two_tidy_lines(open_page: Open) -> None:
    page = open_page("phone", calm=True)
    parts = boxes(page, "#grid .es-player > *")
    assert overlaps(parts) == []
    assert len({round(part[2]) // 24 for part in parts}) <= 3
    assert all(part[1] >= 0 and part[3] <= 390 for part in parts)
    assert boxes(page, "#grid .es-where")[0][4] - boxes(page, "#grid .es-where")[0][2] < 40


@pytest.mark.parametrize("width", ["phone", "desktop"])
def test_no_words_of_a_figure_are_cut_or_lie_over_others(open_page: Open, width: str) -> None:
    page = open_page(width, dark=width == "phone", calm=True)
    for tab, panels in EXPLAIN.items():
        page.get_by_role("tab", name=tab).click()
        for panel in ("timeline", *panels):
            page.wait_for_selector(f"#{panel}[data-ready] .js-plotly-plot .main-svg")
            [frame] = boxes(page, f"#{panel} .es-plot-frame")
            words = [box for box in boxes(page, f"#{panel} .js-plotly-plot text") if box[0].strip()]
            assert words
            cut = [w for w in words if w[1] < frame[1] - 2 or w[3] > frame[3] + 2 or w[4] > frame[4] + 2]
            assert cut == [], panel
            assert overlaps(words) == [], panel
            heads = boxes(page, f"#{panel} .es-card-head > *")
            assert overlaps(heads) == [], panel


@pytest.mark.parametrize("dark", [False, True])
def test_masks_in_the_active_block_differ_in_shape_and_stand_out(open_page: Open, dark: bool) -> None:
    page = open_page("phone", dark=dark, calm=True)
    page.locator("#grid input[type=range]").press("Home")
    page.wait_for_selector('#grid[data-shown="0"]')
    other, active = (
        page.locator(f"#grid .es-cells .c.m{kind}").first.evaluate("e => getComputedStyle(e).backgroundImage")
        for kind in (":not(.w)", ".w")
    )
    assert "repeating-linear-gradient" in other
    assert active.startswith("radial-gradient")
    contrast = page.evaluate(
        """() => {
            const style = getComputedStyle(document.body);
            const light = name => {
                const hex = style.getPropertyValue(name).trim();
                const parts = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255)
                    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
            };
            const [a, b] = [light('--es-mask-window'), light('--es-mask-ground')].sort();
            return (b + 0.05) / (a + 0.05);
        }"""
    )
    assert contrast > 3


def test_run_brings_the_tokens_into_sight_and_keeps_stop_in_reach(open_page: Open) -> None:
    page = open_page("phone", calm=True)
    set_generation(page, gen_length="256", unmask="quota")
    page.click("#run")
    page.wait_for_function("/step ([5-9]|\\d\\d)/.test(document.querySelector('#status').innerText)")
    [grid] = boxes(page, "#grid")
    assert -60 < grid[2] < 422
    [stop] = boxes(page, "#stop")
    assert 0 < stop[2] < stop[4] <= 844
    [player] = boxes(page, "#grid .es-player")
    assert 0 < player[2] < player[4] <= stop[2]
    page.click("#stop")
    wait_for(page, "stopped")
