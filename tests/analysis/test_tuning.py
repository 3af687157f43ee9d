"""Successive halving on made-up outcomes: what it finds, what it spends, what it refuses."""

from collections.abc import Iterator, Sequence

import pytest

from analysis.grid import Axis, grid_settings
from analysis.measure import Outcome, Unit
from analysis.tuning import Candidate, Goal, Search, pareto_front
from tests.analysis.test_comparison import outcome

GRID = grid_settings(
    "entropy", [Axis.parse("entropy_threshold=0,0.5,1,1.5,2,3"), Axis.parse("recent=8,16,32,64")]
)
PROMPTS = 32
EOS = (1,)


def made_up(units: Sequence[Unit]) -> Iterator[Outcome]:
    """Larger tau is cheaper and above 1.5 changes tokens; small k is cheaper and below 16 changes some."""
    for unit in units:
        tau, recent = (unit.setting.config.get(name, 0) for name in ("entropy_threshold", "recent"))
        cached = unit.setting.policy == "entropy"
        cost = 1 - 0.2 * tau + 0.001 * recent if cached else 1.0
        wrong = cached and (tau > 1.5 or (recent < 16 and unit.prompt % 3 == 0))
        tokens = (9, 9, 1, 1) if wrong else (5, 6, 1, 1)
        yield outcome(
            unit.setting, unit.prompt, unit.repeat, 1.0, flops=cost, tokens=tokens, solved=not wrong
        )


def search(goal: Goal) -> Search:
    made = Search(GRID, PROMPTS, goal, EOS)
    for _ in made.run(made_up):
        pass
    return made


@pytest.mark.parametrize("keep", ["agreement", "accuracy"])
def test_it_finds_the_full_grids_best_for_under_a_third_of_its_cost(keep: str) -> None:
    made = search(Goal(keep, 0.05, "flops"))
    result = made.result()
    assert result.best is not None
    assert result.best.setting.config == {"entropy_threshold": 1.5, "recent": 16}
    assert result.best.prompts == PROMPTS
    assert result.measured < result.full_grid / 3
    assert len(result.to_frame()) == len(GRID)
    assert result.to_frame()["best"].sum() == 1


def test_the_plan_is_what_is_measured() -> None:
    made = Search(GRID, PROMPTS, Goal(objective="flops"), EOS)
    planned = made.planned
    assert sum(1 for _ in made.run(made_up)) == planned
    assert made.rounds() == [(24, 4), (8, 12), (3, 32)]


def test_an_interrupted_search_goes_on_without_measuring_again() -> None:
    made = Search(GRID, PROMPTS, Goal(objective="flops"), EOS)
    first = made.run(made_up)
    for _ in range(40):
        next(first)
    assert made.result().best is None
    again = Search(GRID, PROMPTS, Goal(objective="flops"), EOS)
    again.outcomes |= made.outcomes
    measured = [one.key for one in again.run(made_up)]
    assert not set(measured) & set(made.outcomes)
    assert again.result().best == search(Goal(objective="flops")).result().best


def test_a_budget_that_nothing_keeps_gives_no_best() -> None:
    cheap = grid_settings("entropy", [Axis.parse("entropy_threshold=2,3")])
    made = Search(cheap, 6, Goal(objective="flops"), EOS)
    assert len(list(made.run(made_up))) == 3 * 6
    assert made.result().best is None
    assert made.result().front


def test_ungraded_prompts_can_not_be_tuned_for_accuracy() -> None:
    def ungraded(units: Sequence[Unit]) -> Iterator[Outcome]:
        for unit in units:
            yield outcome(unit.setting, unit.prompt, 0, 1.0)

    made = Search(GRID, PROMPTS, Goal("accuracy"), EOS)
    with pytest.raises(ValueError, match="no grader"):
        list(made.run(ungraded))


def test_the_front_holds_what_nothing_beats() -> None:
    setting = GRID[0]
    points = [(0.5, 0.1), (0.4, 0.2), (0.6, 0.1), (0.9, 0.0), (0.5, 0.3)]
    front = pareto_front([Candidate(setting, cost, loss, 0.0, 1) for cost, loss in points])
    assert [(c.cost, c.loss) for c in front] == [(0.4, 0.2), (0.5, 0.1), (0.9, 0.0)]


@pytest.mark.parametrize(
    "bad", [("speed", 0.1, "flops"), ("agreement", 1.0, "flops"), ("agreement", 0.1, "joy")]
)
def test_a_goal_is_validated(bad: tuple[str, float, str]) -> None:
    with pytest.raises(ValueError, match="allowed"):
        Goal(*bad)
