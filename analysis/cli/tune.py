"""tune: find tau and k (or any settings) for your own prompts under a budget of lost answers."""

import argparse
import json
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.cli import parsing, sweep, tune_text
from analysis.cli.errors import cutting
from analysis.cli.journals import kept_lines, opened_journal
from analysis.cli.progress import Counter
from analysis.cli.text import counted, heading, legend, percent, table
from analysis.environment import environment
from analysis.executors import Task
from analysis.journal import Journal, purpose
from analysis.measure import reference_of, vanilla
from analysis.prompts import Prompt, prompts_text
from analysis.settings import Setting, setting_texts
from analysis.tuning import KEEPS, OBJECTIVES, Candidate, Goal, Search, Tuning
from analysis.verdict import Verdict, judge
from analysis.wording import few_prompts
from core import GenerationConfig, LanguageModel

DEFAULT_GRID = ("entropy_threshold=0.1,0.25,0.5,1,1.5,2,inf", "recent=8,16,32,64")


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("tune", help="find the cheapest setting that keeps the answers")
    parsing.add_common_options(parser)
    parser.add_argument(
        "--grid",
        nargs="+",
        metavar="NAME=V,V,...",
        help=f"settings to choose from (for entropy: {' '.join(DEFAULT_GRID)})",
    )
    parser.add_argument("--keep", choices=KEEPS, help="accuracy where every prompt is graded, else agreement")
    parser.add_argument("--budget", type=float, default=0.05, help="share of it that may be lost (0.05)")
    parser.add_argument("--objective", choices=OBJECTIVES, default="seconds", help="what to save (seconds)")
    parser.add_argument("--journal", type=Path, metavar="FILE.jsonl", help="keep outcomes, to go on later")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="SWEEP.jsonl",
        help="judge the choice by a finished sweep of the same grid and prompts",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="candidates and the choice")
    sweep.add_worker_option(parser)
    parsing.add_markdown_option(parser)
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Search and print; returns 1 where it was interrupted."""
    with parsing.checking():
        if arguments.grid is None:
            if arguments.policy != "entropy":
                raise parsing.UsageError("--grid is needed for a policy other than entropy")
            arguments.grid = list(DEFAULT_GRID)
        arguments.random = None
        base = parsing.generation_config(arguments)
        settings = sweep.settings_of(arguments, base)
        goal = Goal(arguments.keep or "agreement", arguments.budget, arguments.objective)
        parsing.check_apart(arguments.prompts, arguments.journal, arguments.against, arguments.json)
        for path in (arguments.journal, arguments.json):
            parsing.check_writable(path)
        task, model = sweep.prepare(arguments, base, settings)
        graded = all(prompt.problem is not None for prompt in task.prompts)
        if arguments.keep == "accuracy" and not graded:
            raise parsing.UsageError(
                "--keep accuracy, but a prompt has no answer to grade; allowed: agreement"
            )
        if arguments.keep is None and graded:
            goal = replace(goal, keep="accuracy")

    def new_search() -> Search:
        width, eos = max(arguments.workers, 1), model.spec.eos_token_ids
        return Search(settings, len(task.prompts), goal, eos, width=width, slowest=vanilla(base))

    grid = _full_grid(arguments.against, new_search(), model, task, base)
    search, new = new_search(), 0
    machine = environment(model, arguments.workers, task.threads)
    with ExitStack() as stack:
        opened = opened_journal(arguments.journal, model, task.prompts, base, machine)
        journal = stack.enter_context(opened)
        search.recall(journal.done.values())
        execute = stack.enter_context(closing(sweep.executor(arguments, task, model)))
        # How long the race goes on is not known before; most end long before the bar is full.
        known = len(search.outcomes) + len(search.repeats)
        counter = stack.enter_context(Counter("runs, of at most", search.most_runs, known))
        with cutting() as cut:
            for outcome in search.run(execute):
                counter.advance()
                new += 1
                journal.add(outcome)
    result = search.result()
    verdict = judge(search, grid) if grid is not None and not cut.short else None
    if arguments.json is not None:
        content = to_json(machine, base, result, cut.short, verdict)
        parsing.write_whole(arguments.json, json.dumps(content))
    lines = heading(model, base, sweep.threads_text(arguments, task))
    notes = kept_lines(arguments.journal, result.measured - new, result.measured)
    lines += _report(result, task.prompts, notes, arguments.markdown)
    if verdict is not None and grid is not None:
        lines += ["", *tune_text.verdict_lines(verdict, grid.result(), arguments.markdown)]
    if cut.short:
        lines.append("interrupted: settings measured on fewer prompts may still be better")
    print("\n".join([*lines, "", *choice(result, len(task.prompts))]))
    return cut.code()


def _full_grid(
    path: Path | None, search: Search, model: LanguageModel, task: Task, base: GenerationConfig
) -> Search | None:
    """A search that knows every run of a sweep's file. UsageError where the file lacks some."""
    if path is None:
        return None
    with parsing.checking():
        if not path.is_file():
            raise parsing.UsageError(f"--against {path} is no file")
        search.recall(Journal.read(path, purpose(model, task.prompts, base)).values())
        judge(search, search)
    return search


def _report(result: Tuning, wanted: Sequence[Prompt], notes: Sequence[str], markdown: bool) -> list[str]:
    goal, prompts = result.goal, len(wanted)
    cost = f"{goal.objective} of no cache"
    header = ("setting", cost, "over prompts", f"{goal.keep} lost", "measured", "on the front")
    rows = [row(candidate, prompts, result) for candidate in result.listed(prompts)]
    return [
        f"n = {prompts_text(wanted)}, each setting raced at most once on each",
        *notes,
        "",
        table(header, rows, markdown=markdown),
        "",
        *legend((candidate.setting.label for candidate in result.listed(prompts)), markdown),
        "",
        f"{cost}: sum over the prompts that a row was measured on over no cache's; over prompts: smallest",
        "and largest of one prompt; 95 %: of the choice, measured again, the geometric mean and its",
        "interval. at least: measured on some prompts, it can only come to more on the others. on the front:",
        f"measured on every prompt, and no other such setting is better in both cost and {goal.keep}. First",
        "comes the choice, then rows of every prompt by cost, then those of fewer: they lost too much, or",
        "another was cheaper. The race takes one run of each: its costs are noisy, the least too low.",
        result.runs,
    ]


def row(candidate: Candidate, prompts: int, result: Tuning) -> list[str]:
    again = result.is_best(candidate) and result.confirmed is not None
    several = again or (candidate.prompts > 1 and candidate.low is not None)
    spread = f"{percent(candidate.low)}..{percent(candidate.high)}" if several else "one measurement"
    return [
        candidate.setting.label,
        percent(candidate.cost),
        f"{spread}, 95 %" if again else spread,
        ("" if candidate.prompts == prompts else "at least ") + percent(max(candidate.loss, 0.0)),
        counted(candidate.prompts, "prompt"),
        "yes" if result.is_on_front(candidate) else "no",
    ]


def choice(result: Tuning, prompts: int) -> list[str]:
    """What to use, its last line to paste behind a command; a warning where that rests on too little."""
    goal, chosen = result.goal, result.best
    if chosen is None:
        lost = f"no setting measured on every prompt loses at most {goal.budget:.1%} of {goal.keep}"
        return [*few_prompts(prompts), lost]
    spent = f"{result.spent}; {percent(chosen.loss)} of {goal.keep} lost"
    if result.saves:
        lines = [f"best: {chosen.setting.described}"]
        lines.append(f"{spent}, n = {counted(chosen.prompts, 'prompt')}")
        advised = chosen.setting
    else:
        lines = [f"no measurable saving of {goal.objective} within the budget, so use none"]
        lines.append(f"the nearest: {chosen.setting.described}, {spent}")
        advised = reference_of(chosen.setting)
    return [*lines, *few_prompts(prompts), to_paste(advised)]


def to_paste(setting: Setting) -> str:
    """The options of a command that ask for this setting."""
    settings = setting_texts({**setting.config, **setting.generation})
    return shlex.join(["--policy", setting.policy, *(["--set", *settings] if settings else [])])


def to_json(
    machine: dict[str, Any],
    base: GenerationConfig,
    result: Tuning,
    interrupted: bool,
    verdict: Verdict | None,
) -> dict[str, Any]:
    """The file that `report` reads."""
    return {
        "schema": 1,
        "kind": "tuning",
        "complete": not interrupted,
        "environment": machine,
        "generation": base.to_dict(),
        "goal": vars(result.goal),
        "measured": result.measured,
        "full_grid": result.full_grid,
        "best": result.best.setting.label if result.best else None,
        "confirmed": vars(result.confirmed) if result.confirmed else None,
        "gains": list(result.gains),
        "settings": {c.setting.label: c.setting.described for c in result.candidates},
        "candidates": json.loads(result.to_frame().to_json(orient="records")),
        "verdict": json.loads(verdict.to_frame().to_json(orient="records")) if verdict else None,
    }
