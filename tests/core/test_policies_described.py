"""What policies say of themselves: complete, parted the same way, and about their real settings."""

import math
import re
from dataclasses import fields
from pathlib import Path

import pytest

from core import POLICIES, UNMASK_RULES, CachePolicy
from core.models.families import FAMILIES
from core.policies.description import Description, describe


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_says_all_parts_in_plain_text(name: str) -> None:
    words = describe(POLICIES[name])
    for field in fields(Description):
        text = getattr(words, field.name)
        assert text.endswith("."), field.name
        assert "\n" not in text
        assert len(text) > 1
    assert "arXiv" in words.source
    assert len(words.summary) < 110


@pytest.mark.parametrize("name", POLICIES)
def test_every_setting_is_explained_where_it_is_set(name: str) -> None:
    config = POLICIES[name].Config
    text = " ".join((config.__doc__ or "").split())
    for field in fields(config):
        assert f"{field.name}: " in text or f"{field.name}, " in text, field.name


@pytest.mark.parametrize("name", POLICIES)
def test_the_lossless_limit_is_within_what_its_config_allows(name: str) -> None:
    policy = POLICIES[name]
    assert policy.name == name
    assert policy.REASONS[0] == "first step"
    if policy.lossless is not None:
        assert isinstance(policy.lossless, policy.Config)
        assert not any(isinstance(v, float) and math.isnan(v) for v in policy.lossless.to_dict().values())


def test_a_docstring_without_a_part_is_refused() -> None:
    class Vague(CachePolicy):
        """Do something.

        Decides: somehow.
        Cost: 0.
        """

    with pytest.raises(ValueError, match=r"Vague has the parts .*recomputes"):
        describe(Vague)


def test_parts_may_run_over_several_lines() -> None:
    class Wordy(CachePolicy):
        """Do something
        on two lines.

        Decides: this,
        and that.
        Recomputes: L.
        Cost: 0.
        Source: none (arXiv).
        Differs: not: at all.
        """

    words = describe(Wordy)
    assert words.summary == "Do something on two lines."
    assert words.decides == "this, and that."
    assert words.differs == "not: at all."


def test_the_page_of_methods_lists_every_policy_rule_and_family() -> None:
    text = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    tables = [line for line in text.splitlines() if line.startswith("| `")]
    listed = [line.split("`")[1] for line in tables]
    assert [name for name in listed if name in POLICIES] == list(POLICIES)
    assert set(listed) == {*POLICIES, *UNMASK_RULES, *FAMILIES}
    for name, policy in POLICIES.items():
        row = next(line for line in tables if line.startswith(f"| `{name}` "))
        assert all(number in row for number in re.findall(r"\d{4}\.\d{5}", describe(policy).source))
