"""Pacing: how often each part of the page is redrawn while a run goes on."""

import time
from collections.abc import Callable

# Above the 12 updates a second to be seen: a browser paints two that come close together at once.
GRID_HZ = 15.0
PLOTS_HZ = 2.0
MAX_SHARE = 0.2


class Pace:
    """`due()` is True `hz` times a second where it is asked often enough, the first time at once.

    A beat that comes late does not put off those after it, or a part due 15 times a second would be drawn
    11 times beside steps of 30 ms; beats that were missed are not made up for. What is slow to draw is drawn
    less often: `took` keeps it to MAX_SHARE of the time. What is skipped is not lost: the caller sends the
    latest when it is due, and everything once more at the end.
    """

    def __init__(self, hz: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not hz > 0:
            raise ValueError(f"hz is {hz}; allowed: above 0")
        self._interval = 1 / hz
        self._clock = clock
        self._next: float | None = None

    def due(self) -> bool:
        now = self._clock()
        if self._next is not None and now < self._next:
            return False
        start = now if self._next is None else self._next
        self._next = start + self._interval * (1 + int((now - start) / self._interval))
        return True

    def took(self, seconds: float) -> None:
        """Tell how long the drawing that was due has taken."""
        self._next = max(self._next or 0.0, self._clock() + seconds * (1 / MAX_SHARE - 1))
