"""`policies`: every registered policy is listed and describes itself."""

import pytest

from analysis.__main__ import main
from core import POLICIES


def test_the_table_lists_every_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in POLICIES)
    assert "entropy_threshold=-1.0" in said


@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_names_its_source_and_settings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", name]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{name}: ")
    assert all(setting in said for setting in POLICIES[name].Config().to_dict())


def test_an_unknown_policy_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "guess"]) == 2
    assert "guess" in capsys.readouterr().err
