"""The report in a browser: wide tables scroll in their own box on a screen and fit the paper in print."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from analysis.bench_point import BenchPoint
from analysis.report import render
from analysis.results import Results
from tests.app.browser.conftest import PATIENCE

WIDEST = """() => [document.documentElement.scrollWidth, innerWidth,
  ...[...document.querySelectorAll('table.numbers')].map(table => table.getBoundingClientRect().right)]"""
BOX = "() => getComputedStyle(document.querySelector('.scroll')).overflowX"


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    """The widest table there is."""
    sizes = {"model": "a-model-with-a-long-name", "num_layers": 32, "hidden_size": 4096, "batch": 1}
    lengths = {"prompt_length": 128, "gen_length": 64, "threads": 1, "repeats": 3, "steps": 16}
    seconds = dict.fromkeys(("full_seconds", "partial_seconds", "plan_seconds", "seconds"), 0.0123)
    shares = dict.fromkeys(("decision_overhead", "spread"), 0.01)
    point = BenchPoint(
        setting="entropy",
        dtype="bfloat16",
        device="cpu",
        partial_rows=64.0,
        positions_per_second=123.4,
        peak_bytes=None,
        **sizes,
        **lengths,
        **seconds,
        **shares,
    )
    path = tmp_path / "report.html"
    results = Results(benches=[[point, replace(point, setting="dual")]], decodings={"bench": ["made up"]})
    path.write_text(render(results, "title"), encoding="utf-8")
    return path


@pytest.mark.parametrize(("media", "width"), [("screen", 1200), ("screen", 390), ("print", 1047)])
def test_no_table_is_clipped(browser: Browser, page_file: Path, media: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_default_timeout(PATIENCE * 1000)
    try:
        page.emulate_media(media=media)
        page.goto(page_file.as_uri())
        whole, window, *tables = page.evaluate(WIDEST)
        assert len(tables) == 1
        assert whole <= window
        if media == "print":
            assert max(tables) <= window
        else:
            assert max(tables) > window
            assert page.evaluate(BOX) == "auto"
    finally:
        page.close()


INSIDE = """() => [...document.querySelectorAll('.plotly-graph-div')].map(figure => {
  const box = (name) => figure.querySelector(name).getBoundingClientRect();
  const whole = figure.getBoundingClientRect(), title = box('.gtitle'), legend = box('.legend');
  return { cut: title.right > whole.right + 1 || title.top < whole.top || legend.bottom > whole.bottom + 1,
    over: title.bottom > legend.top && legend.bottom > title.top };
})"""


def test_a_narrow_page_cuts_no_title_and_says_that_its_table_scrolls(
    browser: Browser, page_file: Path
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.set_default_timeout(PATIENCE * 1000)
    try:
        page.goto(page_file.as_uri())
        page.wait_for_function("[...document.querySelectorAll('.plotly-graph-div')].every(f => f.wide)")
        page.wait_for_function(f"({INSIDE})().every(one => !one.cut && !one.over)")
        assert len(page.evaluate(INSIDE)) == 3
        assert page.locator(".more").is_visible()
        page.set_viewport_size({"width": 1200, "height": 800})
        page.wait_for_function(
            "[...document.querySelectorAll('.plotly-graph-div')].every(f => f.layout.legend.y > 1)"
        )
    finally:
        page.close()
