"""Absence: a visitor whose connection has ended may be back in a moment, or have gone for good."""

import threading
from collections.abc import Callable

# A tab that is closed says so itself: this is for lost networks and crashed browsers.
GRACE_SECONDS = 30.0


class Absence:
    """Who is away. `gone` is called with those who do not come back in time."""

    def __init__(self, gone: Callable[[str], None], seconds: float = GRACE_SECONDS) -> None:
        self._gone, self._seconds = gone, seconds
        self._lock = threading.Lock()
        self._timers: dict[str, threading.Timer] = {}

    def begin(self, visitor: str) -> None:
        """Their connection has ended; the time of an absence that has begun already runs on."""
        with self._lock:
            if visitor in self._timers:
                return
            timer = self._timers[visitor] = threading.Timer(self._seconds, self._over, (visitor,))
            timer.daemon = True
            timer.start()

    def end(self, visitor: str) -> None:
        """They are back, or known to have left."""
        with self._lock:
            timer = self._timers.pop(visitor, None)
        if timer is not None:
            timer.cancel()

    def _over(self, visitor: str) -> None:
        with self._lock:
            # Whoever came back in this very instant is not gone.
            if self._timers.get(visitor) is not threading.current_thread():
                return
            del self._timers[visitor]
        self._gone(visitor)
