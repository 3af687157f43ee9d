"""The race on made-up outcomes: what it finds, what it spends, what it refuses."""

from collections.abc import Iterator, Sequence

import pytest

from analysis.cli.tune import row
from analysis.grid import Axis, grid_settings
from analysis.measure import Outcome, Unit
from analysis.settings import Setting
from analysis.tuning import Candidate, Goal, Search, Tuning, pareto_front
from tests.analysis.made_races import EOS, GRID, PROMPTS, MadeUp, made_up, search
from tests.analysis.test_comparison import outcome


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


@pytest.mark.parametrize("seed", range(4))
def test_a_setting_within_the_budget_is_found_whatever_prompts_come_first(seed: int) -> None:
    made = Search(GRID, PROMPTS, Goal("agreement", 0.05, "flops"), EOS, seed=seed)
    assert len(list(made.run(made_up))) == made.result().measured
    best = made.result().best
    assert best is not None
    assert best.setting.config == {"entropy_threshold": 1.5, "recent": 16}


def test_several_settings_race_at_a_time() -> None:
    sizes = []

    class Counting(MadeUp):
        def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
            sizes.append(len(units))
            return super().__call__(units)

    made = Search(GRID, PROMPTS, Goal(objective="flops"), EOS, width=3)
    list(made.run(Counting()))
    assert max(sizes[1:]) == 3
    assert made.result().best == search(Goal(objective="flops")).result().best


def raced(first: list[float], later: list[float], others: list[float], others_later: float) -> Tuning:
    """A race of two settings whose costs are given, on the first prompts and on those that come later."""
    settings = grid_settings("entropy", [Axis.parse("recent=8,16")])
    made = Search(settings, len(first) + len(later), Goal("agreement", 0.05, "flops"), EOS, len(first))
    ours = dict(zip(made.order, first + later, strict=True))
    theirs = dict(zip(made.order, others + [others_later] * len(later), strict=True))

    class Costs(MadeUp):
        def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
            for unit in units:
                cost = {8: ours, 16: theirs}.get(unit.setting.config.get("recent"))
                yield outcome(unit.setting, unit.prompt, 0, 1.0, flops=cost[unit.prompt] if cost else 1.0)

    list(made.run(Costs()))
    return made.result()


def test_a_setting_that_is_dearer_on_few_prompts_by_chance_races_on() -> None:
    found = raced([0.5] * 4, [0.5] * 6, [0.45, 0.45, 0.45, 0.75], 0.3)
    assert found.best is not None
    assert found.best.setting.config == {"recent": 16}


def test_a_setting_that_is_dearer_on_each_prompt_does_not_race_on_because_others_are_dear() -> None:
    found = raced([0.3] * 4, [1.2], [0.4] * 4, 1.6)
    assert found.best is not None
    assert found.best.setting.config == {"recent": 8}
    assert [candidate.prompts for candidate in found.candidates] == [4, 5]


def test_a_cache_may_solve_what_no_cache_does_not() -> None:
    class Lucky(MadeUp):
        def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
            for unit in units:
                cached = unit.setting.policy == "entropy"
                lucky, unlucky = unit.prompt >= 4, unit.prompt < 2
                solved = lucky if cached else unlucky
                yield outcome(unit.setting, unit.prompt, 0, 1.0, flops=0.5 if cached else 1.0, solved=solved)

    made = Search(GRID[:3], 6, Goal("accuracy", 0.0, "flops"), EOS, first_prompts=2)
    list(made.run(Lucky()))
    best = made.result().best
    assert best is not None
    assert best.loss == pytest.approx(0.0)


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
    assert len(list(made.run(made_up))) <= 3 * 6
    assert made.result().best is None
    assert all(candidate.loss > 0.05 for candidate in made.result().candidates)


def test_ungraded_prompts_can_not_be_tuned_for_accuracy() -> None:
    class Ungraded(MadeUp):
        def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
            for unit in units:
                yield outcome(unit.setting, unit.prompt, 0, 1.0)

    made = Search(GRID, PROMPTS, Goal("accuracy"), EOS)
    with pytest.raises(ValueError, match="no grader"):
        list(made.run(Ungraded()))


def test_the_front_holds_what_nothing_beats() -> None:
    setting = GRID[0]
    points = [(0.5, 0.1), (0.4, 0.2), (0.6, 0.1), (0.9, 0.0), (0.5, 0.3)]
    front = pareto_front([Candidate(setting, cost, loss, 1) for cost, loss in points])
    assert [(c.cost, c.loss) for c in front] == [(0.4, 0.2), (0.5, 0.1), (0.9, 0.0)]


@pytest.mark.parametrize(
    "bad", [("speed", 0.1, "flops"), ("agreement", 1.0, "flops"), ("agreement", 0.1, "joy")]
)
def test_a_goal_is_validated(bad: tuple[str, float, str]) -> None:
    with pytest.raises(ValueError, match="allowed"):
        Goal(*bad)


def test_references_are_measured_beside_their_candidates() -> None:
    made = Search(GRID, 8, Goal(objective="flops"), EOS)
    start = [next_one.prompt for next_one, _ in zip(made.run(made_up), range(4 * 25), strict=False)]
    assert start == [prompt for prompt in made.first for _ in range(25)]


def test_a_cost_comes_with_its_range_over_prompts() -> None:
    ours, none = Setting.parse("entropy:recent=8"), Setting("none")
    made = Search([ours], 2, Goal("agreement", 0.05, "seconds"), EOS)
    seconds = [(ours, 0, 50.0), (none, 0, 100.0), (ours, 1, 30.0), (none, 1, 50.0)]
    runs = [outcome(setting, prompt, 0, spent) for setting, prompt, spent in seconds]
    made.outcomes |= {run.key: run for run in runs}
    [found] = made.result().candidates
    assert (found.cost, found.low, found.high) == (80 / 150, 0.5, 0.6)
    assert "50.0%..60.0%" in row(found, 2, made.result())
    one = Candidate(Setting("dual"), 0.5, 0.0, 1, 0.5, 0.5)
    assert "one measurement" in row(one, 1, made.result())


def test_a_candidate_tells_the_worst_of_its_losses() -> None:
    ours, none = Setting.parse("entropy:recent=8"), Setting("none")
    made = Search([ours], 2, Goal("agreement", 0.9, "flops"), EOS)
    runs = [outcome(none, prompt, 0, 1.0) for prompt in (0, 1)]
    runs += [outcome(ours, 0, 0, 1.0), outcome(ours, 1, 0, 1.0, tokens=(9, 9, 1, 1))]
    made.outcomes |= {run.key: run for run in runs}
    [found] = made.result().candidates
    assert (found.worst, found.loss) == pytest.approx((2 / 3, 1 / 3))
