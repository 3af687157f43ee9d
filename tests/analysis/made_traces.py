"""Traces and pairs whose drift, entropy and volatility are known, to measure again."""

from collections.abc import Callable

import numpy as np

from analysis import Step, Trace
from analysis.correlation import DriftPairs
from analysis.drift import POSITION_CLASSES

GEN, LAYERS = 24, 2
FACTS = {
    "ref": "made",
    "family": "llada",
    "dtype": "float32",
    "device": "cpu",
    "num_layers": LAYERS,
    "mask_token_id": 190,
    "eos_token_ids": (1,),
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_heads": 2,
    "num_kv_heads": 1,
    "head_dim": 4,
    "vocab_size": 192,
}


def made_trace(
    entropy: np.ndarray,
    cached_drift: np.ndarray,
    age_drift: Callable[[int], float] = lambda age: 0.5**age,
    block_length: int = 8,
) -> Trace:
    """One token a step from left to right; drift as given, nothing else moves."""
    steps = []
    for t in range(GEN):
        values = np.full((LAYERS, len(POSITION_CLASSES)), np.nan, np.float32)
        count = np.zeros((LAYERS, len(POSITION_CLASSES)), int)
        token = np.full(GEN, np.nan, np.float32)
        if t:
            # prompt, decoded, changed, window, later: the four beside `changed` share the canvas.
            count[:] = (3, t - 1, 1, 8 - t % 8, GEN - t - (8 - t % 8))
            values[:] = cached_drift[t]
            values[:, 2] = 0.9
            token[:t] = [age_drift(t - 1 - position) for position in range(t)]
        steps.append(
            Step(
                step=t,
                full=True,
                reason="first step" if t == 0 else "no cache",
                committed=(t,),
                tokens=(20 + t,),
                confidence=(1 - float(entropy[t]) / 10,),
                entropy=(float(entropy[t]),),
                refreshed=np.full(3 + GEN, LAYERS),
                num_layers=LAYERS,
                seconds={"plan": 0.0, "forward": 1.0, "decode": 0.0},
                measurements={
                    "value_drift": values,
                    "value_drift_count": count,
                    "token_drift": token,
                    "token_changed": np.arange(GEN) == t - 1,
                },
            )
        )
    return Trace(
        model=FACTS,
        policy={"name": "none", "config": {}},
        generation={
            "gen_length": GEN,
            "block_length": block_length,
            "window": "block",
            "unmask": "quota",
        },
        prompt=None,
        prompt_ids=(5, 6, 7),
        tokens=tuple(20 + t for t in range(GEN)),
        text=None,
        steps=tuple(steps),
    )


def following(entropy: np.ndarray) -> np.ndarray:
    """Drift that repeats the entropy of the step before."""
    return np.concatenate(([0.0], entropy[:-1]))


ENTROPY = np.random.default_rng(0).permutation(GEN) / GEN


def pairs_of(
    signal: np.ndarray, moved: np.ndarray, prompt: np.ndarray | None = None, **more: np.ndarray
) -> DriftPairs:
    """Pairs whose largest entropy is `signal`."""
    steps = np.arange(len(moved))
    signals = {"max_entropy": np.asarray(signal, float), **more}
    return DriftPairs(
        signals=signals,
        drift=np.asarray(moved, float),
        step=steps,
        prompt=0 * steps if prompt is None else prompt,
        in_answer=np.ones(len(moved), bool),
        positions="cached",
        every_position=True,
    )
