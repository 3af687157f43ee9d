"""GenerationConfig and policy configs: what is refused, and whether the sentence names the field."""

import math
from dataclasses import fields
from typing import get_type_hints

import pytest

from core import POLICIES, UNMASK_RULES, GenerationConfig, create_policy, generate, load_model
from core.config import UNMASK_NAMES


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gen_length", 0),
        ("gen_length", 16.0),
        ("gen_length", True),
        ("block_length", 0),
        ("block_length", 48),
        ("unmask", "luck"),
        ("threshold", 1.5),
        ("threshold", math.nan),
        ("threshold", "0.9"),
        ("steps", 0),
        ("steps", 129),
        ("factor", 0.0),
        ("entropy_bound", -0.1),
        ("window", "round"),
        ("temperature", -1.0),
        ("temperature", math.inf),
        ("temperature", 1e-45),
        ("top_k", 0),
        ("top_p", 0.0),
        ("cfg_scale", -1.0),
        ("cfg_scale", 1e38),
        ("eos", "maybe"),
        ("seed", -1),
        ("seed", 2**63),
        ("top_k", 2**63),
        ("threshold", 10**400),
    ],
)
def test_a_bad_setting_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field) as caught:
        GenerationConfig(**{"gen_length": 128, "block_length": 32, field: value})
    assert str(value) in str(caught.value)


def words(config: type) -> dict[str, tuple[str, ...]]:
    """Allowed words of each field that takes words."""
    hints = get_type_hints(config)
    return {one.name: one.metadata.get("choices", ()) for one in fields(config) if hints[one.name] is str}


@pytest.mark.parametrize(
    "config", [GenerationConfig, *dict.fromkeys(policy.Config for policy in POLICIES.values())]
)
def test_every_word_that_a_setting_takes_is_known_to_forms_and_no_other_is_taken(config: type) -> None:
    for name, choices in words(config).items():
        assert config().__getattribute__(name) in choices
        with pytest.raises(ValueError, match=name):
            config(**{name: "nonsense"})


def test_names_of_unmask_rules_are_those_that_exist() -> None:
    assert set(UNMASK_NAMES) == set(UNMASK_RULES)


def test_steps_must_spread_evenly_over_blocks() -> None:
    GenerationConfig(gen_length=32, block_length=8, unmask="quota", steps=12)
    with pytest.raises(ValueError, match="steps"):
        GenerationConfig(gen_length=32, block_length=8, unmask="quota", steps=10)


def test_an_int_stands_for_a_float() -> None:
    assert GenerationConfig(threshold=1).threshold == 1


def test_configs_are_frozen() -> None:
    with pytest.raises(AttributeError):
        GenerationConfig().seed = 3  # type: ignore[misc]


def test_to_dict_makes_the_same_config_again() -> None:
    config = GenerationConfig(gen_length=16, block_length=8, unmask="quota", steps=4, seed=5)
    assert GenerationConfig(**config.to_dict()) == config


@pytest.mark.parametrize("name", POLICIES)
def test_policy_defaults_are_valid_and_round_trip(name: str) -> None:
    policy = create_policy(name)
    assert isinstance(policy, POLICIES[name])
    assert policy.name == name
    assert create_policy(name, **policy.config.to_dict()).config == policy.config
    assert policy.REASONS[0] == "first step"


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="entrpy") as caught:
        create_policy("entrpy")
    assert all(name in str(caught.value) for name in POLICIES)


def test_an_unknown_policy_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="entropy_treshold"):
        create_policy("entropy", entropy_treshold=1.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("entropy_threshold", math.nan),
        ("entropy_threshold", "high"),
        ("entropy_threshold", None),
        ("recent", -1),
        ("recent", 2.5),
        ("scope", "all"),
        ("refresh_on_block_start", 1),
        ("max_partial_run", 0),
        ("max_partial_run", 2**63),
        ("entropy_threshold", 10**400),
    ],
)
def test_a_bad_entropy_setting_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        create_policy("entropy", **{field: value})


@pytest.mark.parametrize("value", [math.nan, "high", None])
def test_a_bad_threshold_is_told_that_infinity_is_a_number(value: object) -> None:
    with pytest.raises(ValueError, match=r"allowed: a number, or inf$"):
        create_policy("entropy", entropy_threshold=value)


@pytest.mark.parametrize("tau", [-1, 0.0, 3, math.inf, -math.inf])
def test_every_number_is_an_entropy_threshold(tau: float) -> None:
    assert create_policy("entropy", entropy_threshold=tau).config.entropy_threshold == tau


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("huge", [math.inf, 1e300, 2**62])
def test_a_number_out_of_all_proportion_is_refused_or_works(policy: str, huge: float) -> None:
    model = load_model(device="cpu", dtype="float32")
    for name, value in POLICIES[policy].Config().to_dict().items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                chosen = create_policy(policy, **{name: huge})
            except ValueError:
                continue
            [made] = generate(model, [[5, 6]], GenerationConfig(gen_length=8, block_length=4), chosen)
            assert len(made.tokens) == 8
