"""compare: policies side by side on the same prompts, interleaved, against both baselines."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.cli import parsing
from analysis.cli.errors import cutting
from analysis.cli.journals import kept_lines, opened_journal
from analysis.cli.progress import Counter
from analysis.cli.text import counted, figure, heading, legend, percent, table
from analysis.comparison import Comparison, Summary, summarise
from analysis.environment import environment
from analysis.measure import Outcome, interleaved, measure, reference_of, vanilla, warm_up
from analysis.prompts import Prompt, prompts_text
from analysis.settings import Setting, check_different, longest
from analysis.wording import quartiles
from core import GenerationConfig, LanguageModel, load_model
from core.timing import settle

DEFAULT = ("prefix", "dual", "entropy")
HEADER = (
    "setting", "tokens/s", "quartiles", "x vanilla", "x parallel", "x fastest", "flops", "recomputed",
    "commits/step", "decision", "agreement", "solved", "lost, gained",
)  # fmt: skip


def add_parser(commands: "argparse._SubParsersAction[parsing.Parser]") -> None:
    parser = commands.add_parser("compare", help="policies side by side, speed against both baselines")
    parsing.add_common_options(parser, policy=False, settings=parsing.OF_ONE_POLICY)
    parser.add_argument(
        "--policies",
        "--policy",
        nargs="+",
        default=list(DEFAULT),
        metavar="NAME[:KEY=VALUE,...]",
        help=f"settings to compare ({' '.join(DEFAULT)})",
    )
    parser.add_argument("--repeats", type=int, default=3, help="times each prompt is measured (3)")
    parser.add_argument("--no-vanilla", action="store_true", help="leave out the slow baseline")
    parser.add_argument("--journal", type=Path, metavar="FILE.jsonl", help="keep runs as they come, to go on")
    parser.add_argument("--json", type=Path, metavar="OUT", help="every run and the summary")
    parsing.add_markdown_option(parser)
    parser.set_defaults(command=command)


def command(arguments: argparse.Namespace) -> int:
    """Measure and print; an interruption prints what there is and returns 1."""
    with parsing.checking():
        parsing.require_at_least("--repeats", arguments.repeats, 1, parsing.MOST_REPEATS)
        base = parsing.generation_config(arguments)
        wanted = parsing.settings_of(arguments)
        check_different(wanted, base)
        parsing.warn_unread(arguments, base, wanted)
        settings = with_baselines(wanted, base, arguments.no_vanilla)
        most = longest(settings, base)
        prompts = parsing.prompts_of(arguments)
        parsing.check_apart(arguments.prompts, arguments.journal, arguments.json)
        for path in (arguments.journal, arguments.json):
            parsing.check_writable(path)
        model = load_model(arguments.model, device=arguments.device, dtype=arguments.dtype)
        parsing.check_fit(model, prompts, most)
    parsing.warn_alike(prompts)
    units = list(interleaved(settings, len(prompts), arguments.repeats))
    with opened_journal(arguments.journal, model, prompts, base, environment(model)) as journal:
        left = [unit for unit in units if unit.key not in journal.done]
        with cutting() as cut:
            if left:
                warm_up(model, prompts, base, settings)
                settle()
            with Counter("runs", total=len(units), done=len(units) - len(left)) as counter:
                for unit in left:
                    journal.add(measure(model, prompts, base, unit))
                    counter.advance()
    outcomes = [journal.done[unit.key] for unit in units if unit.key in journal.done]
    result = summarise(outcomes, settings, base, model.spec.eos_token_ids)
    if arguments.json is not None:
        content = _to_json(model, base, outcomes, result, cut.short)
        parsing.write_whole(arguments.json, json.dumps(content, allow_nan=False))
    notes = kept_lines(arguments.journal, len(units) - len(left), len(units))
    print("\n".join(report(model, base, result, prompts, notes, cut.short, markdown=arguments.markdown)))
    return cut.code()


def with_baselines(wanted: list[Setting], base: GenerationConfig, no_vanilla: bool) -> list[Setting]:
    """The settings after their baselines, each once."""
    slowest = [] if no_vanilla else [vanilla(base)]
    every = [*slowest, *[reference_of(setting) for setting in wanted], *wanted]
    return list({setting.label: setting for setting in every}.values())


def report(
    model: LanguageModel,
    base: GenerationConfig,
    result: Comparison,
    prompts: Sequence[Prompt],
    notes: Sequence[str] = (),
    interrupted: bool = False,
    threads: str | None = None,
    markdown: bool = False,
) -> list[str]:
    """Lines for standard output. prompts: all asked for; notes: more lines of what the table is of; threads:
    those of this process unless given.
    """
    if not result.summaries:
        return ["interrupted before the first run"]
    first = result.summaries[0]
    # After an interruption fewer may have been measured than were asked for.
    many = prompts_text(prompts) if first.prompts == len(prompts) else counted(first.prompts, "prompt")
    measured = "one measurement of each" if first.repeats == 1 else f"{first.repeats} interleaved repeats"
    lines = [
        *heading(model, base, threads),
        f"n = {many}, {measured} after a warm-up"
        + ("; interrupted, so not every setting has all of them" if interrupted else ""),
        *notes,
        "",
        table(HEADER, [_row(summary) for summary in result.summaries], markdown=markdown),
        "",
        *legend((summary.setting for summary in result.summaries), markdown),
        "",
        "tokens/s: median over prompts of the median over repeats. x vanilla, x parallel, x fastest: median",
        "over prompts of the seconds of one token a step, of the same commit rule, both without a cache, and",
        "of the row of most tokens/s, over this row's. That row has the largest median, so prompt by prompt",
        "another may come out above 1. quartiles, and in brackets: over prompts; of fewer than four their",
        "range. flops: of the method, by formula. commits/step: all committed positions, also such as",
        "only fill in what follows the end of the text. agreement: tokens equal to parallel's up to there.",
        "solved: with Wilson's 95 % interval. lost, gained: prompts solved by parallel alone, by this row",
        "alone.",
    ]
    spreads = [summary.repeat_spread for summary in result.summaries if summary.repeat_spread is not None]
    if spreads:
        lines.append(f"spread of the repeats, (slowest - fastest) / median: up to {max(spreads):.0%}")
    return lines


def _row(summary: Summary) -> list[str]:
    return [
        summary.setting,
        figure(summary.tokens_per_second),
        quartiles(summary.low, summary.high, summary.prompts, summary.repeats),
        *(summary.speedup_text(against) for against in ("vanilla", "parallel", "fastest")),
        percent(summary.flops_ratio),
        percent(summary.recompute_ratio),
        figure(summary.tokens_per_step),
        percent(summary.decision_overhead),
        percent(summary.agreement),
        summary.solved_text,
        summary.changed_text,
    ]


def _to_json(
    model: LanguageModel,
    base: GenerationConfig,
    outcomes: list[Outcome],
    result: Comparison,
    interrupted: bool,
) -> dict[str, Any]:
    return {
        "schema": 1,
        "kind": "comparison",
        "complete": not interrupted,
        "environment": environment(model),
        "generation": base.to_dict(),
        "settings": {one.setting: Setting.parse(one.setting).described for one in result.summaries},
        "summary": [vars(summary) for summary in result.summaries],
        "outcomes": [outcome.to_json() for outcome in outcomes],
    }
