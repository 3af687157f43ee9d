"""Hand-made runs: events and traces of a three-layer model that never existed."""

from collections.abc import Iterator

import numpy as np
import pytest

from analysis import Trace, TraceRecorder
from core.events import Event, Generation, Request, RunFinished, RunStarted, StepEvent

MASK, EOS = 190, 1
PROMPTS = ((5, 6, 7), (8, 9))
PROMPT_LENGTH, GEN_LENGTH, NUM_LAYERS = 3, 4, 3
# One position a request and step; the last token but one of request 0 is end-of-text.
COMMITS = ((0, 1), (1, 0), (2, 2), (3, 3))
TOKENS = ((11, 12, EOS, 14), (21, 22, 23, 24))


def step_event(step: int) -> StepEvent:
    """Step `step` of both requests: all of request 0 refreshed at step 0, two layers of two rows later."""
    batch, canvas = len(PROMPTS), PROMPT_LENGTH + GEN_LENGTH
    committed = np.zeros((batch, canvas), bool)
    tokens = np.full((batch, canvas), -1)
    confidence, entropy = np.full((2, batch, canvas), np.nan, np.float32)
    refreshed = np.zeros((batch, canvas), int)
    for slot in range(batch):
        position = COMMITS[step][slot]
        column = PROMPT_LENGTH + position
        committed[slot, column] = True
        tokens[slot, column] = TOKENS[slot][position]
        confidence[slot, column] = 0.9 - 0.1 * step
        entropy[slot, column] = 0.1 + 0.3 * step + slot
        if step == 0:
            refreshed[slot, PROMPT_LENGTH - len(PROMPTS[slot]) :] = NUM_LAYERS
        else:
            refreshed[slot, column - 1 : column + 1] = 2
    return StepEvent(
        request=np.arange(batch),
        step=np.full(batch, step),
        block=np.zeros(batch, int),
        full=np.full(batch, step == 0),
        reason=("first step" if step == 0 else "below threshold",) * batch,
        targets=committed,
        committed=committed,
        tokens=tokens,
        confidence=confidence,
        entropy=entropy,
        refreshed=refreshed,
        seconds={"plan": 0.1, "forward": 0.6, "decode": 0.3},
        measurements={
            "drift": np.array([[0.25, np.nan], [0.5, 0.125]], np.float32),
            "flips": np.array([[step, 0], [0, step]]),
            "seen": np.array([[True, False], [False, True]]),
        },
    )


def run_events() -> Iterator[Event]:
    """A whole run of two requests whose prompts differ in length."""
    requests = (Request(0, PROMPTS[0], "a"), Request(1, PROMPTS[1], None))
    yield RunStarted(
        requests=requests,
        canvas_length=PROMPT_LENGTH + GEN_LENGTH,
        prompt_length=PROMPT_LENGTH,
        model={
            "ref": "made",
            "family": "llada",
            "dtype": "float32",
            "device": "cpu",
            "num_layers": NUM_LAYERS,
            "mask_token_id": MASK,
            "eos_token_ids": (EOS,),
            "vocab_size": 192,
        },
        policy="entropy",
        policy_config={"entropy_threshold": float("inf"), "recent": 64},
        generation={"gen_length": GEN_LENGTH, "block_length": 4, "steps": None, "seed": 0},
    )
    for step in range(GEN_LENGTH):
        yield step_event(step)
    decoded_at = [tuple(np.argsort([commit[i] for commit in COMMITS]).tolist()) for i in range(len(PROMPTS))]
    yield RunFinished(
        tuple(Generation(of, TOKENS[of.index], decoded_at[of.index], 4, "text") for of in requests)
    )


@pytest.fixture
def recorder() -> TraceRecorder:
    """A recorder that has seen the whole run."""
    recorder = TraceRecorder()
    for event in run_events():
        recorder.observe(event)
    return recorder


@pytest.fixture
def trace(recorder: TraceRecorder) -> Trace:
    return recorder.trace(0)
