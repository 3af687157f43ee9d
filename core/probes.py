"""The Probe protocol: look at state and cache between steps, from outside, without changing either."""

from typing import Protocol

import numpy as np
from torch import Tensor

from core.cache import KVCache
from core.state import DecodeState


class Probe(Protocol):
    """Called after each step's commit with the canvas that the forward saw still at hand.

    `inputs` [B, L] are the tokens of this step's forward (before the commit) and `rows` bool [B, L] the
    positions whose K/V it wrote in any layer. Must not write to state or cache; its time is not counted.
    """

    def measure(
        self, state: DecodeState, cache: KVCache, inputs: Tensor, rows: Tensor
    ) -> dict[str, np.ndarray]: ...
