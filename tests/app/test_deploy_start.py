"""Ways to start the page: each serves it; a port that is none is one sentence, before anything is loaded."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from app.port import settle_port

ROOT = Path(__file__).resolve().parents[2]
GRADIO = Path(sys.executable).parent / "gradio"
PATIENCE = 120


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    own = {"GRADIO_SERVER_PORT", "GRADIO_SERVER_NAME", "PORT"}
    return {**{key: value for key, value in os.environ.items() if key not in own}, **more}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ([sys.executable, "-m", "app"], "PORT"),
        ([str(GRADIO), "app.py"], "GRADIO_SERVER_PORT"),
    ],
    ids=["python -m app", "gradio app.py"],
)
def test_page_is_served(command: list[str], name: str, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log.txt"
    with log.open("w") as sink:
        # A session of its own: reload mode starts the page in a child.
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(**{name: port}, GRADIO_TEMP_DIR=str(tmp_path), HF_HUB_OFFLINE="1"),
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        assert "EntropyScope" in fetched(f"http://127.0.0.1:{port}/config", server, log)
        # What a first visitor needs from the server: reload mode must not lose the package's modules.
        assert "plotly" in fetched(f"http://127.0.0.1:{port}/", server, log)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=20)
    assert "Traceback" not in log.read_text()


def fetched(url: str, server: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.mark.parametrize("given", ["abc", "0", "65536", "-1", "80.5", "8 0", "٣"])
@pytest.mark.parametrize("name", ["PORT", "GRADIO_SERVER_PORT"])
def test_port_that_is_none_is_one_sentence(name: str, given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        settle_port({name: given})
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{name} is {given!r}; allowed: a number from 1 to 65535\n"


@pytest.mark.parametrize(
    ("given", "settled"),
    [
        ({}, {}),
        ({"PORT": ""}, {}),
        ({"GRADIO_SERVER_PORT": " "}, {}),
        ({"PORT": "8000"}, {"PORT": "8000", "GRADIO_SERVER_PORT": "8000"}),
        ({"PORT": "1", "GRADIO_SERVER_PORT": "2"}, {"PORT": "1", "GRADIO_SERVER_PORT": "2"}),
    ],
)
def test_port_is_what_the_environment_says(given: dict[str, str], settled: dict[str, str]) -> None:
    settle_port(given)
    assert given == settled


@pytest.mark.parametrize("command", [["app.py"], ["-m", "app"]])
def test_every_start_checks_the_port_first(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment(PORT="abc"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert done.stderr == "PORT is 'abc'; allowed: a number from 1 to 65535\n"


@pytest.mark.parametrize("given", ["abc", "0", "65536", "8 0"])
def test_make_checks_the_port_before_it_installs(given: str, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).touch()
    done = subprocess.run(
        ["make", "run", "PYTHON=false"],
        cwd=tmp_path,
        env=environment(PORT=given),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stderr.splitlines()[0] == f"PORT is '{given}'; allowed: a number from 1 to 65535"
    assert not (tmp_path / ".venv").exists()
