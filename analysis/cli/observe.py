"""observe: the paper's two observations without a cache, by family of prompts and by commit rule."""

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.cli import parsing
from analysis.cli.drift_text import entropy_table, kinds_table, rivals_table, volatility_table
from analysis.cli.errors import cutting, on_prompt
from analysis.cli.progress import Counter, progress
from analysis.cli.text import heading, percent
from analysis.environment import environment
from analysis.observation import Observation, Span, summarise_drift
from analysis.observe import no_cache_trace
from analysis.prompts import Prompt, distinct
from analysis.resampling import MIN_GROUPS
from analysis.trace import Trace
from core import GenerationConfig, load_model

RULES = {"one-token": "one token a step", "run-rule": "the run's own commit rule"}
ENTROPY = (
    "Spearman of a step's largest entropy with the drift of cached positions to the next step, pairs of all "
    "prompts pooled. Within the answer: of steps that commit a position before the first end-of-text. All "
    "steps: with those that only fill in what follows it ({filler}). 95 % bootstrap interval over prompts; "
    "below {few} prompts over blocks of their steps, and then of these prompts only. p: share of circular "
    "shifts of the steps within prompts that reach rho; it does not rule out a trend that both share. Given "
    "step takes such a trend out; mismatched prompts, each one's entropies beside the next one's drift, show "
    "what it comes to:"
)
RIVALS = (
    "Rivals, coefficient and ROC area, a high value being the alarm; each interval is its signal's own, so "
    "the best of several is somewhat too good:"
)
KINDS = (
    "Largest entropy by kind of position; `cached`, as above, is all three, and dominated by `later`, the "
    "masks of later blocks, while there are any:"
)
VOLATILITY = (
    "Volatility, mean drift of a token by steps since its unmasking (age 0: from mask to token), of the "
    "answer's tokens and of those that fill in after it. Old ages come only from tokens committed early. "
    "Commits by then: positions committed within so many steps, a k (`recent`) that covers them:"
)
Traces = dict[tuple[str, str], list[Trace]]


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("observe", help="entropy against drift and volatility, without a cache")
    parsing.add_common_options(parser, policy=False, settings="generation settings")
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
        asked = parsing.prompts_of(arguments)
        prompts = distinct(asked)
        rules = arguments.rules
        parsing.require_different("--rules", rules)
        parsing.check_apart(arguments.prompts, arguments.json, arguments.traces)
        for path in (arguments.json, arguments.traces):
            parsing.check_writable(path)
        model = load_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
        parsing.check_fit(model, prompts, base)
    traces: Traces = {(rule, group_of(prompt)): [] for rule in rules for prompt in prompts}
    machine = environment(model)
    with ExitStack() as stack:
        counter = stack.enter_context(Counter("passes", len(prompts) * len(rules)))
        file = stack.enter_context(arguments.traces.open("w", encoding="utf-8")) if arguments.traces else None
        with cutting() as cut:
            for prompt in prompts:
                for rule in rules:
                    with on_prompt(asked.index(prompt)):
                        trace = no_cache_trace(model, prompt.content, base, one_token=rule == "one-token")
                    traces[rule, group_of(prompt)].append(trace)
                    if file is not None:
                        record = {**trace.to_json(), "environment": machine}
                        file.write(json.dumps(record, allow_nan=False) + "\n")
                        file.flush()
                    counter.advance()
    seen: dict[tuple[str, str], Observation] = {}
    try:
        # Resampling takes as long as some of the passes.
        for key in progress([key for key, found in traces.items() if found], "rankings"):
            seen[key] = summarise_drift(traces[key], key[1])
    except KeyboardInterrupt:
        cut.short = True
    if arguments.json is not None:
        content = {**to_json(machine, base, seen, cut.short), "prompts_asked": len(asked)}
        parsing.write_whole(arguments.json, json.dumps(content))
    lines = [*heading(model, base), *_left_out(asked, prompts)]
    lines += ["interrupted: fewer prompts or families than asked for"] if cut.short else []
    print("\n".join([*lines, *_report(seen, arguments.markdown)]))
    return cut.code()


def group_of(prompt: Prompt) -> str:
    """The family a prompt's record names."""
    return (prompt.problem.family if prompt.problem else "") or "prompts"


def _left_out(asked: Sequence[Prompt], prompts: Sequence[Prompt]) -> list[str]:
    if len(prompts) == len(asked):
        return []
    return [f"{len(asked)} prompts asked for, {len(prompts)} of different content; the others are left out"]


def _report(seen: dict[tuple[str, str], Observation], markdown: bool) -> list[str]:
    lines: list[str] = []
    for rule, name in RULES.items():
        found = [observation for (of, _), observation in seen.items() if of == rule]
        if found:
            mark = "## " if markdown else ""
            lines += ["", f"{mark}{name[0].upper()}{name[1:]}", "", *_tables(found, markdown)]
    return lines if seen else ["interrupted before the first family was done"]


def _tables(found: Sequence[Observation], markdown: bool) -> list[str]:
    return [
        ENTROPY.format(filler=_filler(found), few=MIN_GROUPS),
        "",
        entropy_table(found, markdown),
        "",
        RIVALS,
        "",
        rivals_table(found, markdown),
        "",
        KINDS,
        "",
        kinds_table(found, markdown),
        "",
        VOLATILITY,
        "",
        volatility_table(found, markdown),
    ]


def _filler(found: Sequence[Observation]) -> str:
    return ", ".join(f"{seen.group} {percent(seen.share_behind)}" for seen in found)


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
                "pairs": one.spans["all"].pairs,
                "pairs_in_answer": one.spans["answer"].pairs,
                "tokens_per_step": one.pace,
                "signals": _records(one.spans["all"].to_frame()),
                "signals_in_answer": _records(one.spans["answer"].to_frame()),
                "kinds": _spans(one.kinds),
                "mismatched": _spans({"cached": one.mismatched}),
                "volatility": _records(one.volatility.to_frame()),
                "volatility_filler": _records(one.filler.to_frame()),
                "settled_age": one.volatility.settled_age,
                "recent": one.volatility.recent,
            }
            for (rule, group), one in seen.items()
        ],
    }


def _spans(by_kind: Mapping[str, Mapping[str, Span]]) -> list[dict[str, Any]]:
    """A record a kind of position, span and signal."""
    return [
        {"positions": kind, "span": name, "pairs": span.pairs, **row}
        for kind, spans in by_kind.items()
        for name, span in spans.items()
        for row in _records(span.to_frame().assign(drift=span.drift))
    ]


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
    return records
