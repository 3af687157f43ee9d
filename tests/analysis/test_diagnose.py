"""Diagnosis of hand-made traces, and of real policies that are known to have the weakness."""

from dataclasses import replace

import numpy as np
import pytest

from analysis import Trace
from analysis.diagnose import diagnose
from analysis.observe import run_trace
from core import GenerationConfig, LanguageModel, create_policy
from tests import tiny

CONFIG = GenerationConfig(gen_length=16, block_length=8, threshold=0.4)


def test_tokens_never_recomputed_keep_the_vectors_of_their_mask(trace: Trace) -> None:
    # Each later step refreshes the position it commits and the one before, so the last one committed too.
    assert diagnose([trace]).mask_rows == 0
    first, *later = trace.steps
    untouched = [replace(step, refreshed=np.zeros_like(step.refreshed)) for step in later]
    blind = diagnose([replace(trace, steps=(first, *untouched))])
    assert blind.mask_rows == 1
    assert "K/V of their mask" in blind.findings()[0]
    assert blind.longest_reuse == 3
    assert blind.oldest == 3


def test_no_cache_has_fresh_vectors_and_says_that_it_saves_nothing(model: LanguageModel) -> None:
    found = diagnose([run_trace(model, tiny.PROMPTS[0], CONFIG, create_policy("none"))])
    assert (found.mask_rows, found.oldest, found.longest_reuse, found.full_share) == (0, 0, 0, 1)
    assert "saves little" in found.findings()[0]


def test_entropy_cache_recomputes_what_was_just_committed_even_beyond_k(model: LanguageModel) -> None:
    policy = create_policy("entropy", entropy_threshold=float("inf"), recent=0)
    found = diagnose([run_trace(model, prompt, CONFIG, policy) for prompt in tiny.PROMPTS])
    assert found.mask_rows == 0
    assert found.beyond_recent == 1
    assert found.triggered is None


def test_block_starts_are_told_from_triggers(model: LanguageModel) -> None:
    policy = create_policy("entropy", entropy_threshold=float("inf"), refresh_on_block_start=True)
    found = diagnose([run_trace(model, tiny.PROMPTS[0], CONFIG, policy)])
    assert (found.at_block_start, found.triggered) == (1, 0)
    assert any("first step of a block" in text for text in found.findings())


def test_traces_of_two_policies_are_refused(trace: Trace) -> None:
    other = replace(trace, policy={"name": "none", "config": {}})
    with pytest.raises(ValueError, match="allowed: of one"):
        diagnose([trace, other])
    assert len(diagnose([trace]).to_frame()) == 10
