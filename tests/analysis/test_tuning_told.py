"""A tuning as it is told: one cost of the choice, rows that compare, losses coloured by their size."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.cli.tune import row
from analysis.confirmation import Confirmation
from analysis.plots import sweep_map_figure
from analysis.report import sections
from analysis.report_tables import tuning_table
from analysis.results import Results
from analysis.settings import Setting
from analysis.surface import surface
from analysis.tuned import Candidate, Goal, Tuning, pareto_front


def setting(tau: float, recent: int) -> Setting:
    return Setting("entropy", {"entropy_threshold": tau, "recent": recent})


CANDIDATES = (
    Candidate(setting(2.0, 8), 0.3, 0.0, 2, 0.2, 0.4),
    Candidate(setting(1.0, 8), 0.5, 0.0, 4, 0.4, 0.6),
    Candidate(setting(1.0, 16), 0.7, 0.01, 4, 0.6, 0.8),
    Candidate(setting(2.0, 16), 0.4, 0.3, 4, 0.3, 0.5),
)
AGAIN = Confirmation(0.62, 0.55, 0.71, 6, 4)
FOUND = Tuning(CANDIDATES, CANDIDATES[1], pareto_front(CANDIDATES[1:]), Goal(), 20, 20, AGAIN)


def test_table_map_and_command_tell_the_same_cost_of_the_choice() -> None:
    """The table had the race's, which is too low, the map what was measured again."""
    [first, *_] = tuning_table(FOUND).to_dict("records")
    assert first["seconds of no cache, on its prompts"] == "62.0%"
    assert first["smallest to largest over prompts"] == "55.0%..71.0%, 95 % interval"
    assert (first["chosen"], first["no other is better in both"]) == ("yes", "yes")
    told = FOUND.listed()[0]
    assert row(told, 4, FOUND)[1:3] == ["62.0%", "55.0%..71.0%, 95 %"]
    assert row(told, 4, FOUND)[-1] == "yes"
    found = Results(tunings=[FOUND], decodings={"tuning": ["made up"]})
    [section] = sections(found)
    texts = " ".join(str(text) for trace in section.figures[-1].data for line in trace.text for text in line)
    assert "<b>62%</b><br>55–71" in texts
    assert "50%" not in texts


def test_rows_of_fewer_prompts_come_last_and_are_given_no_interval() -> None:
    assert [(one.cost, one.prompts) for one in FOUND.listed()] == [(0.62, 4), (0.4, 4), (0.7, 4), (0.3, 2)]
    # Asked of more prompts than any was measured on, none is whole.
    assert [one.prompts for one in FOUND.listed(8)] == [4, 2, 4, 4]
    assert replace(FOUND, candidates=(), best=None, front=()).listed() == ()


@pytest.mark.parametrize("lost", [0.0, 0.004, 0.2])
@pytest.mark.parametrize("budget", [0.0, 0.05])
def test_no_loss_is_dark_whatever_the_others_lose(lost: float, budget: float) -> None:
    """From the smallest to the largest, equal losses were all as bright as the worst can be."""
    losses = (0.0, lost, lost, lost)
    made = [replace(one, loss=loss) for one, loss in zip(CANDIDATES, losses, strict=True)]
    _, losses_drawn = sweep_map_figure(surface(made), budget=budget).data
    assert losses_drawn.zmin == 0.0
    assert losses_drawn.zmax == max(lost, budget, 0.01)


def test_losses_above_none_are_not_the_darkest() -> None:
    made = [replace(one, loss=0.2) for one in CANDIDATES]
    cost, losses = sweep_map_figure(surface(made), budget=0.05).data
    assert (losses.zmin, losses.zmax) == (0.0, 0.2)
    assert (cost.zmin, cost.zmax) == (0.3, 0.7)
    assert np.nanmin(losses.z) == 0.2
