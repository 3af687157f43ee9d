"""Forms: every dataclass gives a form whose untouched entries read back as its defaults."""

import math
import re
from dataclasses import dataclass

import pytest

from app.forms import (
    defaults,
    describe,
    entered,
    explain,
    form_fields,
    generation_spec,
    policy_spec,
    read,
    read_all,
)
from core import POLICIES, GenerationConfig, create_policy
from core.policies import PolicyConfig


@dataclass(frozen=True)
class NewConfig(PolicyConfig):
    """A policy nobody has seen. tau: when to look again, in nats. patience: steps to wait for it."""

    tau: float = math.inf
    patience: int | None = None
    eager: bool = False


@pytest.mark.parametrize("name", POLICIES)
def test_untouched_form_is_the_policy_with_its_defaults(name: str) -> None:
    entries = defaults(POLICIES[name].Config)
    assert create_policy(name, **read_all(entries, "form")).config == POLICIES[name].Config()


def test_untouched_generation_form_is_the_default_generation() -> None:
    assert GenerationConfig(**read_all(defaults(GenerationConfig), "form")) == GenerationConfig()


def test_every_policy_has_a_form_and_a_description() -> None:
    spec = policy_spec()["policies"]
    assert list(spec) == list(POLICIES)
    assert all(all(entry["about"].values()) for entry in spec.values())


def test_every_field_of_a_policy_is_explained() -> None:
    for policy in POLICIES.values():
        every = explain(policy.Config)
        for name, said in every.items():
            assert said.endswith("."), (policy.name, name)
            assert said[0].isalnum() or said[0] == "`", (policy.name, name)
            assert ". " not in said, f"{policy.name}, {name}: more than one sentence"
        assert len(set(every.values())) == len(every), policy.name


def test_every_generation_setting_has_a_whole_sentence_of_its_own() -> None:
    """No half of a neighbour's, no name of the code that a page's reader can't look up."""
    said = {field["name"]: field["help"] for field in generation_spec()["fields"]}
    assert len(set(said.values())) == len(said)
    for name, text in said.items():
        assert text.endswith("."), name
        assert ". " not in text, f"{name}: more than one sentence"
        assert text[0].isalnum(), name
        assert text.split()[0] not in ("see", "and", "with"), name
        assert text.count("(") == text.count(")"), name
        assert not re.search(r"\b[A-Z]+_[A-Z]+\b", text), name
        assert not [other for other in said if f"{other}: " in text], name


def test_entry_ends_with_its_paragraph_and_may_be_of_several_fields() -> None:
    @dataclass(frozen=True)
    class Config(PolicyConfig):
        """Waiting.

        first, second: steps between looks. third: as `first: ` says.

        All are accepted.
        """

        first: int = 1
        second: int = 2
        third: int = 3

    between = "steps between looks."
    assert explain(Config) == {"first": between, "second": between, "third": "as `first: ` says."}


def test_unseen_dataclass_brings_its_own_form() -> None:
    tau, patience, eager = form_fields(NewConfig)
    assert (tau["kind"], tau["default"]) == ("number", "inf")
    assert (patience["kind"], patience["default"]) == ("number", "none")
    assert (eager["kind"], eager["default"]) == ("bool", False)
    assert patience["help"] == "steps to wait for it."


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5", 1.5), ("64", 64), ("inf", math.inf), ("None", None), ("TRUE", True), ("abc", "abc"), (" 2 ", 2)],
)
def test_entries_are_read_as_what_they_say(text: str, value: object) -> None:
    assert read(text) == value
    assert type(read(text)) is type(value)


@pytest.mark.parametrize("value", [1, 0.25, math.inf, None, True, "global"])
def test_entry_of_a_value_reads_back_as_that_value(value: object) -> None:
    assert read(entered(value)) == value


def test_long_entry_is_cut_not_kept() -> None:
    assert len(read("9" * 10_000)) < 100


def test_form_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed: settings by name"):
        read_all([1], "generation")


def test_description_has_symbols_and_what_was_changed() -> None:
    config = POLICIES["entropy"].Config(entropy_threshold=0.5, scope="global").to_dict()
    assert describe("entropy", config) == "entropy · τ 0.5 · k 64 · scope global"
    assert describe("not registered", {"a": 1}) == "not registered"
