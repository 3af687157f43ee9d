"""python -m tests.app.load: measure the real app under load, on this machine, and print a Markdown table.

Asks nobody but the server it starts on 127.0.0.1, and stops by itself.
"""

import argparse
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from tests.app.browser.conftest import status
from tests.app.load import browser, crowd
from tests.app.load.figures import Figure, growth, spread
from tests.app.load.server import Server, serving

MIB = 2**20
TARGET_MS = 50.0
TARGET_HZ = 12.0
WARM_UP_VISITORS = 5


def grid(server: Server) -> Iterator[Figure]:
    """The token grid while a run goes on."""
    with browser.page_of(server.address, browser.LIVE) as page:
        before = server.processor_seconds(), browser.processor_seconds(page)
        log = browser.watched_run(page)
        after = server.processor_seconds(), browser.processor_seconds(page)
        took = status(page)
    painted, late = browser.updates(log), browser.latencies(log)
    sent = [frame["sent"] for frame in log["frames"]]
    rate = browser.per_second(painted)
    of = f"{browser.TOKENS} tokens, one a step ({took})"
    yield Figure(
        f"updates of the token grid, {of}",
        f"{rate:.1f} a second: {len(painted)} paints over {(painted[-1] - painted[0]) / 1000:.1f} s",
        f"{TARGET_HZ:g} a second",
        rate >= TARGET_HZ,
    )
    yield Figure("frames that the server sent", f"{browser.per_second(sent):.1f} a second, n = {len(sent)}")
    met = bool(late) and float(np.median(late)) < TARGET_MS
    yield Figure("step sent to step painted", spread(late, "ms"), f"median < {TARGET_MS:g} ms", met)
    yield Figure("frame sent to the page's script having it", spread(browser.on_the_way(log), "ms"))
    served, drawn = (end - start for start, end in zip(before, after, strict=True))
    text = f"server {served:.1f} s, page {drawn:.1f} s of a core"
    yield Figure("processor time of that run, whoever else was at work", text)


def scrub(server: Server) -> Iterator[Figure]:
    """The scrubber over a comparison."""
    steps = browser.SCRUBBED_STEPS
    chance = random.Random(0)
    with browser.page_of(server.address, browser.COMPARED) as page:
        browser.press_run(page)
        page.wait_for_timeout(1000 * browser.REST_SECONDS)
        before = browser.processor_seconds(page)
        ahead = browser.scrub(page, list(range(1, steps + 1)))
        cost = 1000 * (browser.processor_seconds(page) - before) / steps
        jumps = browser.scrub(page, [chance.randrange(steps + 1) for _ in range(steps)])
        keys = browser.key_presses(page, steps // 2)
    of = f"4 policies, {browser.TOKENS} tokens, {steps} steps"
    for name, taken in (("next step", ahead), ("any step", jumps)):
        met = float(np.median(taken)) < TARGET_MS
        yield Figure(
            f"scrubber moved to paint, {name} ({of})", spread(taken, "ms"), f"< {TARGET_MS:g} ms", met
        )
    yield Figure("processor time of a move to the next step, the page's", f"mean {cost:.1f} ms, n = {steps}")
    slow = sum(taken > TARGET_MS for taken in keys)
    yield Figure(
        "arrow key to paint, by the browser's own account (in steps of 8 ms, from 16 on)",
        f"{spread(keys, 'ms', 0)}; {slow} of {steps // 2} presses over {TARGET_MS:g} ms",
    )


def visitors(server: Server) -> Iterator[Figure]:
    """Twenty at once."""
    found = crowd.twenty(server)
    waited = [one.first_step - one.pressed for one in found.seen]
    fair = found.served == [one.visitor for one in found.seen]
    told = [one for one in found.seen[1:] if any("ahead of you" in said for said in one.said)]
    ended = sum(one.end == "done" for one in found.seen)
    for first, last in ((1, 5), (6, 10), (11, 15), (16, 20)):
        yield Figure(f"Run to first step, places {first} to {last}", spread(waited[first - 1 : last], "s", 2))
    yield Figure(
        "served in the order they came",
        f"{'all' if fair else 'not all'} of {len(waited)}, {ended} runs done",
        "order kept",
        fair,
    )
    yield Figure(
        "told their place while they waited",
        f"{len(told)} of {len(waited) - 1}",
        "all",
        len(told) == len(waited) - 1,
    )


def closing(server: Server) -> Iterator[Figure]:
    """A tab closed in mid-run."""
    found = crowd.closings(server)
    steps = [one.steps for one in found]
    yield Figure(
        "steps computed after a tab was closed in mid-run",
        f"at most {max(steps)}, n = {len(steps)}",
        "1",
        max(steps) <= 1,
    )
    yield Figure("tab closed to line free", spread([one.run for one in found], "s", 2))
    freed = [one.traces for one in found]
    yield Figure("tab closed to traces freed", spread(freed, "s", 2), "< 60 s", max(freed) < 60)


def memory(server: Server) -> Iterator[Figure]:
    """Two hundred runs."""
    held = crowd.many_runs(server)
    each = crowd.RUNS_EACH
    runs = each * (len(held) - 1)
    kept = held[WARM_UP_VISITORS:]
    if len(kept) < 4:
        yield Figure("growth of resident memory", f"not observed: only {runs} runs in the time given")
        return
    of = f"{runs} runs by {len(held) - 1} visitors, from run {each * WARM_UP_VISITORS} on"
    mean, low, high = (value / MIB for value in growth([one["resident"] for one in kept], each))
    yield Figure(
        f"growth of resident memory ({of})",
        f"{mean:+.3f} MiB a run, 95 % interval {low:+.3f} to {high:+.3f}, n = {len(kept) - 1} differences",
        "none: 0 within the interval",
        low <= 0,
    )
    resident = [f"{one['resident'] / MIB:.0f}" for one in (held[0], kept[0], held[-1])]
    yield Figure("resident before, at the start of it, at the end", f"{' / '.join(resident)} MiB")
    for name in ("traces", "sessions", "objects"):
        counts = [one[name] for one in (held[0], kept[0], held[-1])]
        flat = counts[-1] <= counts[0] if name != "objects" else None
        target = "no more than before" if flat is not None else ""
        yield Figure(f"{name} alive at the same times", " / ".join(map(str, counts)), target, flat)


PARTS: dict[str, Callable[[Server], Iterator[Figure]]] = {
    "grid": grid,
    "scrub": scrub,
    "visitors": visitors,
    "closing": closing,
    "memory": memory,
}


def machine() -> str:
    """What the figures were taken on."""
    cores, load = sorted(os.sched_getaffinity(0)), os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, {len(cores)} of them for server and browser together, "
        f"torch {torch.__version__}, load average {load:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.app.load", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", help=f"any of {', '.join(PARTS)}; all of them where none is named"
    )
    parser.add_argument("--json", type=Path, help="also write the figures into this file")
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"parts are {unknown[0]}; allowed: {', '.join(PARTS)}")
    figures: list[Figure] = []
    print(f"{machine()}\n\n| what | figure | target | |\n|---|---|---|---|", flush=True)
    for part in given.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
            for figure in PARTS[part](server):
                figures.append(figure)
                print(figure.row(), flush=True)
            assert "Traceback" not in server.log.read_text(), server.log.read_text()[-3000:]
    print(f"\n{machine()} at the end")
    if given.json:
        given.json.write_text(json.dumps([vars(figure) for figure in figures], indent=1) + "\n")


if __name__ == "__main__":
    main()
