"""The real app, started as `python app.py` starts it, that also tells what happens inside.

Each line read from standard input is answered by one line of JSON: what has happened since the last one and,
where the line says `held`, what is held in memory now, which takes the server a moment to count.
"""

import gc
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

import app.perform
from analysis.trace import Step, Trace
from app.frames import FrameFeed
from app.start import new_workshop, spare_one_core
from app.turns import Ticket, Turns
from app.ui import build, launch_options
from app.workshop import Workshop

MOST_NOTES = 20_000
PAGE_BYTES = 4096


class Notes:
    """What happened, as (seconds since the epoch, what, who)."""

    def __init__(self) -> None:
        self._notes: deque[tuple[float, str, str]] = deque(maxlen=MOST_NOTES)

    def add(self, what: str, who: str = "") -> None:
        self._notes.append((time.time(), what, who))

    def taken(self) -> list[tuple[float, str, str]]:
        """All of them, forgotten here."""
        taken = []
        while self._notes:
            taken.append(self._notes.popleft())
        return taken


def watch(notes: Notes) -> None:
    """Note joins, leaves and steps; every frame tells when it was sent."""
    join, leave = Turns.join, Turns.leave
    frame, forget = FrameFeed.frame, Workshop.leave

    def noted_join(turns: Turns, visitor: str, errand: str = "") -> Ticket:
        ticket = join(turns, visitor, errand)
        notes.add("joined", visitor)
        return ticket

    def noted_leave(turns: Turns, ticket: Ticket) -> None:
        leave(turns, ticket)
        notes.add("left", ticket.visitor)

    def noted_forget(workshop: Workshop, visitor: str) -> None:
        forget(workshop, visitor)
        notes.add("closed", visitor)

    def noted_frame(feed: FrameFeed, state: str, whole: bool = False) -> dict[str, Any]:
        return {**frame(feed, state, whole), "at": time.time()}

    def noted_steps(observed: Callable[..., Iterator[Trace]]) -> Callable[..., Iterator[Trace]]:
        def steps(*args: Any, **settings: Any) -> Iterator[Trace]:
            for trace in observed(*args, **settings):
                notes.add("step")
                yield trace

        return steps

    noted: tuple[tuple[type, str, Callable[..., Any]], ...] = (
        (Turns, "join", noted_join),
        (Turns, "leave", noted_leave),
        (Workshop, "leave", noted_forget),
        (FrameFeed, "frame", noted_frame),
    )
    for owner, name, method in noted:
        setattr(owner, name, method)
    for name in ("observe", "observe_no_cache"):
        setattr(app.perform, name, noted_steps(getattr(app.perform, name)))


def held(workshop: Workshop, page: gr.Blocks) -> dict[str, int]:
    """What is in memory: bytes resident, objects alive, runs kept, tickets in line, Gradio's sessions."""
    gc.collect()
    alive = gc.get_objects()
    return {
        "resident": int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES,
        "traces": sum(type(thing) is Trace for thing in alive),
        "steps": sum(type(thing) is Step for thing in alive),
        "objects": len(alive),
        "runs": len(workshop.runs),
        "line": len(workshop.turns),
        "sessions": len(page.state_holder.session_data),
    }


def main() -> None:
    notes = Notes()
    watch(notes)
    spare_one_core()
    workshop = new_workshop()
    workshop.model()
    page = build(workshop)
    page.launch(**launch_options(), prevent_thread_lock=True, quiet=True)
    for line in sys.stdin:
        counted = held(workshop, page) if line.strip() == "held" else {}
        sys.stdout.write(json.dumps({"notes": notes.taken(), "held": counted}) + "\n")
        sys.stdout.flush()
    page.close()


if __name__ == "__main__":
    main()
