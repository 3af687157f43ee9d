"""tune_in_turn: search tau and k for a visitor's prompts, one run at a time between those of others."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from analysis.grid import Axis, grid_settings
from analysis.measure import Outcome, Unit, measure, vanilla, warm_up
from analysis.prompts import Prompt, read_prompts
from analysis.settings import Setting
from analysis.tuning import Goal, Search, Tuning
from analysis.wording import counted, few_prompts
from app.forms import describe, entered
from app.perform import one_prompt
from app.problems import Problems
from app.workshop import Workshop
from core import GenerationConfig, LanguageModel

MAX_PROMPTS, MAX_SETTINGS = 64, 48
WAIT_SECONDS = 0.5
ERRAND = "tune"
TAU, K = "entropy_threshold", "recent"
Result = TypeVar("Result")


@dataclass(frozen=True)
class TuneJob:
    """prompts and settings to search, what to keep and to save, and how to decode with which model."""

    prompts: tuple[Prompt, ...]
    settings: tuple[Setting, ...]
    goal: Goal
    base: GenerationConfig
    model: str

    @classmethod
    def read(
        cls,
        prompts: Sequence[Prompt],
        taus: str,
        ks: str,
        goal: Goal,
        base: GenerationConfig,
        model: str,
    ) -> "TuneJob":
        """Check the entries. Raises ValueError in one sentence for the first that is wrong."""
        if not 1 <= len(prompts) <= MAX_PROMPTS:
            raise ValueError(f"prompts are {len(prompts)}; allowed: 1 to {MAX_PROMPTS}")
        if goal.keep == "accuracy" and any(prompt.problem is None for prompt in prompts):
            raise ValueError("keep is 'accuracy', but a prompt has no answer to grade; allowed: agreement")
        axes = [Axis.parse(f"{TAU}={taus}"), Axis.parse(f"{K}={ks}")]
        settings = grid_settings("entropy", axes)
        if len(settings) > MAX_SETTINGS:
            raise ValueError(f"τ and k make {len(settings)} settings; allowed: up to {MAX_SETTINGS}")
        return cls(tuple(prompts), tuple(settings), goal, base, model)


def prompts_of(text: str, problems: Problems) -> list[Prompt]:
    """One prompt a line; those among the held-out problems can be graded."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [Prompt(line, problems.find(line)) for line in lines]


def prompts_file(path: str) -> list[Prompt]:
    """Prompts of an uploaded JSONL file. Raises ValueError naming the line that is wrong."""
    return read_prompts(Path(path))


def file_told(path: str | None) -> str:
    """Which prompts count: what to say beside the box of prompts while a file stands in its place."""
    if not path:
        return ""
    name = Path(path).name
    try:
        return f"Not read: {counted(len(prompts_file(path)), 'prompt')} of {name} will be used instead."
    except (ValueError, OSError) as error:
        return f"Not read: {name} stands in its place, but can't be used: {one_prompt(error)}"


class StoppedError(Exception):
    """The visitor wants no more of it."""


def tune_in_turn(workshop: Workshop, job: TuneJob, visitor: str) -> Iterator[tuple[str, Tuning]]:
    """Search; yields a status line and what is known after every run, the last with `done` or `stopped`.

    The place in the line is given up after every run, so that a search never keeps others waiting for
    longer than one. Raises ValueError for prompts that the model can't take.
    """
    in_turn = InTurn(workshop, job, visitor)
    search = Search(job.settings, len(job.prompts), job.goal, ())
    slowest = vanilla(job.base)
    names = {setting.label: name_of(setting) for setting in job.settings}
    names[slowest.label] = "one token a step"
    try:
        ends = in_turn.take(lambda: workshop.model(job.model).spec.eos_token_ids)
        search = Search(job.settings, len(job.prompts), job.goal, ends, slowest=slowest)
        for outcome in search.run(in_turn):
            found = search.result()
            done, now = f"{counted(found.measured, 'run')} measured", names.get(outcome.setting, "no cache")
            # What confirms the choice is no part of a full grid, and may come to more than that.
            race = f", the full grid takes {found.full_grid}; now {now}"
            rest = f"; confirming {now}" if outcome.repeat else race
            yield f"running: {done}{rest}", found
    except StoppedError:
        found = search.result()
        yield f"stopped: {counted(found.measured, 'run')} measured, all kept", found
        return
    finally:
        in_turn.close()
    result = search.result()
    yield f"done: {'; '.join(told_of(job, result))}", result


class InTurn:
    """Measures one unit after the other (an Executor), each with a place at the end of the line.

    A stop between two units counts as well: the page draws for longer there than a unit may take.
    """

    def __init__(self, workshop: Workshop, job: TuneJob, visitor: str) -> None:
        self._workshop, self._job = workshop, job
        self._ticket = workshop.turns.join(visitor, ERRAND)
        self._warm: set[str] = set()

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        for unit in units:
            yield self._measured(unit)

    def close(self) -> None:
        """Leave the line for good."""
        self._ticket.leave()

    def _measured(self, unit: Unit) -> Outcome:
        job = self._job
        arguments = (job.prompts, job.base, unit, unit.setting.policy in self._warm)
        [outcome] = self.take(lambda: list(self._workshop.lender.run(measured, job.model, *arguments)))
        self._warm.add(unit.setting.policy)
        return outcome

    def take(self, work: Callable[[], Result]) -> Result:
        """Do it when the turn comes: loading a model, too, would slow what another is timing.

        Raises StoppedError where the visitor stopped before or meanwhile.
        """
        ticket = self._ticket
        ticket.return_to_line()
        try:
            while not ticket.wait(WAIT_SECONDS) and not ticket.is_stopped():
                pass
            if ticket.is_stopped():
                raise StoppedError
            result = work()
            if ticket.is_stopped():
                raise StoppedError
            return result
        finally:
            ticket.rest()


def measured(
    model: LanguageModel, prompts: Sequence[Prompt], base: GenerationConfig, unit: Unit, warm: bool
) -> Iterator[Outcome]:
    """One unit's outcome, after a run that is not measured where the model isn't warm."""
    if not warm:
        warm_up(model, prompts, base, [unit.setting])
    yield measure(model, prompts, base, unit)


def verdict(result: Tuning) -> str:
    """What a search has come to, in one line."""
    if result.best is None:
        return f"no setting loses at most {result.goal.budget:.0%} of {result.goal.keep} on every prompt"
    best = result.best
    text = (
        f"{name_of(best.setting)} takes {result.spent} "
        f"and loses {best.loss:.1%} of {result.goal.keep}, n = {counted(best.prompts, 'prompt')}"
    )
    return text if result.saves else f"no measurable saving; {text}"


def told_of(job: TuneJob, result: Tuning) -> list[str]:
    """The verdict, and a warning where it rests on too few prompts."""
    return [verdict(result), *few_prompts(len(job.prompts))]


def name_of(setting: Setting) -> str:
    """A setting by its symbols, as the page names every run."""
    return describe(setting.policy, setting.config)


def best_json(result: Tuning) -> str:
    """The best setting's config as a form would hold it, JSON text; empty where none keeps the budget."""
    if result.best is None:
        return ""
    return json.dumps({name: entered(value) for name, value in result.best.setting.config.items()})
