"""A race's choice measured again: what confirms it, what it is set beside, how it is told."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

import pytest

from analysis.cli.tune import choice
from analysis.confirmation import MAX_SHARE, Confirmation, confirmation, confirming_units
from analysis.measure import Outcome, Unit, vanilla
from analysis.settings import Setting
from analysis.tuning import Candidate, Goal, Search, Tuning
from core import GenerationConfig
from tests.analysis.made_races import EOS, GRID, Noisy, made_up, search
from tests.analysis.test_comparison import outcome


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


@pytest.mark.parametrize("grid", [GRID, [Setting.parse("entropy:gen_length=8,block_length=8")]])
def test_where_no_cache_is_one_token_a_step_it_is_not_told_twice(grid: list[Setting]) -> None:
    slowest = vanilla(GenerationConfig(gen_length=32, unmask="quota"))
    made = Search(grid, 4, Goal(objective="seconds"), EOS, slowest=slowest)
    spent = list(made.run(Noisy(0, 0.5)))
    assert len({one.key for one in spent}) == len(spent) == made.result().measured
    assert made.result().gains == ()
    assert "of one token a step" not in made.result().runs


def test_of_operations_one_token_a_step_is_not_measured() -> None:
    made = Search(GRID, 8, Goal(objective="flops"), EOS, slowest=vanilla(GenerationConfig(gen_length=32)))
    assert all("quota" not in one.setting for one in made.run(made_up))
    assert made.result().gains == ()


def chosen(cost: float, prompts: int) -> list[str]:
    best = Candidate(Setting.parse("entropy:recent=8,threshold=0.5"), cost, 0.01, prompts)
    found = Confirmation(cost, cost - 0.1, cost + 0.1, 6, 3)
    return choice(Tuning((best,), best, (best,), Goal(), prompts, prompts, found), prompts)


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
