"""Keeping and sharing in a real browser: pictures, the zip and its offline page, files, links, history."""

import json
import zipfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from app.panels import ASSETS
from tests.app.browser.conftest import PATIENCE, Open, run_short, set_generation, watch


def unfold(page: Page) -> None:
    page.locator("#keep-fold").get_by_role("button", name="Keep and share").click()
    page.wait_for_selector("#download")


def open_file(page: Page, path: Path) -> None:
    with page.expect_file_chooser() as chooser:
        page.click("#open-trace")
    chooser.value.set_files(path)


def test_pictures_are_saved_without_a_server(open_page: Open) -> None:
    page = open_page(calm=True)
    for figure, kind, start in (("scatter", "PNG", b"\x89PNG"), ("timeline", "SVG", b"<svg")):
        with page.expect_download() as saved:
            page.locator(f"#{figure}").get_by_role("button", name=f"as {kind}").click()
        content = Path(saved.value.path()).read_bytes()
        assert content.startswith(start)
        assert saved.value.suggested_filename.startswith("recorded-")
        if kind == "SVG":
            assert b"Recompute timeline" in content
            assert b"One bar a step" in content


def test_server_draws_pictures_of_a_run_of_ones_own_only(open_page: Open) -> None:
    page = open_page(calm=True)
    unfold(page)
    page.click("#pictures")
    expect(page.locator("#status")).to_contain_text("error: there is no run of yours to draw")


@pytest.fixture
def bundle(open_page: Open, tmp_path: Path) -> Path:
    page = open_page(calm=True)
    run_short(page, compare=("none",))
    unfold(page)
    with page.expect_download() as saved:
        page.click("#download")
    saved.value.save_as(tmp_path / "run.zip")
    return tmp_path / "run.zip"


def test_zip_opens_offline_and_its_trace_opens_here(
    open_page: Open, browser: Browser, bundle: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    report = next(tmp_path.glob("run-*/report.html"))
    problems: list[str] = []
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE * 1000)
    offline = context.new_page()
    watch(offline, report.as_uri(), problems)
    offline.goto(report.as_uri())
    offline.wait_for_selector("#timeline[data-ready]")
    offline.wait_for_selector("#grid[data-ready]")
    expect(offline.locator("#grid .es-lane")).to_have_count(2)
    offline.locator("#grid input[type=range]").press("Home")
    offline.wait_for_selector('#grid[data-shown="0 0"]')
    context.close()
    assert problems == []
    page = open_page(calm=True)
    unfold(page)
    open_file(page, next(tmp_path.glob("run-*/trace-b.json")))
    expect(page.locator("#status")).to_contain_text("done: opened")
    expect(page.locator("#grid h3")).to_have_text("none")
    trace = json.loads(next(tmp_path.glob("run-*/trace-b.json")).read_text())
    assert trace["text"].strip()
    expect(page.locator("#grid .es-text")).to_have_text(trace["text"])


def test_file_that_is_no_trace_is_refused(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps({"schema": 1, "model": {}}))
    page = open_page(calm=True)
    unfold(page)
    open_file(page, tmp_path / "bad.json")
    expect(page.locator("#status")).to_contain_text("error: trace: model.ref")


def test_opened_trace_brings_its_prompt_and_settings(open_page: Open, tmp_path: Path) -> None:
    content = json.loads((ASSETS / "traces" / "entropy.json").read_text(encoding="utf-8"))
    content["policy"] = {"name": "dual", "config": {}}
    for name in ("trace.json", "two.json"):
        lines = [json.dumps(content)] * (1 if name == "trace.json" else 2)
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    page = open_page(calm=True)
    page.fill("#prompt textarea", "another prompt")
    page.fill("#policy-settings [data-name=entropy_threshold]", "0.25")
    set_generation(page, gen_length="32")
    unfold(page)
    open_file(page, tmp_path / "trace.json")
    expect(page.locator("#status")).to_contain_text("done: opened 20 steps of dual")
    expect(page.locator("#prompt textarea")).to_have_value(content["prompt"])
    expect(page.locator("#policy input")).to_have_value("dual")
    expect(page.locator('#policy-settings [data-policy="dual"]')).to_be_visible()
    expect(page.locator("#generation [data-name=gen_length]")).to_have_value("128")
    expect(page.locator("#cards")).to_contain_text("one run, opened from a file")
    open_file(page, tmp_path / "two.json")
    expect(page.locator("#status")).to_contain_text("the first of 2 traces")


def test_link_brings_settings_back(open_page: Open) -> None:
    page = open_page(calm=True)
    page.fill("#prompt textarea", "Sort 3, 1 & 2?")
    page.fill("#policy-settings [data-name=entropy_threshold]", "0.25")
    unfold(page)
    page.click("#copy-link")
    page.wait_for_selector("#link textarea, #link input")
    link = page.input_value("#link textarea, #link input")
    query = urlsplit(link).query
    assert parse_qs(query)["policy"][0].startswith("entropy:entropy_threshold=0.25,")
    other = open_page(calm=True, query=query + "&with=none")
    expect(other.locator("#status")).to_contain_text("settings from the link")
    expect(other.locator("#prompt textarea")).to_have_value("Sort 3, 1 & 2?")
    expect(other.locator("#policy-settings [data-name=entropy_threshold]")).to_have_value("0.25")
    expect(other.locator("#lanes .es-other")).to_have_count(1)


def test_bad_link_says_what_is_wrong(open_page: Open) -> None:
    page = open_page(calm=True, query="policy=magic")
    expect(page.locator("#status")).to_contain_text("error: link: policy is 'magic'")


def test_history_shows_two_runs_side_by_side(open_page: Open) -> None:
    page = open_page(calm=True)
    for tau in ("0.1", "inf"):
        page.fill("#policy-settings [data-name=entropy_threshold]", tau)
        run_short(page)
    unfold(page)
    boxes = page.locator("#history input[type=checkbox]")
    expect(boxes).to_have_count(2)
    boxes.nth(0).check()
    boxes.nth(1).check()
    # Of all the page's boxes that Gradio's style sheet would draw without a tick.
    looks = page.locator("[data-panel] input[type=checkbox]").evaluate_all(
        "boxes => boxes.map((box) => getComputedStyle(box).appearance)"
    )
    assert set(looks) == {"auto"}
    told = page.locator("#history .es-past b").all_inner_texts()
    assert len(set(told)) == 2
    page.get_by_role("button", name="show 2 side by side").click()
    expect(page.locator("#grid .es-lane")).to_have_count(2)
    expect(page.locator("#cards")).to_contain_text("agreement")
    # Neither is without a cache: what the marks compare with is named as it is.
    expect(page.locator("#grid .es-legend")).to_contain_text("differs from run A")
    expect(page.locator("#grid")).to_contain_text("τ inf")
    expect(page.locator("#grid")).to_contain_text("τ 0.1")
    # Figures that no run's own message brings are drawn anew for what is shown again, too.
    page.get_by_role("tab", name="Recompute map").click()
    expect(page.locator("#map .es-choices").first.get_by_role("button")).to_have_count(2)
    boxes = page.locator("#history input:checked")
    boxes.first.uncheck()
    page.get_by_role("button", name="show again").click()
    expect(page.locator("#grid .es-lane")).to_have_count(1)
    expect(page.locator("#map .es-choices").first).to_be_hidden()
    expect(page.locator("#map .es-behind")).to_be_hidden()
