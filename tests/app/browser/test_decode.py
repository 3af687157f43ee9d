"""The decode tab in a real browser, on the real app with the embedded model."""

import re
from dataclasses import asdict

import pytest
from playwright.sync_api import expect

from core.policies import POLICIES, describe
from tests.app.browser.conftest import (
    Open,
    choose_policy,
    run_short,
    run_to_its_end,
    set_generation,
    settled,
    status,
    wait_for,
)


def test_recorded_example_fills_the_page_before_the_first_run(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("#grid").get_by_text("recorded example")).to_be_visible()
    expect(page.locator("#grid .es-text")).to_contain_text("####")
    assert page.locator("#grid .c.m").count() <= 2  # the legend's own
    expect(page.locator("#cards")).to_contain_text("recorded example")
    assert page.locator("#timeline .es-cursor.now").is_visible()
    assert len(page.evaluate("document.querySelector('#scatter .js-plotly-plot').data[0].customdata")) > 50


def test_run_shows_tokens_as_they_appear_then_figures(open_page: Open) -> None:
    page = open_page()
    set_generation(page, unmask="quota")  # 128 steps: a parallel run may end between two looks at the page
    page.evaluate(
        """() => {
            window.masks = [];
            const count = () => window.masks.push(document.querySelectorAll('#grid .es-cells .c.m').length);
            new MutationObserver(count).observe(document.querySelector('#grid'),
                {subtree: true, childList: true, attributes: true, attributeFilter: ['data-ready']});
        }"""
    )
    run_to_its_end(page)
    settled(page)
    masks = page.evaluate("window.masks")
    assert len(set(masks)) > 5, "tokens should appear bit by bit"
    assert masks[-1] == 0
    assert not page.locator("#grid").get_by_text("recorded example").is_visible()
    assert re.match(r"done: \d+ steps, \d+ of them full", status(page))
    expect(page.locator("#grid .es-text")).to_contain_text("####")
    # Steps within the answer and those after its end are drawn apart.
    points = page.evaluate(
        """document.querySelector('#scatter .js-plotly-plot').data
            .reduce((points, { customdata }) => points + (customdata ? customdata.length : 0), 0)"""
    )
    assert points == 127
    expect(page.locator("#scatter")).to_contain_text("Spearman")
    expect(page.locator("#scatter")).to_contain_text("one token a step, no cache")
    names = page.evaluate(
        "document.querySelector('#volatility .js-plotly-plot').layout.annotations.map(a => a.text)"
    )
    assert "k = 64" in names


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("gen_length", "100", "block_length is 32; allowed: a divisor of gen_length 100"),
        ("entropy_threshold", "abc", "entropy_threshold is 'abc'"),
    ],
)
def test_wrong_setting_is_one_sentence_at_its_field(
    open_page: Open, name: str, value: str, sentence: str
) -> None:
    page = open_page(calm=True)
    if name == "gen_length":
        set_generation(page, **{name: value})
    else:
        page.fill(f"#policy-settings [data-name={name}]", value)
    page.click("#run")
    wait_for(page, "error")
    assert status(page).startswith("error: ")
    assert sentence in status(page)
    blamed = sentence.split(" ")[0]
    expect(page.locator(f"[data-name={blamed}]").first).to_have_attribute("aria-invalid", "true")
    if name == "gen_length":
        set_generation(page, gen_length="32")
    else:
        page.fill(f"#policy-settings [data-name={name}]", "0.5")
    page.click("#run")
    wait_for(page, "done")


def test_empty_and_far_too_long_prompts_are_refused_and_the_page_stays_usable(open_page: Open) -> None:
    page = open_page(calm=True)
    for prompt, sentence in (("", "prompt is empty"), ("keep " * 1900, "over the model's context of 1280")):
        page.fill("#prompt textarea", prompt)
        page.click("#run")
        page.wait_for_function(
            "text => document.querySelector('#status').innerText.includes(text)", arg=sentence
        )
        assert status(page).startswith("error: ")
    page.get_by_role("button", name="code ↻").click()
    page.wait_for_function("document.querySelector('#prompt textarea').value.length > 10")
    set_generation(page, gen_length="32")
    page.click("#run")
    wait_for(page, "done")


def test_another_policy_brings_its_own_form_and_run(open_page: Open) -> None:
    page = open_page(calm=True)
    choose_policy(page, "dual")
    expect(page.locator("#policy-settings [data-name=entropy_threshold]")).to_have_count(0)
    page.locator("#policy-settings .es-policy-card").evaluate("card => card.open = true")
    card = page.inner_text("#policy-settings")
    for part in asdict(describe(POLICIES["dual"])).values():
        assert part.replace("`", "") in card
    set_generation(page, gen_length="32")
    page.locator("#observe").get_by_text("not at all").click()
    page.click("#run")
    wait_for(page, "done")
    expect(page.locator("#cards")).to_contain_text("dual")
    expect(page.locator("#scatter")).to_contain_text("Drift was not measured")
    page.locator("#scatter").get_by_role("button", name="measure drift").click()
    expect(page.locator("#status")).to_contain_text("drift measured")
    expect(page.locator("#scatter")).to_contain_text("Spearman")


def test_scrubber_replays_by_keyboard(open_page: Open) -> None:
    page = open_page(calm=True)
    steps = int(page.get_attribute("#grid", "data-shown"))
    slider = page.locator("#grid input[type=range]")
    slider.focus()
    slider.press("Home")
    page.wait_for_selector('#grid[data-shown="0"]')
    expect(page.locator("#grid .es-cells .c.m")).to_have_count(128)
    for _ in range(3):
        slider.press("ArrowRight")
    page.wait_for_selector('#grid[data-shown="3"]')
    assert 0 < page.locator("#grid .es-cells .c.m").count() < 128
    assert page.locator("#timeline .es-cursor.now").is_visible()
    slider.press("End")
    page.wait_for_selector(f'#grid[data-shown="{steps}"]')
    slider.press("Space")
    page.wait_for_selector('#grid[data-settled="no"]')


def test_pointing_at_a_token_tells_its_facts_and_a_click_pins_until_escape(open_page: Open) -> None:
    page = open_page(calm=True)
    cell = page.locator("#grid .es-cells .c").nth(5)
    cell.hover()
    expect(page.locator("#grid .es-tip")).to_contain_text("position 5")
    expect(page.locator("#grid .es-tip")).to_contain_text("confidence")
    expect(page.locator("#grid .es-tip")).to_contain_text("K/V")
    cell.click()
    page.mouse.move(5, 5)
    page.wait_for_selector("#grid .c.pin")
    expect(page.locator("#grid .es-tip")).to_have_text(re.compile("^position 5"))
    page.keyboard.press("Escape")
    page.wait_for_selector("#grid .c.pin", state="detached")


def test_cells_keep_their_place_while_tokens_appear(open_page: Open) -> None:
    page = open_page(calm=True)
    slider = page.locator("#grid input[type=range]")
    places = """() => JSON.stringify(
        [...document.querySelectorAll('#grid .es-cells .c, #grid .es-player, #timeline')]
            .map((element) => [element.offsetLeft, element.getBoundingClientRect().top + window.scrollY]))"""
    seen = set()
    for key, shown in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowRight", 3)):
        slider.press(key)
        page.wait_for_selector(f'#grid[data-shown="{shown}"]')
        seen.add(page.evaluate(places))
    assert len(seen) == 1


def test_speedups_are_measured_on_demand(open_page: Open) -> None:
    page = open_page(calm=True)
    set_generation(page, gen_length="32")
    page.locator("#observe").get_by_text("not at all").click()
    page.click("#run")
    wait_for(page, "done")
    page.get_by_role("button", name="measure vs no cache").click()
    expect(page.locator("#status")).to_contain_text("speeds measured")
    expect(page.get_by_role("button", name="measure vs no cache")).to_have_count(0)
    expect(page.locator("#cards")).to_contain_text("median and range of 3 rounds after a warm-up")
    expect(page.locator("#cards")).to_contain_text(re.compile(r"(\d[\d.]*×.*){2}"))


def test_empty_answer_is_explained_beside_the_text_not_in_it(open_page: Open) -> None:
    page = open_page(calm=True)
    text = page.locator("#grid .es-text")
    why = "e => getComputedStyle(e, '::before').content"
    assert text.evaluate(why) == "none"
    page.fill("#prompt textarea", "hello there")
    run_short(page)
    settled(page)
    expect(text).to_have_text("")
    assert text.evaluate("e => e.innerText") == ""
    told = text.evaluate(why)
    assert told.startswith('"(empty: the model wrote end-of-text first; the embedded model often does')
    page.locator("#grid input[type=range]").press("Home")
    page.wait_for_selector('#grid[data-shown="0"]')
    assert text.evaluate(why) in ("none", '""'), "nothing is decided yet"
