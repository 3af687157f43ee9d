"""evaluate: benchmarks of lm-eval under a cache policy: accuracy, and the speed it was reached at."""

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from analysis.benchmarks import PRESETS, preset_named
from analysis.cli import parsing
from analysis.cli.progress import progress
from analysis.cli.text import counted, figure, percent, settings_text, table
from analysis.environment import environment
from analysis.settings import Setting
from core import GenerationConfig, LanguageModel, load_model


@dataclass(frozen=True)
class Plan:
    """One task to evaluate; shots None leaves the task its own number."""

    task: str
    shots: int | None
    decoding: GenerationConfig


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    listed = ", ".join(f"{name} {p.shots}-shot {p.gen_length} tokens" for name, p in PRESETS.items())
    parser = commands.add_parser("evaluate", help="lm-eval benchmarks under a policy (needs lm-eval)")
    parsing.add_common_options(parser, prompts=False)
    parser.add_argument("--tasks", required=True, metavar="NAME,...", help="lm-eval task names, or presets'")
    parser.add_argument("--task-path", type=Path, metavar="FOLDER", help="folder with own task files")
    parser.add_argument(
        "--preset", action="store_true", help=f"shots and lengths as papers on caching ran them: {listed}"
    )
    parser.add_argument("--shots", type=int, help="few-shot examples (the task's own number)")
    parser.add_argument("--limit", type=int, help="use only the first LIMIT documents of a task")
    parser.add_argument("--batch", type=int, default=1, help="prompts at a time (1)")
    parser.add_argument("--raw", action="store_true", help="continue the text, without the chat template")
    parser.add_argument("--allow-code", action="store_true", help="let tasks run the code a model wrote")
    parser.add_argument("--json", type=Path, metavar="OUT", help="scores, speed, settings, machine")
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Evaluate task by task; what is finished stays in the file whatever happens to the next one."""
    try:
        import lm_eval  # type: ignore[import-not-found,unused-ignore]
        from lm_eval.tasks import TaskManager  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise parsing.UsageError("evaluate needs the package lm-eval; pip install lm-eval") from None
    with parsing.checking():
        for option in ("shots", "limit", "batch"):
            least = 0 if option == "shots" else 1
            if getattr(arguments, option) is not None:
                parsing.require_at_least(f"--{option}", getattr(arguments, option), least)
        base = parsing.generation_config(arguments)
        parsing.warn_unread(arguments, base)
        setting = Setting(arguments.policy, parsing.policy_settings(arguments))
        names = [name.strip() for name in arguments.tasks.split(",") if name.strip()]
        parsing.require_different("--tasks", names)
        plans = [_plan(arguments, name, base) for name in names]
        folder = arguments.task_path
        if folder is not None and not folder.is_dir():
            raise parsing.UsageError(f"--task-path {folder} is no folder")
        manager = TaskManager(include_path=None if folder is None else str(folder))
        unknown = [plan.task for plan in plans if not manager.match_tasks([plan.task])]
        if unknown or not names:
            raise parsing.UsageError(f"task {', '.join(unknown) or '(none)'} is not one that lm-eval knows")
        parsing.check_writable(arguments.json)
        model = load_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
        if model.tokenizer is None:
            raise parsing.UsageError(f"model {model.ref} has no tokenizer; tasks are text")
    results: list[dict[str, Any]] = []
    interrupted = False
    machine = environment(model)
    try:
        for plan in plans:
            results.append(_evaluate(lm_eval, manager, arguments, model, setting, plan))
            _write(arguments.json, machine, results, complete=len(results) == len(plans))
    except KeyboardInterrupt:
        interrupted = True
        _write(arguments.json, machine, results, complete=False)
    print("\n".join(_report(model, setting, results, len(plans))))
    return 1 if interrupted else 0


def _write(path: Path | None, machine: dict[str, Any], results: list[dict[str, Any]], complete: bool) -> None:
    if path is not None:
        content = {"schema": 1, "kind": "evaluation", "complete": complete, "environment": machine}
        parsing.write_whole(path, json.dumps({**content, "tasks": results}))


def _plan(arguments: argparse.Namespace, name: str, base: GenerationConfig) -> Plan:
    """Shots and decoding of a task: options win over the preset, the preset over the task's own."""
    if not arguments.preset:
        return Plan(name, arguments.shots, base)
    preset = preset_named(name)
    length = preset.gen_length if arguments.gen_length is None else arguments.gen_length
    shots = preset.shots if arguments.shots is None else arguments.shots
    return Plan(preset.task, shots, replace(base, gen_length=length))


def _evaluate(
    lm_eval: Any,
    manager: Any,
    arguments: argparse.Namespace,
    model: LanguageModel,
    setting: Setting,
    plan: Plan,
) -> dict[str, Any]:
    from analysis.lm_eval_model import DiffusionLM, LikelihoodError

    language_model = DiffusionLM(
        model, setting, plan.decoding, arguments.batch, chat=not arguments.raw, progress=progress
    )
    try:
        found = lm_eval.simple_evaluate(
            model=language_model,
            tasks=[plan.task],
            num_fewshot=plan.shots,
            limit=arguments.limit,
            task_manager=manager,
            log_samples=False,
            bootstrap_iters=1000,
            confirm_run_unsafe_code=arguments.allow_code,
        )
    except LikelihoodError as error:
        raise parsing.UsageError(str(error)) from None
    scores = {
        f"{task}/{metric}": value
        for task, metrics in found["results"].items()
        for metric, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return {
        "task": plan.task,
        "shots": plan.shots,
        "setting": setting.label,
        "generation": plan.decoding.to_dict(),
        "scores": scores,
        **language_model.spent.figures(),
    }


def _report(model: LanguageModel, setting: Setting, results: list[dict[str, Any]], wanted: int) -> list[str]:
    if not results:
        return ["interrupted before the first task was finished"]
    facts = model.facts()
    rows = []
    for result in results:
        for name, value in result["scores"].items():
            speed, share = result["tokens_per_second"], result["recompute_ratio"]
            rows.append([name, figure(value), str(result["requests"]), figure(speed), percent(share)])
    lines = [
        f"{setting.described} on {facts['ref']}, {facts['dtype']} on {facts['device']}, "
        f"{counted(torch.get_num_threads(), 'thread')}",
        f"decoding: {settings_text(results[0]['generation'])}",
        "",
        table(("score", "value", "requests", "tokens/s", "recomputed"), rows),
    ]
    if len(results) < wanted:
        lines.append(f"interrupted: {len(results)} of {counted(wanted, 'task')} finished")
    truncated = sum(result["truncated_prompts"] for result in results)
    if truncated:
        lines.append(f"{truncated} prompts were too long for the model and lost their beginning")
    return lines
