"""A link that names a model: it is offered, never loaded by itself, and answers once it is there."""

from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import expect

from tests.app.browser.conftest import ROOT, Open

MICRO = ROOT / "tests" / "golden" / "dream-micro"


def test_model_of_a_link_is_offered_then_answers_and_is_in_the_next_link(
    open_page: Open, any_model: None
) -> None:
    query = f"prompt=5, 9, 33&model={quote(str(MICRO), safe='')}"
    page = open_page(calm=True, query=query)
    expect(page.locator("#model-status")).to_contain_text(f"the link's model {MICRO} is not loaded")
    expect(page.locator("#corner")).to_contain_text("model embedded")
    page.click("#model-load")
    expect(page.locator("#corner")).to_contain_text("model dream-micro")
    page.get_by_role("tab", name="Decode", exact=True).click()
    expect(page.locator("#status")).to_contain_text("its model is not loaded, see Models")
    page.locator("#keep-fold").get_by_role("button", name="Keep and share").click()
    page.click("#copy-link")
    page.wait_for_selector("#link textarea, #link input")
    link = page.input_value("#link textarea, #link input")
    assert parse_qs(urlsplit(link).query)["model"] == [str(MICRO)]
    other = open_page(calm=True, query=urlsplit(link).query)
    expect(other.locator("#corner")).to_contain_text("model dream-micro")
    expect(other.locator("#status")).to_contain_text("settings from the link; press Run")
