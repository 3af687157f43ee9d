"""Server: the app in a process of its own, and a way to ask it what happens inside."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.app.browser.conftest import ROOT, local_place, wait_until_up

Note = tuple[float, str, str]


@dataclass
class Server:
    """address: where it listens, on this machine only. log: the file with what it said."""

    address: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def processor_seconds(self) -> float:
        """Processor time that the server has taken by now, all its threads."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def notes(self) -> list[Note]:
        """What has happened since the last time, see tests.app.load.serve."""
        return [(at, what, who) for at, what, who in self._ask(b"\n")["notes"]]

    def held(self) -> dict[str, int]:
        """What it holds in memory; drops the notes up to now."""
        return dict(self._ask(b"held\n")["held"])

    def _ask(self, line: bytes) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def wait_for(self, what: str, who: str, seconds: float) -> tuple[list[Note], float | None]:
        """Notes until the one looked for has come, with its time; None where it hasn't in time."""
        notes: list[Note] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            notes += self.notes()
            found = [at for at, kind, of in notes if kind == what and of == who]
            if found:
                return notes, found[0]
            time.sleep(0.1)
        return notes, None


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """The app on a free port of this machine, ended with the block. folder: for its log and files."""
    port, environment = local_place(folder)
    log = folder / "log.txt"
    with log.open("w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.app.load.serve"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(address, process, log)
        yield Server(address, process, log)
    finally:
        process.terminate()
        process.communicate(timeout=20)
