"""What every step of every run keeps: progress, finality, and numbers only where something was computed."""

import math

import numpy as np
import pytest

from core import POLICIES, LanguageModel
from tests.invariants.runs import BLOCK, WAYS, Run, config, decode, eager_policy
from tests.tiny import LAYERS, MASK, PROMPTS, SHIFT, VOCAB


@pytest.fixture(params=WAYS, ids=" ".join)
def runs(request: pytest.FixtureRequest, model: LanguageModel, policy_name: str) -> list[Run]:
    return decode(model, PROMPTS[:2], config(*request.param), eager_policy(policy_name))


def test_every_run_keeps_the_laws_of_a_step(runs: list[Run], policy_name: str, family: str) -> None:
    for run in runs:
        check_progress(run)
        check_finality(run)
        check_numbers(run, SHIFT[family])
        if not POLICIES[policy_name].reads_kept_rows:
            check_sources(run, SHIFT[family])


def check_progress(run: Run) -> None:
    """At least one commit a step, so the end comes within gen_length steps; the clock counts them."""
    assert [step.step for step in run.steps] == list(range(len(run.steps)))
    assert all(step.committed.any() for step in run.steps)
    assert len(run.steps) <= len(run.tokens)
    assert run.generation.num_steps == len(run.steps)
    assert sorted(run.order) == list(range(len(run.tokens)))


def check_finality(run: Run) -> None:
    """What a step committed is what the generation holds; blocks are finished in order."""
    start = len(run.prompt_ids)
    for step in run.steps:
        for position in np.flatnonzero(step.committed):
            assert step.tokens[position] == run.tokens[position - start]
            assert run.generation.decoded_at[position - start] == step.step
    assert MASK not in run.tokens
    blocks = [at // BLOCK for at in run.order]
    assert blocks == sorted(blocks)


def check_numbers(run: Run, shift: int) -> None:
    """Targets are masks, their rows were computed, and everything else has no number."""
    masked = np.ones(len(run.steps[0].targets), dtype=bool)
    masked[: len(run.prompt_ids)] = False
    for step in run.steps:
        assert not (step.targets & ~masked).any()
        assert not (step.committed & ~step.targets).any()
        assert (step.refreshed[np.flatnonzero(step.targets) - shift] > 0).all()
        for numbers in (step.confidence, step.entropy):
            assert np.isfinite(numbers[step.targets]).all()
            assert np.isnan(numbers[~step.targets]).all()
        assert (step.tokens[~step.targets] == -1).all()
        entropy = step.entropy[step.targets]
        assert ((entropy >= 0) & (entropy <= math.log(VOCAB) + 1e-5)).all()
        confidence = step.confidence[step.targets]
        assert ((confidence > 0) & (confidence <= 1 + 1e-6)).all()
        assert ((step.refreshed >= 0) & (step.refreshed <= LAYERS)).all()
        assert step.full == (step.refreshed == LAYERS).all()
        masked &= ~step.committed
    assert run.steps[0].full
    assert run.steps[0].reason == "first step"
    assert all(step.reason != "first step" for step in run.steps[1:])


def check_sources(run: Run, shift: int) -> None:
    """The row that predicts a target was recomputed in every layer; a shift reads the row to its left."""
    for step in run.steps:
        assert (step.refreshed[np.flatnonzero(step.targets) - shift] == LAYERS).all()


def test_quota_takes_exactly_its_steps(model: LanguageModel, policy_name: str) -> None:
    run = decode(model, PROMPTS[:1], config("quota"), eager_policy(policy_name))[0]
    # A policy that narrows the targets below the quota commits all it left, and needs more steps.
    sizes = [min(3, int(step.targets.sum())) for step in run.steps]
    assert [len(step) for step in run.committed] == sizes
    assert len(run.steps) == 6 or min(sizes) < 3


def test_a_sampled_run_repeats_with_its_seed_and_changes_with_another(
    model: LanguageModel, policy_name: str
) -> None:
    def tokens(seed: int) -> list[int]:
        generation = config("threshold", "sampled", seed=seed)
        return decode(model, PROMPTS[:1], generation, eager_policy(policy_name))[0].tokens

    assert tokens(5) == tokens(5)
    assert tokens(5) != tokens(6)
