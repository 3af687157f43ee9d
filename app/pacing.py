"""Pacing: how often each part of the page is redrawn while a run goes on."""

import time
from collections.abc import Callable

GRID_HZ = 12.0
PLOTS_HZ = 2.0


class Pace:
    """`due()` is True at most `hz` times a second; every part of the page has a pace of its own.

    The first call is due. What is skipped is not lost: the caller sends the latest when it is due, and
    everything once more at the end.
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
