"""The tune and models tabs in a real browser."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.app.browser.conftest import PATIENCE, ROOT, Open, fill_tune, run_short

MICRO = ROOT / "tests" / "golden" / "llada-micro"
WAIT = PATIENCE * 1000


def test_tuning_puts_its_best_setting_into_the_decode_tab(open_page: Open) -> None:
    page = open_page(calm=True)
    fill_tune(page, "Adam has 7 buttons. First he sells 2. How many are left?", taus="-1, inf", ks="4, 32")
    page.click("#tune-run")
    expect(page.locator("#tune-status")).to_contain_text(re.compile("done: .*entropy · τ"))
    assert page.evaluate("document.querySelector('#tune-front .js-plotly-plot').data.length") > 0
    page.click("#tune-use")
    page.wait_for_selector("#policy-settings [data-name=recent]:visible")
    assert page.input_value("#policy-settings [data-name=recent]") in ("4", "32")


def test_unusable_grid_is_one_sentence(open_page: Open) -> None:
    page = open_page(calm=True)
    fill_tune(page, "hello there", taus="often", ks="4")
    page.click("#tune-run")
    expect(page.locator("#tune-status")).to_contain_text("error: entropy_threshold is 'often'")


def test_model_of_a_folder_answers_after_loading(open_page: Open, any_model: None) -> None:
    page = open_page(calm=True)
    page.get_by_role("tab", name="Models", exact=True).click()
    page.wait_for_selector("#model-status[data-ready]")
    for ref, sentence in (("/nowhere", "error: model /nowhere"), (str(MICRO), "it fits")):
        page.fill("#model input", ref)
        page.keyboard.press("Enter")
        page.click("#model-estimate")
        expect(page.locator("#model-status")).to_contain_text(sentence)
    page.click("#model-load")
    expect(page.locator("#model-status")).to_contain_text("is ready")
    expect(page.locator("#corner")).to_contain_text(f"model {Path(MICRO).name}")
    page.get_by_role("tab", name="Decode", exact=True).click()
    page.fill("#prompt textarea", "5, 9, 33, 7")
    run_short(page)
    expect(page.locator("#cards")).to_contain_text("model llada-micro")
    expect(page.locator("#grid .es-cells")).to_contain_text("#")


def test_asking_for_a_model_is_busy_from_the_press_on(open_page: Open, any_model: None) -> None:
    """The last answer goes at once, and another press waits for its end."""
    page = open_page(calm=True)
    page.get_by_role("tab", name="Models", exact=True).click()
    page.wait_for_selector("#model-status[data-ready]")
    page.click("#model-estimate")
    expect(page.locator("#model-status")).to_contain_text("it fits")
    page.fill("#model input", "no-one/has-this-model")
    page.keyboard.press("Enter")
    page.evaluate(
        """() => {
            const status = document.querySelector("#model-status");
            window.told = [];
            new MutationObserver(() => window.told.push([status.innerText,
                document.querySelector("#model-estimate").getAttribute("aria-disabled")]))
                .observe(status, { attributes: true, childList: true, subtree: true, characterData: true });
        }"""
    )
    page.click("#model-estimate")
    expect(page.locator("#model-status")).to_contain_text("could not be reached on the hub")
    busy = page.evaluate("window.told.filter(([text]) => text.includes('running')).map(([_, off]) => off)")
    assert "true" in busy
    expect(page.locator("#model-estimate")).not_to_have_attribute("aria-disabled", "true")


def test_file_of_prompts_takes_the_place_of_the_box_until_it_is_removed(
    open_page: Open, tmp_path: Path
) -> None:
    page = open_page(calm=True)
    page.get_by_role("tab", name="Tune", exact=True).click()
    page.wait_for_selector("#tune-status[data-ready]")
    mine = tmp_path / "mine.jsonl"
    mine.write_text(3 * '{"prompt": "one two"}\n')
    page.set_input_files("#tune-file input[type=file]", mine)
    box = page.locator("#tune-prompts")
    expect(box).to_contain_text("Not read: 3 prompts of mine.jsonl will be used instead.")
    expect(box.locator("textarea")).to_be_disabled()
    page.locator("#tune-file button[aria-label]").first.click()
    expect(box).not_to_contain_text("Not read")
    expect(box.locator("textarea")).to_be_enabled()
