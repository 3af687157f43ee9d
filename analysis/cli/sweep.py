"""sweep: a grid or random draws of settings over prompts, in a file that an interrupted sweep resumes."""

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import torch

from analysis.cli import parsing
from analysis.cli.compare import report
from analysis.cli.errors import cutting
from analysis.cli.journals import kept_lines, opened_journal
from analysis.cli.progress import Counter
from analysis.cli.symbols import refuse_symbols
from analysis.comparison import summarise
from analysis.environment import environment
from analysis.executors import Executor, InProcess, InProcesses, Task, available_cores, threads_each
from analysis.grid import Axis, grid_settings, random_settings
from analysis.measure import interleaved, reference_of, vanilla
from analysis.ray_executor import OnRay
from analysis.settings import Setting, longest
from analysis.wording import counted, workforce
from core import GenerationConfig, LanguageModel, load_model

MOST_WORKERS = 1024
MOST_DRAWS = 10_000


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("sweep", help="a grid or random draws of settings; resumes where it stopped")
    parsing.add_common_options(parser)
    parser.add_argument(
        "--grid",
        nargs="+",
        required=True,
        metavar="NAME=V,V,...",
        help="values of settings, every combination; with --random also NAME=LOW..HIGH",
    )
    parser.add_argument("--random", type=int, metavar="COUNT", help="draw COUNT settings instead")
    parser.add_argument("--draw-seed", type=int, default=0, help="seed of the draws (0)")
    parser.add_argument("--repeats", type=int, default=1, help="times each prompt is measured (1)")
    parser.add_argument("--vanilla", action="store_true", help="also measure one token a step")
    parser.add_argument(
        "--out", "--json", type=Path, required=True, metavar="FILE.jsonl", help="outcomes as they come"
    )
    add_worker_option(parser)
    parsing.add_markdown_option(parser)
    parser.set_defaults(command=command)


def add_worker_option(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("where to measure")
    where.add_argument("--executor", choices=("local", "ray"), default="local", help="this machine (local)")
    where.add_argument("--workers", type=int, help="processes, 0 for this one (0), or actors on Ray (2)")
    where.add_argument(
        "--worker-threads", type=int, metavar="N", help="threads of each worker (cores / workers; 1 on Ray)"
    )
    where.add_argument("--address", help="of a Ray cluster; without it one is started here")


def command(arguments: argparse.Namespace) -> int:
    """Measure what the file does not hold yet; an interruption leaves a file that goes on."""
    with parsing.checking():
        parsing.require_at_least("--repeats", arguments.repeats, 1, parsing.MOST_REPEATS)
        if arguments.out.suffix == ".parquet":
            raise parsing.UsageError(
                f"--out {arguments.out} must be JSON lines, so that a sweep can go on; `export` makes Parquet"
            )
        base = parsing.generation_config(arguments)
        wanted = settings_of(arguments, base)
        parsing.check_apart(arguments.prompts, arguments.out)
        parsing.check_writable(arguments.out)
        baselines = [*map(reference_of, wanted), *([vanilla(base)] if arguments.vanilla else [])]
        task, model = prepare(arguments, base, [*wanted, *baselines])
    settings = list({setting.label: setting for setting in (*baselines, *wanted)}.values())
    machine = environment(model, arguments.workers, task.threads)
    with opened_journal(arguments.out, model, task.prompts, base, machine) as journal:
        every = list(interleaved(settings, len(task.prompts), arguments.repeats))
        units = [unit for unit in every if unit.key not in journal.done]
        with cutting() as cut:
            bar = Counter("runs", total=len(every), done=len(every) - len(units))
            with closing(executor(arguments, task, model)) as execute, bar as counter:
                for outcome in execute(units):
                    journal.add(outcome)
                    counter.advance()
        chosen = {unit.key for unit in every}
        outcomes = [outcome for key, outcome in journal.done.items() if key in chosen]
    result = summarise(outcomes, settings, base, model.spec.eos_token_ids)
    who = threads_text(arguments, task)
    notes = kept_lines(arguments.out, len(every) - len(units), len(every))
    lines = report(model, base, result, task.prompts, notes, cut.short, who, arguments.markdown)
    print("\n".join(lines))
    return cut.code()


def threads_text(arguments: argparse.Namespace, task: Task) -> str:
    """Who measured, and where workers could be in each other's way, on how many cores."""
    text = workforce(arguments.workers, task.threads)
    local = arguments.workers and arguments.executor == "local"
    return f"{text} on {counted(available_cores(), 'core')}" if local else text


def settings_of(arguments: argparse.Namespace, base: GenerationConfig) -> list[Setting]:
    """The settings that --policy, --set and --grid ask for. Raises ValueError for bad ones."""
    axes = [Axis.parse(text) for text in arguments.grid]
    refuse_symbols(axis.name for axis in axes)
    given = parsing.policy_settings(arguments)
    for axis in axes:
        if axis.name in given:
            raise parsing.UsageError(f"{axis.name} is given both in --set and in --grid")
    if arguments.random is None:
        drawn = grid_settings(arguments.policy, axes)
    else:
        parsing.require_at_least("--random", arguments.random, 1, MOST_DRAWS)
        drawn = random_settings(arguments.policy, axes, arguments.random, arguments.draw_seed)
    settings = [Setting(one.policy, {**given, **one.config}, one.generation) for one in drawn]
    parsing.warn_unread(arguments, base, settings)
    return settings


def prepare(
    arguments: argparse.Namespace, base: GenerationConfig, wanted: Sequence[Setting]
) -> tuple[Task, LanguageModel]:
    """Prompts and model, checked to fit each other; the task holds what a worker process needs."""
    on_cluster = arguments.executor == "ray"
    if arguments.workers is None:
        arguments.workers = 2 if on_cluster else 0
    parsing.require_at_least("--workers", arguments.workers, 1 if on_cluster else 0, MOST_WORKERS)
    if arguments.worker_threads is not None:
        parsing.require_at_least("--worker-threads", arguments.worker_threads, 1, parsing.MOST_THREADS)
        if not arguments.workers:
            raise parsing.UsageError("--worker-threads is of workers; give --workers with it")
    if arguments.address is not None and not on_cluster:
        raise parsing.UsageError("--address is of a Ray cluster; give --executor ray with it")
    prompts = parsing.prompts_of(arguments)
    parsing.warn_alike(prompts)
    model = load_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
    parsing.check_fit(model, prompts, longest(wanted, base))
    # Workers must not choose a number type of their own.
    dtype = str(model.dtype).removeprefix("torch.")
    threads = arguments.worker_threads or _threads(arguments.workers, on_cluster)
    return Task(arguments.model, str(model.device), dtype, tuple(prompts), base, threads), model


def _threads(workers: int, on_cluster: bool) -> int:
    """Threads of each process that measures, where none were asked for; a cluster's cores aren't known."""
    if on_cluster:
        return 1
    return threads_each(workers) if workers else torch.get_num_threads()


def executor(arguments: argparse.Namespace, task: Task, model: LanguageModel) -> Executor:
    """In this process, in --workers processes, or on Ray. Raises UsageError where Ray is missing."""
    if arguments.executor == "ray":
        with parsing.checking():
            return OnRay(task, arguments.workers, arguments.address)
    return InProcesses(task, arguments.workers) if arguments.workers else InProcess(model, task)
