"""The Probe protocol: look at state and cache between steps, from outside, without changing either."""

from typing import Protocol

import numpy as np
from torch import Tensor

from core.cache import KVCache
from core.state import DecodeState


class Probe(Protocol):
    """Called once a step, after the forward and before its commit.

    `state` is the canvas exactly as the forward saw it; `cache` holds what the forward left behind (with
    classifier-free guidance its slots B..2B-1 are the unconditional copies); `refreshed` int [B, L] is
    the number of layers that recomputed each position. Must not write to any of them. Returned arrays
    have the leading axis B. Its time is in none of the step's seconds.
    """

    def measure(self, state: DecodeState, cache: KVCache, refreshed: Tensor) -> dict[str, np.ndarray]: ...
