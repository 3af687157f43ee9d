"""observe: the paper's two observations without a cache, by family of prompts and by commit rule."""

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from analysis.cli import parsing
from analysis.cli.drift_text import entropy_table, rivals_table, volatility_table
from analysis.cli.progress import Counter, progress
from analysis.cli.text import heading
from analysis.environment import environment
from analysis.observation import Observation, summarise_drift
from analysis.observe import no_cache_trace
from analysis.prompts import Prompt
from analysis.resampling import MIN_GROUPS
from analysis.trace import Trace
from core import GenerationConfig, LanguageModel, load_model

RULES = {"one-token": "one token a step", "run-rule": "the run's own commit rule"}
Traces = dict[tuple[str, str], list[Trace]]


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("observe", help="entropy against drift and volatility, without a cache")
    parsing.add_common_options(parser, policy=False)
    parser.add_argument(
        "--rules",
        nargs="+",
        choices=tuple(RULES),
        default=list(RULES),
        help="commit rules to decode by (both)",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="every coefficient and curve")
    parser.add_argument(
        "--traces", type=Path, metavar="OUT.jsonl", help="the traces as they come, for `report`; large"
    )
    parsing.add_markdown_option(parser)
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Decode every prompt by every rule, then rank. Returns 1 where it was interrupted."""
    with parsing.checking():
        base = parsing.generation_config(arguments)
        parsing.warn_unread(arguments, base)
        prompts = parsing.prompts_of(arguments)
        rules = arguments.rules
        parsing.require_different("--rules", rules)
        parsing.check_apart(arguments.prompts, arguments.json, arguments.traces)
        for path in (arguments.json, arguments.traces):
            parsing.check_writable(path)
        model = load_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
        parsing.check_fit(model, prompts, base)
    traces: Traces = {(rule, group_of(prompt)): [] for rule in rules for prompt in prompts}
    interrupted, machine = False, environment(model)
    with ExitStack() as stack:
        counter = stack.enter_context(Counter("passes", len(prompts) * len(rules)))
        file = stack.enter_context(arguments.traces.open("w", encoding="utf-8")) if arguments.traces else None
        try:
            for prompt in prompts:
                for rule in rules:
                    trace = no_cache_trace(model, prompt.content, base, one_token=rule == "one-token")
                    traces[rule, group_of(prompt)].append(trace)
                    if file is not None:
                        record = {**trace.to_json(), "environment": machine}
                        file.write(json.dumps(record, allow_nan=False) + "\n")
                        file.flush()
                    counter.advance()
        except KeyboardInterrupt:
            interrupted = True
    seen: dict[tuple[str, str], Observation] = {}
    try:
        # Resampling takes as long as some of the passes.
        for key in progress([key for key, found in traces.items() if found], "rankings"):
            seen[key] = summarise_drift(traces[key], key[1])
    except KeyboardInterrupt:
        interrupted = True
    if arguments.json is not None:
        content = to_json(machine, base, seen, interrupted)
        parsing.write_whole(arguments.json, json.dumps(content))
    print("\n".join(_report(model, base, seen, interrupted, arguments.markdown)))
    return 1 if interrupted else 0


def group_of(prompt: Prompt) -> str:
    """The family a prompt's record names."""
    return (prompt.problem.family if prompt.problem else "") or "prompts"


def _report(
    model: LanguageModel,
    base: GenerationConfig,
    seen: dict[tuple[str, str], Observation],
    interrupted: bool,
    markdown: bool,
) -> list[str]:
    lines = heading(model, base)
    if interrupted:
        lines.append("interrupted: fewer prompts or families than asked for")
    for rule, name in RULES.items():
        found = [observation for (of, _), observation in seen.items() if of == rule]
        if found:
            mark = "## " if markdown else ""
            lines += ["", f"{mark}{name[0].upper()}{name[1:]}", "", *_tables(found, markdown)]
    return lines if seen else ["interrupted before the first family was done"]


def _tables(found: Sequence[Observation], markdown: bool) -> list[str]:
    return [
        "Spearman of a step's largest entropy with the drift of cached positions to the next step, all pairs "
        "pooled; 95 % bootstrap interval over prompts (over blocks of their steps, below "
        f"{MIN_GROUPS} prompts), p by circular shifts of the steps within prompts:",
        "",
        entropy_table(found, markdown),
        "",
        "Rivals, coefficient and ROC area with their intervals:",
        "",
        rivals_table(found, markdown),
        "",
        "Volatility, mean drift of a token by steps since its unmasking (age 0: from mask to token):",
        "",
        volatility_table(found, markdown),
    ]


def to_json(
    machine: dict[str, Any],
    base: GenerationConfig,
    seen: dict[tuple[str, str], Observation],
    interrupted: bool,
) -> dict[str, Any]:
    """Every table in full; what is not known is null."""
    return {
        "schema": 1,
        "kind": "observation",
        "complete": not interrupted,
        "environment": machine,
        "generation": base.to_dict(),
        "observations": [
            {
                "rule": rule,
                "group": group,
                "prompts": one.prompts,
                "pairs": one.pairs,
                "tokens_per_step": one.pace,
                "signals": json.loads(one.to_frame().to_json(orient="records")),
                "volatility": json.loads(one.volatility.to_frame().to_json(orient="records")),
                "settled_age": one.volatility.settled_age,
                "recent": one.volatility.recent,
            }
            for (rule, group), one in seen.items()
        ],
    }
