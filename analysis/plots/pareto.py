"""Figure of what settings cost against what they lose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from analysis.plots.theme import LOOK, apply_theme, empty_figure
from analysis.wording import counted

if TYPE_CHECKING:  # loads torch, which a figure does without
    from analysis.tuning import Candidate, Tuning

TITLE = "Cost and loss of settings"


def pareto_figure(tuning: Tuning, num_prompts: int | None = None) -> go.Figure:
    """Every candidate; the front of those measured on all prompts as a line, the budget dashed.

    The choice stands at its cost of the race, and once more at what was confirmed, with the interval.
    num_prompts: how many there are in all, the most of any candidate unless given: measured on fewer, a
    loss is the least that it can come to.
    """
    if not tuning.candidates:
        return empty_figure(TITLE, "no setting measured yet")
    goal = tuning.goal
    most = num_prompts or max(candidate.prompts for candidate in tuning.candidates)
    figure = go.Figure()
    fewer = [candidate for candidate in tuning.candidates if candidate.prompts < most]
    all_of = [candidate for candidate in tuning.candidates if candidate.prompts == most]
    groups = (
        ("on fewer prompts, loss at least", fewer, LOOK.faint, 7),
        (f"on {counted(most, 'prompt')}", all_of, LOOK.partial, 9),
    )
    for name, candidates, colour, size in groups:
        _add(figure, candidates, name, {"color": colour, "size": size}, "markers", most)
    line = {"color": LOOK.full, "width": 1.5}
    _add(figure, tuning.front, "front", {"color": LOOK.full, "size": 9}, "lines+markers", most, line)
    if tuning.best is not None and tuning.confirmed is not None:
        found = tuning.confirmed
        figure.add_scatter(
            x=[found.cost],
            y=[max(tuning.best.loss, 0.0)],
            error_x={"array": [found.high - found.cost], "arrayminus": [found.cost - found.low]},
            mode="markers",
            marker={"color": LOOK.ink, "size": 10, "symbol": "diamond"},
            name="choice, measured again",
            text=[f"{tuning.best.setting.label}, {found.described}"],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.add_hline(
        y=goal.budget,
        line={"color": LOOK.warning, "dash": "dash"},
        annotation_text=f"budget {goal.budget:.0%}",
    )
    apply_theme(figure, TITLE, f"{goal.objective}, share of no cache", f"{goal.keep} lost")
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(tickformat=".0%")
    return figure


def _range(candidate: Candidate) -> str:
    if candidate.low is None or candidate.high is None:
        return ""
    return f"<br>cost on one prompt {candidate.low:.1%} to {candidate.high:.1%}"


def _add(
    figure: go.Figure,
    candidates: Sequence[Candidate],
    name: str,
    marker: dict[str, object],
    mode: str,
    num_prompts: int,
    line: dict[str, object] | None = None,
) -> None:
    if candidates:
        figure.add_scatter(
            x=[candidate.cost for candidate in candidates],
            y=[max(candidate.loss, 0.0) for candidate in candidates],
            text=[f"{one.setting.label}, n = {one.prompts}{_range(one)}" for one in candidates],
            customdata=[one.least(num_prompts) for one in candidates],
            mode=mode,
            marker=marker,
            line=line,
            name=name,
            hovertemplate="%{text}<br>cost %{x:.1%}, lost %{customdata}%{y:.1%}<extra></extra>",
        )
