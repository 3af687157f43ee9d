"""run: decode prompts under one policy, say what it cost, and keep the trace."""

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from analysis.cli import parsing
from analysis.cli.drift_text import drift_lines
from analysis.cli.errors import cutting, on_prompt
from analysis.cli.progress import progress
from analysis.cli.text import NOT_MEASURED, counted, figure, percent, settings_text, table
from analysis.environment import environment
from analysis.observation import summarise_drift
from analysis.observe import no_cache_trace, observe, one_token_a_step, run_trace
from analysis.probes import StalenessProbe
from analysis.prompts import Prompt, prompts_text
from analysis.results import text_of
from analysis.staleness import StalenessSummary, summarise_staleness
from analysis.trace import Trace
from analysis.wording import own_order
from core import CachePolicy, GenerationConfig, LanguageModel, create_policy, load_model
from core.timing import settle

HEADER = (
    "prompt", "in", "out", "steps", "full", "recomputed", "commits/step", "tokens/s", "decision", "seconds",
)  # fmt: skip
COLUMNS = (
    "out: generated positions. tokens/s: answer tokens alone, those up to and including the first",
    "end-of-text, over seconds, which are of the policy's decision, forward passes and decoding; decision:",
    "its share of them.",
    "recomputed: rows, over those of full passes at every step. commits/step: all committed positions, also",
    "such as only fill in what follows the end of the text.",
)


@dataclass
class Results:
    """What a run has brought so far, traces in the order of the prompts; `current` is still going on."""

    traces: list[Trace] = field(default_factory=list)
    solved: list[bool | None] = field(default_factory=list)
    vanilla: list[Trace] = field(default_factory=list)
    parallel: list[Trace] = field(default_factory=list)
    observed: list[Trace] = field(default_factory=list)
    current: Trace | None = None


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("run", help="decode prompts under one policy and write their traces")
    parsing.add_common_options(parser)
    parser.add_argument("--json", type=Path, metavar="OUT", help="trace file; one a line for several prompts")
    parser.add_argument("--baselines", action="store_true", help="also run without a cache, for speedups")
    parser.add_argument(
        "--drift",
        choices=("one-token", "run-rule"),
        nargs="?",
        const="one-token",
        help="also measure drift without a cache, one token a step (default) or by the run's own rule",
    )
    parser.add_argument(
        "--staleness", type=int, metavar="EVERY", help="compare the cache with a full pass every EVERY steps"
    )
    parser.add_argument("--drift-json", type=Path, metavar="OUT", help="trace file of the drift pass")
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Check everything first, then run. Returns 1 where the run was interrupted; what there is is kept."""
    with parsing.checking():
        generation, policy = parsing.generation_config(arguments), parsing.policy_of(arguments)
        policy.check_decoding(generation)
        parsing.warn_unread(arguments, generation)
        prompts = parsing.prompts_of(arguments)
        if arguments.staleness is not None:
            parsing.require_at_least("--staleness", arguments.staleness, 1)
        if arguments.drift_json is not None and arguments.drift is None:
            arguments.drift = "one-token"
        parsing.check_apart(arguments.prompts, arguments.json, arguments.drift_json)
        for path in (arguments.json, arguments.drift_json):
            parsing.check_writable(path)
        model = load_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
        parsing.check_fit(model, prompts, generation)
    parsing.warn_alike(prompts)
    results, machine = Results(), environment(model)
    try:
        with cutting() as cut:
            _measure(arguments, model, prompts, generation, policy, results)
        if cut.short and not cut.fault:
            results.traces += [results.current] if results.current else []
    finally:
        # Whatever went wrong, the prompts that were finished are kept.
        _write(arguments.json, results.traces, machine)
        _write(arguments.drift_json, results.observed, machine)
    print("\n".join(_report(results, prompts, cut.short and not cut.fault)))
    return cut.code()


def _measure(
    arguments: argparse.Namespace,
    model: LanguageModel,
    prompts: list[Prompt],
    generation: GenerationConfig,
    policy: CachePolicy,
    results: Results,
) -> None:
    """Fill `results` prompt by prompt, so that an interruption leaves what was done."""
    if arguments.baselines:
        # The first passes of a process are slower than the rest and would count against whoever is first.
        run_trace(model, prompts[0].content, generation, policy)
    settle()
    for index, prompt in enumerate(progress(prompts, "prompts")):
        with on_prompt(index):
            _measure_one(arguments, model, prompt, generation, policy, results)


def _measure_one(
    arguments: argparse.Namespace,
    model: LanguageModel,
    prompt: Prompt,
    generation: GenerationConfig,
    policy: CachePolicy,
    results: Results,
) -> None:
    none, slow = create_policy("none"), one_token_a_step(generation)
    watch = [StalenessProbe(model, arguments.staleness)] if arguments.staleness else []
    for trace in observe(model, prompt.content, generation, policy, watch):
        results.current = trace
    assert results.current is not None
    results.traces.append(results.current)
    results.current = None
    results.solved.append(prompt.is_solved_by(results.traces[-1].text))
    if arguments.baselines:
        results.parallel.append(run_trace(model, prompt.content, generation, none))
        # Where they decode alike one run stands for both: its noise would pass for a difference.
        alone = None if slow == generation else run_trace(model, prompt.content, slow, none)
        results.vanilla.append(alone or results.parallel[-1])
    if arguments.drift is not None:
        one_token = arguments.drift == "one-token"
        results.observed.append(no_cache_trace(model, prompt.content, generation, one_token))


def _write(path: Path | None, traces: list[Trace], machine: dict[str, Any]) -> None:
    """A trace file, or one trace a line for several prompts; each with the machine it was made on."""
    if path is not None and traces:
        records = ({**trace.to_json(), "environment": machine} for trace in traces)
        lines = (json.dumps(record, allow_nan=False) for record in records)
        parsing.write_whole(path, "\n".join(lines) + "\n")


def _report(results: Results, wanted: Sequence[Prompt], interrupted: bool) -> list[str]:
    if not results.traces:
        return ["interrupted before the first step"]
    first = results.traces[0]
    name, config = first.policy["name"], first.policy["config"]
    lines = [
        f"policy {name}: {'; '.join(filter(None, (settings_text(config), own_order(name, config))))}",
        f"model {first.model['ref']}: {first.model['family']}, {first.model['num_parameters'] / 1e6:.2f} M "
        f"parameters, {first.model['dtype']} on {first.model['device']}, "
        f"{counted(torch.get_num_threads(), 'thread')}, batch {first.batch_size}",
        f"decoding: {settings_text(first.generation)}",
        "",
        table(HEADER, [_row(str(index), trace) for index, trace in enumerate(results.traces)]),
        "",
        *COLUMNS,
        "",
    ]
    done = "interrupted: the last of them is incomplete" if interrupted else "one run each, no repeats"
    lines.append(f"n = {len(results.traces)} of {prompts_text(wanted)}, {done}")
    graded = [solved for solved in results.solved if solved is not None]
    if graded:
        lines.append(f"solved: {sum(graded)} of {len(graded)} graded")
    for name, baseline in (
        ("one token a step without a cache", results.vanilla),
        ("the same commit rule without a cache", results.parallel),
    ):
        lines.append(f"speed against {name}: {_speedup(results.traces, baseline)}")
    if "flipped" in first.steps[0].measurements:
        lines.append(_staleness_line(summarise_staleness(results.traces)))
    if results.observed:
        lines += ["", *drift_lines(summarise_drift(results.observed))]
    text = text_of(first)
    if len(results.traces) == 1 and text is not None:
        lines += ["", text]
    return lines


def _staleness_line(stale: StalenessSummary) -> str:
    if not stale.steps:
        return "staleness: no partial step was looked at"
    begun = f"staleness over {counted(stale.steps, 'partial step')}: K {stale.key:.2g}, V {stale.value:.2g}"
    # Where two passes decide together, those of one say nothing.
    if stale.hidden != stale.hidden:
        return f"{begun} from a full pass; what it would choose is {NOT_MEASURED}"
    changed = percent(stale.flipped)
    return f"{begun}, hidden {stale.hidden:.2g} from a full pass, which would change {changed} of the choices"


def _row(name: str, trace: Trace) -> list[str]:
    totals = trace.totals
    return [
        name,
        str(len(trace.prompt_ids)),
        str(trace.gen_length),
        str(totals["steps"]),
        str(totals["full_steps"]),
        percent(totals["recompute_ratio"]),
        figure(totals["tokens_per_step"]),
        figure(totals["tokens_per_second"]),
        percent(totals["decision_overhead"]),
        figure(totals["seconds"]),
    ]


def _speedup(traces: list[Trace], baseline: list[Trace]) -> str:
    """Median over prompts of baseline seconds / seconds, with the range."""
    if not baseline:
        return f"{NOT_MEASURED} (--baselines)"
    pairs = zip(baseline, traces, strict=False)
    ratios = [float(slow.totals["seconds"] or 0) / float(fast.totals["seconds"] or 1) for slow, fast in pairs]
    spread = f" (from {min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{statistics.median(ratios):.2f} times as fast, n = {len(ratios)}{spread}"
