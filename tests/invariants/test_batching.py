"""A request decodes to the same tokens, by the same recomputed rows, whatever it shares its batch with."""

import numpy as np
import pytest

from core import CachePolicy, LanguageModel
from tests.invariants.runs import GEN, HEAT, RULES, WAYS, Run, config, decode, eager_policy, with_eos
from tests.tiny import PROMPTS


def assert_same(ours: Run, theirs: Run) -> None:
    """Equal decisions and rows; distributions equal up to kernel rounding."""
    assert ours.tokens == theirs.tokens
    assert ours.committed == theirs.committed
    assert ours.computed == theirs.computed
    for a, b in zip(ours.steps, theirs.steps, strict=True):
        assert (a.step, a.full, a.reason) == (b.step, b.full, b.reason)
        np.testing.assert_allclose(a.entropy, b.entropy, atol=1e-4)
        np.testing.assert_allclose(a.confidence, b.confidence, atol=1e-4)


@pytest.mark.parametrize(("rule", "heat"), [("one a step", "greedy"), *WAYS[-1:], ("threshold", "greedy")])
def test_a_batch_of_padded_prompts_decodes_as_each_alone(
    model: LanguageModel, policy_name: str, rule: str, heat: str
) -> None:
    generation = config(rule, heat)
    together = decode(model, PROMPTS, generation, eager_policy(policy_name))
    for prompt, run in zip(PROMPTS, together, strict=True):
        assert_same(run, decode(model, [prompt], generation, eager_policy(policy_name))[0])


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("one a step", "threshold")])
def test_the_other_rules_ignore_the_batch_too(model: LanguageModel, policy_name: str, rule: str) -> None:
    together = decode(model, PROMPTS, config(rule), eager_policy(policy_name))
    alone = decode(model, PROMPTS[1:2], config(rule), eager_policy(policy_name))[0]
    assert_same(together[1], alone)


def test_the_order_of_the_batch_does_not_matter(model: LanguageModel, policy: CachePolicy) -> None:
    forward = decode(model, PROMPTS, config(), policy)
    backward = decode(model, PROMPTS[::-1], config(), policy)
    for a, b in zip(forward, backward[::-1], strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("bucket", [5, 1000])
def test_rounding_row_counts_up_changes_nothing(
    model: LanguageModel, policy: CachePolicy, bucket: int
) -> None:
    exact = decode(model, PROMPTS, config(), policy, row_bucket=1)
    rounded = decode(model, PROMPTS, config(), policy, row_bucket=bucket)
    for a, b in zip(exact, rounded, strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("heat", HEAT)
def test_requests_admitted_into_freed_slots_decode_as_alone(
    model: LanguageModel, policy_name: str, heat: str
) -> None:
    generation = config("threshold", heat)
    prompts = [*PROMPTS, PROMPTS[0][::-1], PROMPTS[2][::-1]]
    queued = decode(model, prompts, generation, eager_policy(policy_name), slots=2)
    for prompt, run in zip(prompts, queued, strict=True):
        assert_same(run, decode(model, [prompt], generation, eager_policy(policy_name))[0])


def test_sequences_that_end_early_leave_the_others_alone(model: LanguageModel, policy_name: str) -> None:
    """End-of-text is a token that is often written, so that requests end at different steps."""
    generation = config("threshold", stop_at_eos=True)
    written = decode(model, PROMPTS, config("threshold"), eager_policy(policy_name))
    for eos in sorted({token for run in written for token in run.tokens}):
        ending = with_eos(model, eos)
        together = decode(ending, PROMPTS, generation, eager_policy(policy_name))
        if min(len(run.order) for run in together) < GEN:
            break
    assert len({len(run.steps) for run in together}) > 1
    for prompt, run in zip(PROMPTS, together, strict=True):
        assert_same(run, decode(ending, [prompt], generation, eager_policy(policy_name))[0])
        first = [*run.tokens, eos].index(eos)
        assert all(at >= 0 for at in run.generation.decoded_at[: first + 1])


def test_a_policy_object_carries_nothing_from_run_to_run(model: LanguageModel, policy: CachePolicy) -> None:
    first = decode(model, PROMPTS[:1], config(), policy)[0]
    decode(model, PROMPTS, config("one a step"), policy)
    assert_same(first, decode(model, PROMPTS[:1], config(), policy)[0])
