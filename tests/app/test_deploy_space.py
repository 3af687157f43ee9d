"""A Hugging Face Space: what its variables change, and that a page starts where only its home is writable."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.catalog import CATALOG
from app.start import new_workshop
from app.zero_gpu import has_zero_gpu
from tests.app.space_check import (
    HARMLESS,
    ROOT,
    SPACE,
    CheckFailedError,
    as_plain_user,
    check_rights,
    copy_tracked,
    remove,
    served,
    user_of,
)


@pytest.mark.parametrize(
    ("environment", "allowed", "space"),
    [
        ({}, None, None),
        ({"SYSTEM": "linux"}, None, None),
        ({"SYSTEM": "spaces"}, CATALOG, None),
        ({"SYSTEM": "spaces", "SPACE_ID": SPACE}, CATALOG, SPACE),
    ],
)
def test_space_offers_its_list_and_knows_its_name(
    environment: dict[str, str], allowed: tuple[str, ...] | None, space: str | None
) -> None:
    workshop = new_workshop(environment)
    assert workshop.shelf.allowed == allowed
    assert workshop.space == space


@pytest.mark.parametrize(("value", "lends"), [("true", True), ("1", True), ("", False), ("false", False)])
def test_zero_gpu_is_what_its_variable_says(value: str, lends: bool) -> None:
    assert has_zero_gpu({"SPACES_ZERO_GPU": value}) == lends
    assert not has_zero_gpu({})


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may enter, which pytest's own are not."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    remove(made)


def test_page_starts_as_a_plain_user_who_may_write_a_home_only(folder: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("what belongs to the page is what git lists")
    needs_setpriv()
    repository, home, log = folder / "app", folder / "home", folder / "log.txt"
    (home / "tmp").mkdir(parents=True)
    # Files that are new too: what is not committed yet is tested as well.
    copy_tracked(repository, "--cached", "--others", "--exclude-standard")
    with served(Path(sys.executable), repository, home, log) as server:
        assert user_of(server.process.pid) != "root"
        check_rights(Path(sys.executable), repository, server.process.pid)
        with urllib.request.urlopen(f"{server.address}/config", timeout=60) as answer:
            config = json.load(answer)
    [model] = [part for part in config["components"] if part["props"].get("elem_id") == "model"]
    assert [ref for ref, _ in model["props"]["choices"]] == list(CATALOG)
    assert not model["props"]["allow_custom_value"]
    said = log.read_text()
    assert said.count("Traceback") <= said.count(HARMLESS), said[-3000:]


@pytest.mark.parametrize("open_to_all", ["app.py", "."])
def test_a_repository_that_the_page_could_change_is_noticed(open_to_all: str, folder: Path) -> None:
    needs_setpriv()
    if sys.platform != "linux":
        pytest.skip("whose a process is stands in /proc, which is Linux")
    repository, python = folder / "app", Path(sys.executable)
    repository.mkdir()
    (repository / "app.py").write_text("")
    (repository / "app.py").chmod(0o444)
    repository.chmod(0o555)
    waiting = "import time; print('here', flush=True); time.sleep(600)"
    with subprocess.Popen([*as_plain_user(python), python, "-c", waiting], stdout=subprocess.PIPE) as process:
        try:
            # Until it has spoken, it may still be root on its way to another user.
            assert process.stdout is not None
            process.stdout.readline()
            check_rights(python, repository, process.pid)
            (repository / open_to_all).chmod(0o777)
            with pytest.raises(CheckFailedError, match="may change the repository"):
                check_rights(python, repository, process.pid)
        finally:
            process.kill()


def test_a_server_of_roots_is_noticed(folder: Path) -> None:
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("only root has processes of root's")
    with pytest.raises(CheckFailedError, match="runs as root"):
        check_rights(Path(sys.executable), folder, os.getpid())


def needs_setpriv() -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("to run as another user takes setpriv")


def test_root_gives_its_rights_up() -> None:
    needs_setpriv()
    assert bool(as_plain_user(Path(sys.executable))) == (os.geteuid() == 0)
