"""What a run tells its observers: frozen records of plain numpy and Python values, no tensors."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Request:
    """One prompt of a run; `text` is None where token ids were given."""

    index: int
    prompt_ids: tuple[int, ...]
    text: str | None


@dataclass(frozen=True)
class RunStarted:
    """First event. canvas_length = prompt_length + gen_length, prompts left-padded to prompt_length.

    model holds ref, family, dtype, device, num_layers, mask_token_id, eos_token_ids, vocab_size.
    """

    requests: tuple[Request, ...]
    canvas_length: int
    prompt_length: int
    model: dict[str, Any]
    policy: str
    policy_config: dict[str, Any]
    generation: dict[str, Any]


@dataclass(frozen=True)
class Generation:
    """What became of one request.

    tokens: gen_length ids; after stop_at_eos the undecoded rest is end-of-text and decoded_at is -1 there.
    decoded_at: the step at which each was committed. text: decoded up to the first end-of-text, or None
    without a tokenizer.
    """

    request: Request
    tokens: tuple[int, ...]
    decoded_at: tuple[int, ...]
    num_steps: int
    text: str | None


@dataclass(frozen=True)
class StepEvent:
    """One denoising step of every slot. Leading axis B is the slot, L the canvas position.

    request: int [B], the request a slot works on, -1 while idle. step, block: int [B], its own clocks,
    counted from 0. full: bool [B], every valid position was recomputed in every layer; reason: why, one
    constant label a slot. targets, committed: bool [B, L]. tokens: int [B, L], proposals at targets,
    -1 elsewhere. confidence, entropy (nats): float32 [B, L], NaN outside targets. refreshed: int [B, L],
    number of layers that recomputed the position. seconds: plan, forward and decode of the whole batch.
    measurements: what probes saw, name -> array with leading axis B. finished: requests ended here.
    """

    request: np.ndarray
    step: np.ndarray
    block: np.ndarray
    full: np.ndarray
    reason: tuple[str, ...]
    targets: np.ndarray
    committed: np.ndarray
    tokens: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    refreshed: np.ndarray
    seconds: dict[str, float]
    measurements: dict[str, np.ndarray] = field(default_factory=dict)
    finished: tuple[Generation, ...] = ()


@dataclass(frozen=True)
class RunFinished:
    """Last event of a run that was not cut short, generations in the order of the prompts."""

    generations: tuple[Generation, ...]


Event = RunStarted | StepEvent | RunFinished
