"""make space-check: does the page start and work as a Hugging Face Space would run it?

A new environment holding requirements.txt and nothing else, the repository's tracked files, a user that may
write its own home and nothing beside it, the variables a Space sets; then the browser tests against it.
PYTHON names another interpreter, ARGS is passed on to pytest.
"""

import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPACE = "somebody/entropyscope"
START_SECONDS = 30
NOBODY = "nobody"
# Reading what lies in root's home, such as an interpreter, is all that this adds to a plain user.
MAY_READ = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
# Gradio's own reloading thread, which finds no such package; a Space has it.
HARMLESS = "`spaces` package is required"


class CheckFailedError(Exception):
    """The page would not do on a Space; the message says why."""


def say(text: str) -> None:
    sys.stdout.write(f"space-check: {text}\n")
    sys.stdout.flush()


def copy_tracked(target: Path, *more: str) -> None:
    """The repository's tracked files as they stand: what a push to a Space would bring. more: for git."""
    command = ["git", "ls-files", "-z", *more]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    for path in (target, *target.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


def new_environment(interpreter: str, folder: Path, requirements: Path) -> Path:
    """A virtual environment with those requirements and nothing else; its interpreter."""
    started = time.monotonic()
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    version = subprocess.run([python, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    say(f"installing {requirements.name} for {version}; a Space takes the README's python_version")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", requirements]
    subprocess.run(install, check=True)
    say(f"installed in {time.monotonic() - started:.0f} s")
    return python


def as_plain_user(python: Path) -> list[str]:
    """What to put before a command so that it does not run as root; nothing where we are not root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(NOBODY)
    drop = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    for prefix in ([*drop], [*drop, *MAY_READ]):
        if subprocess.run([*prefix, python, "-c", ""], capture_output=True).returncode == 0:
            return prefix
    raise CheckFailedError(f"user {NOBODY} can't run {python}; name an interpreter it can reach with PYTHON=")


@dataclass(frozen=True)
class Server:
    """A page as a Space would run it. seconds: from the start of the process to its first answer."""

    address: str
    process: "subprocess.Popen[bytes]"
    seconds: float


@contextmanager
def served(python: Path, repository: Path, home: Path, log: Path) -> Iterator[Server]:
    """Run `python app.py` as a Space would, then end it; CheckFailedError where it does not come up."""
    prefix = as_plain_user(python)
    if prefix:
        user = pwd.getpwnam(NOBODY)
        for path in (home, home / "tmp"):
            os.chown(path, user.pw_uid, user.pw_gid)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "SYSTEM": "spaces",
        "SPACE_ID": SPACE,
        "GRADIO_SERVER_NAME": "0.0.0.0",
        "GRADIO_SERVER_PORT": str(port),
        "HF_HUB_OFFLINE": "1",
    }
    begin = time.monotonic()
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*prefix, python, "app.py"],
            cwd=repository,
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        address = f"http://127.0.0.1:{port}"
        while not answers(f"{address}/config"):
            if process.poll() is not None or time.monotonic() - begin > 4 * START_SECONDS:
                raise CheckFailedError(f"the page did not come up:\n{log.read_text()[-3000:]}")
            time.sleep(0.1)
        yield Server(address, process, time.monotonic() - begin)
    finally:
        process.terminate()
        process.wait(timeout=30)


def check_rights(python: Path, repository: Path, pid: int) -> None:
    """Raise CheckFailedError where the server is root in any way, or its user may change the repository."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    ids = next(line for line in lines if line.startswith("Uid:")).split()[1:]
    if "0" in ids:
        raise CheckFailedError(f"the server runs as root: real, effective, saved and file user are {ids}")
    # Tried, not read off the modes: what a user may do also depends on its capabilities.
    for attempt in ("open('app.py', 'a')", "open('new.py', 'w')", "__import__('os').remove('app.py')"):
        command = [*as_plain_user(python), python, "-c", attempt]
        if subprocess.run(command, cwd=repository, capture_output=True).returncode == 0:
            raise CheckFailedError(f"the server's user may change the repository: {attempt}")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def memory_mib(pid: int) -> float:
    """The most memory that a process has held."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), float("nan"))


def check(interpreter: str, tests: Sequence[str]) -> None:
    """All of it. Raises CheckFailedError for the first thing that would not do on a Space."""
    folder = Path(tempfile.mkdtemp(prefix="space-check-"))
    folder.chmod(0o755)
    repository, home, log = folder / "app", folder / "home", folder / "log.txt"
    (home / "tmp").mkdir(parents=True)
    try:
        copy_tracked(repository)
        python = new_environment(interpreter, folder / "venv", repository / "requirements.txt")
        with served(python, repository, home, log) as server:
            say(
                f"up after {server.seconds:.1f} s (allowed: {START_SECONDS}) as {user_of(server.process.pid)}"
            )
            check_rights(python, repository, server.process.pid)
            late = server.seconds > START_SECONDS
            more = {"APP_ADDRESS": server.address, "APP_SPACE": SPACE, "REQUIRE_BROWSER": "1"}
            command = [sys.executable, "-m", "pytest", "-q", "tests/app/browser", *tests]
            passed = subprocess.run(command, cwd=ROOT, env={**os.environ, **more}).returncode == 0
            say(f"the server held at most {memory_mib(server.process.pid):.0f} MiB")
        if not passed:
            raise CheckFailedError(f"browser tests failed; the server said:\n{log.read_text()[-3000:]}")
        said = log.read_text()
        if said.count("Traceback") > said.count(HARMLESS):
            raise CheckFailedError(f"the server met an error:\n{said[-3000:]}")
        if late:
            raise CheckFailedError(f"the page took {server.seconds:.1f} s to start; allowed: {START_SECONDS}")
    finally:
        remove(folder)


def remove(folder: Path) -> None:
    """Delete a folder, what `copy_tracked` has made read-only included."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def user_of(pid: int) -> str:
    """Who runs a process."""
    return pwd.getpwuid(Path(f"/proc/{pid}").stat().st_uid).pw_name


def main() -> int:
    """Run the check; 0 where the page would do, else 1 with the reason on standard error."""
    if sys.platform != "linux":
        say("a Space runs on Linux, and so does this check")
        return 1
    # An end from outside leaves no server and no folder behind either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        check(os.environ.get("PYTHON") or sys.executable, shlex.split(os.environ.get("ARGS", "")))
    except (CheckFailedError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"space-check: failed: {error}\n")
        return 1
    say("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
