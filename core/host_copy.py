"""StepCopy: what one step left on the host, and the one copy that brings it there."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class StepCopy:
    """One step, numpy. Target-space arrays [B, T], refreshed [B, L], the clocks and what follows [B]."""

    positions: np.ndarray
    token: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    committed: np.ndarray
    refreshed: np.ndarray
    step: np.ndarray
    block: np.ndarray
    reason: np.ndarray
    full: np.ndarray
    finished: np.ndarray
    seconds: dict[str, float]
    measurements: dict[str, np.ndarray]


# In the order in which a step packs them.
HOST_FIELDS = tuple(field.name for field in fields(StepCopy))[:-2]


def to_host(tensors: Sequence[Tensor], counts: Tensor) -> tuple[dict[str, np.ndarray], list[int]]:
    """The step's only synchronisation: HOST_FIELDS by name, and the coming step's counts int64 [X].

    Everything travels in one float32 copy: ids and counts stay below 2**24.
    """
    every = [*tensors, counts]
    if counts.device.type == "cpu":
        pieces = [tensor.numpy() for tensor in every]
    else:
        packed = torch.cat([tensor.reshape(-1).float() for tensor in every]).cpu().numpy()
        ends = np.cumsum([tensor.numel() for tensor in every])[:-1]
        parts = np.split(packed, ends)
        pieces = [part.reshape(tensor.shape) for part, tensor in zip(parts, every, strict=True)]
    last = [int(count) for count in pieces.pop()]
    return dict(zip(HOST_FIELDS, pieces, strict=True)), last
