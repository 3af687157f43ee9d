"""The browser that tests draw and look with: one of the machine's own."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOW_TO_GET_ONE = "no Chrome or Chromium found: `apt-get install chromium`, or put one of your own on the PATH"


def found_chrome() -> str | None:
    """Path of a browser, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def needed_chrome() -> str:
    """The same; without one the test is skipped, or fails where REQUIRE_BROWSER=1."""
    found = found_chrome()
    if found is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(HOW_TO_GET_ONE)
        pytest.skip(HOW_TO_GET_ONE)
    return found
