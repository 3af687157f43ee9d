"""Grids: what the text forms mean, and that a draw can be repeated."""

import pytest

from analysis.grid import Axis, grid_settings, random_settings


def test_a_grid_is_every_combination() -> None:
    axes = [Axis.parse("entropy_threshold=0.5,inf"), Axis.parse("recent=8,16,32")]
    settings = grid_settings("entropy", axes)
    assert [setting.config["recent"] for setting in settings] == [8, 16, 32] * 2
    assert len({setting.label for setting in settings}) == 6
    assert grid_settings("none", [])[0].label == "none"


def test_decoding_settings_can_be_axes_too() -> None:
    settings = grid_settings("dual", [Axis.parse("threshold=0.5,0.9")])
    assert [setting.generation for setting in settings] == [{"threshold": 0.5}, {"threshold": 0.9}]


def test_draws_are_different_repeatable_and_in_range() -> None:
    axes = [Axis.parse("entropy_threshold=0.1..2.5"), Axis.parse("recent=1..9")]
    drawn = random_settings("entropy", axes, 12, seed=3)
    assert drawn == random_settings("entropy", axes, 12, seed=3)
    assert drawn != random_settings("entropy", axes, 12, seed=4)
    assert len({setting.label for setting in drawn}) == 12
    assert all(0.1 <= setting.config["entropy_threshold"] <= 2.5 for setting in drawn)
    assert all(setting.config["recent"] in range(1, 10) for setting in drawn)
    assert len(random_settings("entropy", [Axis.parse("recent=1,2")], 5, seed=0)) == 2


@pytest.mark.parametrize(
    "text",
    [
        "recent",
        "recent=",
        "=1",
        "recent=1,,2",
        "recent=1,1",
        "entropy_threshold=1,1.0",
        "recent=9..1",
        "recent=a..b",
        "recent=0..inf",
    ],
)
def test_a_malformed_axis_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="grid"):
        Axis.parse(text)


def test_what_can_not_be_combined_is_refused() -> None:
    with pytest.raises(ValueError, match="range"):
        grid_settings("entropy", [Axis.parse("recent=1..9")])
    with pytest.raises(ValueError, match="twice"):
        grid_settings("entropy", [Axis.parse("recent=1"), Axis.parse("recent=2")])
    with pytest.raises(ValueError, match="tau"):
        grid_settings("entropy", [Axis.parse("tau=1")])
    with pytest.raises(ValueError, match="count"):
        random_settings("entropy", [Axis.parse("recent=1..9")], 0, seed=0)
