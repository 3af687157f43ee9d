"""The race on made-up outcomes: what it finds, what it spends, what it refuses."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

import pytest

from analysis.cli.tune import choice, row
from analysis.confirmation import MAX_SHARE, Confirmation, confirmation, confirming_units
from analysis.grid import Axis, grid_settings
from analysis.measure import Outcome, Unit, vanilla
from analysis.settings import Setting
from analysis.tuning import Candidate, Goal, Search, Tuning, pareto_front
from core import GenerationConfig
from tests.analysis.test_comparison import outcome

GRID = grid_settings(
    "entropy", [Axis.parse("entropy_threshold=0,0.5,1,1.5,2,3"), Axis.parse("recent=8,16,32,64")]
)
PROMPTS = 32
EOS = (1,)


class MadeUp:
    """Larger tau is cheaper; above 1.5 a few prompts break, which no single one of them tells. Small k is
    cheaper, and below 16 every third prompt breaks."""

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        for unit in units:
            tau, recent = (unit.setting.config.get(name, 0) for name in ("entropy_threshold", "recent"))
            cached = unit.setting.policy == "entropy"
            cost = 1 - 0.2 * tau + 0.001 * recent if cached else 1.0
            broken = (tau > 1.5 and unit.prompt % 9 == 0) or (recent < 16 and unit.prompt % 3 == 0)
            wrong = cached and broken
            tokens = (9, 9, 1, 1) if wrong else (5, 6, 1, 1)
            yield outcome(unit.setting, unit.prompt, 0, 1.0, flops=cost, tokens=tokens, solved=not wrong)

    def close(self) -> None:
        """Nothing to end."""


made_up = MadeUp()


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


def chosen(cost: float, prompts: int) -> list[str]:
    best = Candidate(Setting.parse("entropy:recent=8,threshold=0.5"), cost, 0.01, prompts)
    found = Confirmation(cost, cost - 0.1, cost + 0.1, 6, 3)
    return choice(Tuning((best,), best, (best,), Goal(), prompts, prompts, found), prompts)


class Noisy(MadeUp):
    """Every setting takes the same time, measured with noise of a tenth, times `share` for a cache."""

    def __init__(self, seed: int, share: float) -> None:
        self.rng, self.share = random.Random(seed), share

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        for unit in units:
            share = self.share if unit.setting.policy == "entropy" else 1.0
            seconds = share * self.rng.lognormvariate(0, 0.1)
            yield outcome(unit.setting, unit.prompt, unit.repeat, seconds, solved=True)


@pytest.mark.parametrize(("share", "least", "most"), [(1.0, 0, 4), (0.7, 38, 40)])
def test_a_saving_of_seconds_is_told_only_where_there_is_one(share: float, least: int, most: int) -> None:
    """The cheapest of many settings looks cheap though all cost the same."""
    results = []
    for seed in range(40):
        made = Search(GRID, 8, Goal(objective="seconds"), EOS, seed=seed)
        units = list(made.run(Noisy(seed, share)))
        results.append(made.result())
        assert results[-1].measured == len(units)
        assert sum(one.repeat > 0 for one in units) <= made.full_grid / 5
    assert least <= sum(result.saves for result in results) <= most
    found = [result.confirmed.cost for result in results if result.confirmed]
    assert len(found) == 40
    assert mean(found) == pytest.approx(share, rel=0.02)


def confirmed(logarithms: Sequence[Sequence[float]]) -> Confirmation:
    """What pairs of these log ratios tell; logarithms: a prompt's repeats in each."""
    prompts, repeats = len(logarithms), len(logarithms[0])
    units = confirming_units(GRID[0], range(prompts), 10 * prompts * repeats)
    assert len(units) == 2 * prompts * repeats
    ours = {unit.key: math.exp(logarithms[unit.prompt][unit.repeat - 1]) for unit in units}
    known = {
        unit.key: outcome(
            unit.setting, unit.prompt, unit.repeat, ours[unit.key] if unit.setting == GRID[0] else 1
        )
        for unit in units
    }
    found = confirmation(units, known)
    assert found is not None
    assert (found.pairs, found.prompts) == (prompts * repeats, prompts)
    return found


def test_repeats_of_a_prompt_are_not_taken_for_prompts() -> None:
    once = confirmed([[-0.4], [-0.1], [-0.3], [0.1]])
    again = confirmed([[-0.4] * 3, [-0.1] * 3, [-0.3] * 3, [0.1] * 3])
    assert (again.cost, again.low, again.high) == pytest.approx((once.cost, once.low, once.high))
    assert again.cost == pytest.approx(math.exp(-0.7 / 4))


def test_an_interval_holds_what_differs_from_prompt_to_prompt() -> None:
    """Where caching gains nothing on average, it is told to save as often as 95 % says."""
    rng, told = random.Random(0), 0
    for _ in range(400):
        effects = [rng.gauss(0, 0.2) for _ in range(6)]
        told += confirmed([[effect + rng.gauss(0, 0.02) for _ in range(3)] for effect in effects]).saves
    assert 1 <= told <= 20


def test_few_prompts_tell_the_noise_of_timing_alone() -> None:
    few, more = confirmed([[-0.4, -0.5], [-0.1, -0.2]]), confirmed([[-0.4], [-0.1], [-0.2]])
    assert "of timing noise only, from 4 pairs of runs on 2 of the prompts" in few.described
    assert "timing noise" not in more.described
    assert more.described.endswith(
        "from 3 pairs of runs on 3 of the prompts that the choice was made on; other prompts may differ)"
    )


@pytest.mark.parametrize("full_grid", [2, 10, 40, 200, 2000])
@pytest.mark.parametrize("prompts", [1, 2, 3, 5, 40])
def test_many_prompts_confirm_before_many_repeats_those_that_decided_least_first(
    full_grid: int, prompts: int
) -> None:
    order = random.Random(1).sample(range(prompts), prompts)
    units = confirming_units(GRID[0], order, full_grid)
    assert len({unit.key for unit in units}) == len(units) >= 6
    assert len(units) <= max(MAX_SHARE * full_grid, 8)
    tried = list(dict.fromkeys(unit.prompt for unit in units))
    assert tried == order[::-1][: len(tried)]
    assert len(tried) == prompts or max(unit.repeat for unit in units) == 1
    first = [unit.setting for unit in units[::2]]
    assert abs(2 * first.count(GRID[0]) - len(first)) <= 1


def test_a_choice_of_seconds_is_no_saving_before_it_is_confirmed() -> None:
    whole = Search(GRID, 8, Goal(objective="seconds"), EOS)
    outcomes = list(whole.run(Noisy(0, 0.5)))
    cut = Search(GRID, 8, Goal(objective="seconds"), EOS)
    cut.recall(outcomes[:-1])
    assert cut.result().best is not None
    assert not cut.result().saves
    assert [one.key for one in cut.run(Noisy(0, 0.5))] == [outcomes[-1].key]
    assert cut.result().saves


@pytest.mark.parametrize("prompts", [1, 2, 8])
def test_the_choice_is_set_beside_one_token_a_step_on_a_few_prompts(prompts: int) -> None:
    slowest = vanilla(GenerationConfig(gen_length=32))

    class Slow(Noisy):
        def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
            for unit, found in zip(units, super().__call__(units), strict=True):
                yield replace(found, seconds=20 * found.seconds) if unit.setting == slowest else found

    def race() -> Search:
        return Search(GRID, prompts, Goal(objective="seconds"), EOS, slowest=slowest)

    made = race()
    outcomes = list(made.run(Slow(0, 0.5)))
    result = made.result()
    assert result.measured == len(outcomes)
    assert [one.setting for one in outcomes].count(slowest.label) == len(result.gains) == min(3, prompts)
    assert all(30 < gain < 55 for gain in result.gains)
    assert f"times as fast as one token a step ({min(result.gains):.1f} to " in result.spent
    cut = race()
    cut.recall(outcomes[:-1])
    assert len(cut.result().gains) == len(result.gains) - 1
    assert [one.key for one in cut.run(Slow(1, 0.5))] == [outcomes[-1].key]
    assert "one token a step" not in replace(result, gains=()).spent


@pytest.mark.parametrize("prompts", [1, 2, 8])
def test_runs_of_the_race_are_told_apart_from_those_that_confirm_its_choice(prompts: int) -> None:
    """Counted together, they were told to be more of the full grid's runs than it has."""
    slowest = vanilla(GenerationConfig(gen_length=32))
    made = Search(GRID, prompts, Goal(objective="seconds"), EOS, slowest=slowest)
    spent = list(made.run(Noisy(0, 0.5)))
    race = sum(one.repeat == 0 for one in spent)
    slow = sum(one.setting == slowest.label for one in spent)
    assert race <= made.full_grid
    assert len(spent) <= made.most_runs
    assert made.result().runs == (
        f"the race measured {race} runs, the full grid takes {made.full_grid}; "
        f"{len(spent) - race - slow} more runs to confirm the choice and {slow} of one token a step"
    )
    cut = Search(GRID, prompts, Goal(objective="seconds"), EOS, slowest=slowest)
    cut.recall(spent[: race + 1])
    assert "cut short are counted in" in cut.result().runs
    exact = search(Goal(objective="flops"))
    assert exact.most_runs == exact.full_grid
    assert exact.result().runs == (
        f"the race measured {len(exact.outcomes)} runs, the full grid takes {exact.full_grid}"
    )


def test_one_token_a_step_is_of_the_choices_own_length() -> None:
    """Else a setting that generates a quarter would be told to be four times as fast."""
    slowest = vanilla(GenerationConfig(gen_length=32))
    grid = [Setting.parse(f"entropy:gen_length={length},block_length={length}") for length in (8, 16)]
    made = Search(grid, 4, Goal(objective="seconds"), EOS, slowest=slowest)
    spent = list(made.run(Noisy(0, 0.5)))
    best = made.result().best
    assert best is not None
    length = best.setting.generation["gen_length"]
    wanted = f"none:unmask=quota,steps={length},gen_length={length},block_length={length}"
    assert [one.setting for one in spent if "quota" in one.setting] == [wanted] * 3
    cut = Search(grid, 4, Goal(objective="seconds"), EOS, slowest=slowest)
    cut.recall(spent)
    assert list(cut.run(Noisy(1, 0.5))) == []
    # Choosing took none of them.
    assert [one.key for one in made.choosing] == [one.key for one in spent if "quota" not in one.setting]


def test_of_operations_one_token_a_step_is_not_measured() -> None:
    made = Search(GRID, 8, Goal(objective="flops"), EOS, slowest=vanilla(GenerationConfig(gen_length=32)))
    assert all("quota" not in one.setting for one in made.run(made_up))
    assert made.result().gains == ()


def test_references_are_measured_beside_their_candidates() -> None:
    made = Search(GRID, 8, Goal(objective="flops"), EOS)
    start = [next_one.prompt for next_one, _ in zip(made.run(made_up), range(4 * 25), strict=False)]
    assert start == [prompt for prompt in made.first for _ in range(25)]


def test_a_setting_that_saves_nothing_is_not_recommended() -> None:
    slow = chosen(1.2, 32)
    assert slow[0] == "no measurable saving of seconds within the budget, so use none"
    assert slow[-1] == "--policy none --set threshold=0.5"
    fast = chosen(0.5, 32)
    assert fast[0].startswith("best: entropy entropy_threshold=1.0 recent=8 scope=since_full")
    assert fast[-1] == "--policy entropy --set recent=8 threshold=0.5"


def test_a_choice_from_few_prompts_comes_with_a_warning() -> None:
    assert any("can't be relied on" in line for line in chosen(0.5, 7))
    assert not any("can't be relied on" in line for line in chosen(0.5, 8))


def test_a_cost_comes_with_its_range_over_prompts() -> None:
    ours, none = Setting.parse("entropy:recent=8"), Setting("none")
    made = Search([ours], 2, Goal("agreement", 0.05, "seconds"), EOS)
    seconds = [(ours, 0, 50.0), (none, 0, 100.0), (ours, 1, 30.0), (none, 1, 50.0)]
    runs = [outcome(setting, prompt, 0, spent) for setting, prompt, spent in seconds]
    made.outcomes |= {run.key: run for run in runs}
    [found] = made.result().candidates
    assert (found.cost, found.low, found.high) == (80 / 150, 0.5, 0.6)
    assert "50.0%..60.0%" in row(found, 2, True)
    one = Candidate(Setting("dual"), 0.5, 0.0, 1, 0.5, 0.5)
    assert "one measurement" in row(one, 1, True)
