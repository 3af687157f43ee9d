"""A tuned choice beside the full grid, in words and tables."""

from analysis.cli.text import counted, figure, percent, table
from analysis.surface import Surface, surface
from analysis.tuning import Candidate, Tuning
from analysis.verdict import Verdict
from analysis.wording import NOT_MEASURED, signed


def verdict_lines(verdict: Verdict, grid: Tuning, markdown: bool = False) -> list[str]:
    """What each search spent and chose, both choices as the grid measured them; then the grid's map."""
    goal = grid.goal
    header = ("search", "runs", "seconds", "choice", f"{goal.objective} of no cache", f"{goal.keep} lost")
    rows = [
        [name, str(runs), figure(seconds), *_choice(choice)]
        for name, runs, seconds, choice in zip(
            ("race", "full grid"),
            verdict.runs,
            verdict.seconds,
            (verdict.chosen, verdict.best),
            strict=True,
        )
    ]
    lines = [table(header, rows, markdown=markdown), "", _sentence(verdict, goal.objective)]
    try:
        plane = surface(grid.candidates)
    except ValueError:
        return lines
    return [*lines, "", *map_lines(plane, grid, markdown)]


def _choice(choice: Candidate | None) -> list[str]:
    if choice is None:
        return ["none keeps the budget", NOT_MEASURED, NOT_MEASURED]
    return [choice.setting.label, percent(choice.cost), percent(choice.loss)]


def _sentence(verdict: Verdict, objective: str) -> str:
    spent = (
        f"{percent(verdict.runs_share)} of the grid's runs, {percent(verdict.seconds_share)} of its seconds"
    )
    race = "the race" if objective == "flops" else "the race, what confirms its choice included,"
    if verdict.excess is None:
        return f"{race} took {spent}; there are no two choices to compare"
    return f"{race} took {spent}; its choice costs {signed(verdict.excess, '.1%')} against the grid's"


def map_lines(plane: Surface, grid: Tuning, markdown: bool = False) -> list[str]:
    """Cost and loss of every cell; * marks the front, [ ] what exceeds the budget."""
    front = {candidate.setting.label for candidate in grid.front}
    by_value = {_values(plane, candidate): candidate for candidate in grid.candidates}
    rows = []
    for x in plane.x:
        cells = [by_value.get((x, y)) for y in plane.y]
        rows.append([str(x), *(_cell(cell, front, grid.goal.budget) for cell in cells)])
    header = (f"{plane.x_name} \\ {plane.y_name}", *map(str, plane.y))
    most = max(candidate.prompts for candidate in grid.candidates)
    return [
        f"sum of {grid.goal.objective} as a share of no cache's / {grid.goal.keep} lost, "
        f"{counted(most, 'prompt')};",
        f"* on the front, [ ] loses more than {grid.goal.budget:.2%}:",
        "",
        table(header, rows, markdown=markdown),
    ]


def _values(plane: Surface, candidate: Candidate) -> tuple[object, object]:
    settings = {**candidate.setting.config, **candidate.setting.generation}
    return settings.get(plane.x_name), settings.get(plane.y_name)


def _cell(candidate: Candidate | None, front: set[str], budget: float) -> str:
    if candidate is None:
        return NOT_MEASURED
    # Losses of agreement are small, and the budget may lie between two of them.
    text = f"{percent(candidate.cost)} / {candidate.loss:.2%}"
    if candidate.loss > budget + 1e-9:
        return f"[{text}]"
    return f"{text} *" if candidate.setting.label in front else text
