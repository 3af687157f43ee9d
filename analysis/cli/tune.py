"""tune: find tau and k (or any settings) for your own prompts under a budget of lost answers."""

import argparse
import json
import shlex
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from analysis.cli import parsing, sweep
from analysis.cli.progress import Counter
from analysis.cli.text import percent, table
from analysis.environment import environment
from analysis.journal import Journal, purpose
from analysis.settings import setting_texts
from analysis.tuning import KEEPS, OBJECTIVES, Goal, Search, Tuning
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
    parser.add_argument("--json", type=Path, metavar="OUT", help="candidates and the choice")
    sweep.add_worker_option(parser)
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Search and print; returns 1 where it was interrupted."""
    if arguments.grid is None:
        if arguments.policy != "entropy":
            raise parsing.UsageError("--grid is needed for a policy other than entropy")
        arguments.grid = list(DEFAULT_GRID)
    arguments.random = None
    base = parsing.generation_config(arguments)
    settings = sweep.settings_of(arguments, base)
    task, model = sweep.prepare(arguments, base)
    graded = all(prompt.problem is not None for prompt in task.prompts)
    if arguments.keep == "accuracy" and not graded:
        raise parsing.UsageError("--keep accuracy, but a prompt has no answer to grade; allowed: agreement")
    keep = arguments.keep or ("accuracy" if graded else "agreement")
    goal = Goal(keep, arguments.budget, arguments.objective)
    for path in (arguments.journal, arguments.json):
        parsing.check_writable(path)
    width = max(arguments.workers, 1)
    search = Search(settings, len(task.prompts), goal, model.spec.eos_token_ids, width=width)
    interrupted = False
    with ExitStack() as stack:
        journal = None
        if arguments.journal is not None:
            journal = stack.enter_context(Journal(arguments.journal, purpose(model, task.prompts, base)))
            search.outcomes |= journal.done
        execute = stack.enter_context(closing(sweep.executor(arguments, task, model)))
        # How long the race goes on is not known before; the bar shows it against the full grid.
        full_grid = search.result().full_grid
        counter = stack.enter_context(Counter("runs, of the full grid's", full_grid, len(search.outcomes)))
        try:
            for outcome in search.run(execute):
                counter.advance()
                if journal is not None:
                    journal.add(outcome)
        except KeyboardInterrupt:
            interrupted = True
    result = search.result()
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(_to_json(model, base, result, interrupted)), encoding="utf-8")
    print("\n".join(_report(arguments, result, len(task.prompts), interrupted)))
    return 1 if interrupted else 0


def _report(arguments: argparse.Namespace, result: Tuning, prompts: int, interrupted: bool) -> list[str]:
    goal = result.goal
    rows = [
        [
            candidate.setting.label,
            percent(candidate.cost),
            ("" if candidate.prompts == prompts else "at least ") + percent(max(candidate.loss, 0.0)),
            str(candidate.prompts),
            "front" if candidate in result.front else "",
        ]
        for candidate in result.candidates
    ]
    header = ("setting", f"{goal.objective} of no cache", f"{goal.keep} lost", "prompts", "")
    lines = [
        table(header, rows),
        "",
        f"measured {result.measured} runs; the full grid on {prompts} prompts takes {result.full_grid}",
    ]
    if interrupted:
        lines.append("interrupted: settings measured on fewer prompts may still be better")
    if result.best is None:
        lines.append(f"no setting measured on every prompt loses at most {goal.budget:.1%} of {goal.keep}")
        return lines
    chosen = result.best
    settings = setting_texts({**chosen.setting.config, **chosen.setting.generation})
    saved = f"{percent(chosen.cost)} of the {goal.objective} without a cache, {percent(chosen.loss)} lost"
    lines += [
        f"best: {saved}, n = {chosen.prompts} prompts",
        shlex.join(["--policy", chosen.setting.policy, *(["--set", *settings] if settings else [])]),
    ]
    return lines


def _to_json(
    model: LanguageModel, base: GenerationConfig, result: Tuning, interrupted: bool
) -> dict[str, Any]:
    return {
        "schema": 1,
        "kind": "tuning",
        "complete": not interrupted,
        "environment": environment(model),
        "generation": base.to_dict(),
        "goal": vars(result.goal),
        "measured": result.measured,
        "full_grid": result.full_grid,
        "best": result.best.setting.label if result.best else None,
        "candidates": json.loads(result.to_frame().to_json(orient="records")),
    }
