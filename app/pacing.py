"""Pacing: how often each part of the page is redrawn while a run goes on."""

import time
from collections.abc import Callable

GRID_HZ = 12.0
PLOTS_HZ = 2.0
MAX_SHARE = 0.2


class Pace:
    """`due()` is True at most `hz` times a second; every part of the page has a pace of its own.

    What is slow to draw is drawn less often: `took` keeps it to MAX_SHARE of the time. The first call is
    due. What is skipped is not lost: the caller sends the latest when it is due, and everything once more
    at the end.
    """

    def __init__(self, hz: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not hz > 0:
            raise ValueError(f"hz is {hz}; allowed: above 0")
        self._interval = 1 / hz
        self._clock = clock
        self._next = float("-inf")

    def due(self) -> bool:
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._interval
        return True

    def took(self, seconds: float) -> None:
        """Tell how long the drawing that was due has taken."""
        self._next = max(self._next, self._clock() + seconds * (1 / MAX_SHARE - 1))
