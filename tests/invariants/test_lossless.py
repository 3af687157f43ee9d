"""A policy at its exact limit decodes the tokens of no cache, at the same steps, by every rule."""

import pytest

from core import LanguageModel, create_policy
from tests.invariants.runs import HEAT, RULES, WAYS, Run, config, decode, eager_policy, lossless_policy
from tests.tiny import FAMILIES, PROMPTS


@pytest.fixture(scope="module")
def uncached() -> dict[tuple[str, str, str], list[Run]]:
    """Runs of `none`, each decoded once and compared with every policy."""
    return {}


@pytest.mark.parametrize(("rule", "heat"), WAYS)
def test_lossless_limit_decodes_as_no_cache(
    model: LanguageModel,
    family: str,
    policy_name: str,
    rule: str,
    heat: str,
    uncached: dict[tuple[str, str, str], list[Run]],
) -> None:
    generation = config(rule, heat)
    if (family, rule, heat) not in uncached:
        uncached[family, rule, heat] = decode(model, PROMPTS[:2], generation, create_policy("none"))
    plain = uncached[family, rule, heat]
    cached = decode(model, PROMPTS[:2], generation, lossless_policy(policy_name))
    assert [run.tokens for run in cached] == [run.tokens for run in plain]
    assert [run.committed for run in cached] == [run.committed for run in plain]


def test_lossless_limit_holds_in_a_sliding_window_or_is_refused(
    model: LanguageModel, policy_name: str
) -> None:
    policy = lossless_policy(policy_name)
    generation = config("threshold", window="sliding")
    if policy.needs_blocks:
        with pytest.raises(ValueError, match=f"policy {policy_name} works block by block"):
            decode(model, PROMPTS[:1], generation, policy)
        return
    plain = decode(model, PROMPTS[:1], generation, create_policy("none"))
    assert decode(model, PROMPTS[:1], generation, policy)[0].committed == plain[0].committed


@pytest.mark.parametrize("heat", HEAT)
def test_the_runs_compared_are_not_all_alike(models: dict[str, LanguageModel], heat: str) -> None:
    """The comparison above can fail: rules differ, steps commit one and several, caches change tokens."""
    outputs, sizes, differs = set(), set(), False
    for family in FAMILIES:
        for rule in RULES:
            run = decode(models[family], PROMPTS[:1], config(rule, heat), create_policy("none"))[0]
            outputs.add((family, tuple(map(tuple, run.committed))))
            sizes.update(len(step) for step in run.committed)
        for name in ("dual", "entropy"):
            plain = decode(models[family], PROMPTS, config("threshold", heat), create_policy("none"))
            cached = decode(models[family], PROMPTS, config("threshold", heat), eager_policy(name))
            differs |= [run.tokens for run in plain] != [run.tokens for run in cached]
    assert len(outputs) > 2 * len(FAMILIES)
    assert {1, 2, 3} <= sizes
    assert differs
