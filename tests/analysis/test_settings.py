"""Settings as text and back: words, numbers, and whose setting a name is."""

from dataclasses import fields

import pytest

from analysis.settings import Setting, parse_settings, parse_value
from core import POLICIES, GenerationConfig


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("none", None),
        ("inf", float("inf")),
        ("-inf", float("-inf")),
        ("3", 3),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("global", "global"),
    ],
)
def test_values_are_words_numbers_or_text(text: str, value: object) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_a_setting_reads_back_as_it_is_written() -> None:
    settings = "entropy_threshold=inf,recent=8,refresh_on_block_start=true,max_partial_run=none"
    text = f"entropy:{settings},threshold=0.6"
    setting = Setting.parse(text)
    assert setting.label == text
    assert setting.generation == {"threshold": 0.6}
    assert setting.decoding(GenerationConfig()).threshold == 0.6
    assert setting.make_policy().config.recent == 8
    assert Setting.parse("none").label == "none"


def test_a_description_names_every_setting_also_those_left_at_their_defaults() -> None:
    assert Setting.parse("entropy:recent=8,threshold=0.6").described == (
        "entropy entropy_threshold=1.0 recent=8 scope=since_full refresh_on_block_start=false "
        "max_partial_run=none threshold=0.6"
    )
    assert Setting("none").described == "none (no settings)"


def test_no_policy_has_a_setting_of_the_generation_s_name() -> None:
    decoding = {field.name for field in fields(GenerationConfig)}
    for policy in POLICIES.values():
        assert not decoding & {field.name for field in fields(policy.Config)}
    setting = Setting.parse("dkv-greedy:neighbours=2,window=sliding")
    assert setting.config == {"neighbours": 2}
    assert setting.generation == {"window": "sliding"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("guess", "policy is 'guess'"),
        ("entropy:tau=1", "tau"),
        ("entropy:recent", "KEY=VALUE"),
        ("entropy:recent=1,recent=2", "twice"),
        ("entropy:entropy_threshold=high", "entropy_threshold"),
    ],
)
def test_a_bad_setting_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Setting.parse(text)


def test_dashes_in_keys_are_underscores() -> None:
    assert parse_settings(["max-partial-run=none"]) == {"max_partial_run": None}


def test_settings_that_decode_alike_are_one_however_they_are_typed() -> None:
    alike = ["entropy", "entropy:recent=64", "entropy:entropy_threshold=1", "entropy:entropy_threshold=1.0"]
    assert len({Setting.parse(text).identity for text in alike}) == 1
    others = ["entropy:recent=8", "entropy:threshold=0.9", "entropy:entropy_threshold=1.5", "none"]
    assert len({Setting.parse(text).identity for text in [*alike, *others]}) == 5
