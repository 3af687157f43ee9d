"""The report's tables: columns named for readers, with their units, and every cell as it is shown."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from analysis.bench_point import BenchPoint
from analysis.comparison import Comparison, Summary
from analysis.cost import cost
from analysis.observation import SPANS, Observation, Span
from analysis.plots.detection import area_text
from analysis.ranks import RankCorrelation
from analysis.settings import Setting, setting_texts
from analysis.trace import Trace
from analysis.tuning import Tuning
from analysis.wording import NOT_MEASURED, figure, percent, quartiles, signed

# Not every setting in every row: all but one or two of them would be the same down the column.
SETTING = "policy and its settings beside the defaults"


def defaults_notes(labels: Iterable[str]) -> list[str]:
    """A line with the defaults of every policy among these labels that has settings; none without one."""
    policies = dict.fromkeys(Setting.parse(label).policy for label in labels)
    described = [Setting(name).described for name in policies if Setting(name).make_policy().config.to_dict()]
    said = f"settings that a row does not name are at their defaults: {'; '.join(described)}"
    return [said] if described else []


def _setting_cell(setting: Setting) -> str:
    """Its label in words, which a browser can break."""
    return " ".join([setting.policy, *setting_texts({**setting.config, **setting.generation})])


def run_table(traces: Sequence[Trace]) -> pd.DataFrame:
    """One row a prompt: what its run computed and how long it took."""
    rows = []
    for index, trace in enumerate(traces):
        spent = cost(trace)
        rows.append(
            {
                "prompt": str(index),
                "prompt tokens": str(len(trace.prompt_ids)),
                "answer tokens": str(spent.num_tokens),
                "steps": str(spent.steps),
                "full steps": percent(spent.full_step_ratio),
                "rows recomputed": percent(spent.recompute_ratio),
                "commits per step": figure(spent.tokens_per_step),
                "tokens per second": figure(spent.tokens_per_second),
                "decision, of the time": percent(spent.decision_overhead),
                "seconds": figure(spent.seconds),
                "GFLOPs": figure(spent.flops / 1e9),
                "FLOPs of full passes": percent(spent.flops_ratio),
            }
        )
    return pd.DataFrame(rows)


def comparison_table(comparison: Comparison) -> pd.DataFrame:
    """One row a setting; what each column is over prompts and repeats says `Summary`."""
    return pd.DataFrame([_summary_row(summary) for summary in comparison.summaries])


def _summary_row(summary: Summary) -> dict[str, str]:
    spread = "one measurement" if summary.repeat_spread is None else percent(summary.repeat_spread)
    return {
        SETTING: _setting_cell(Setting.parse(summary.setting)),
        "prompts": str(summary.prompts),
        "repeats": str(summary.repeats),
        "tokens per second, median": figure(summary.tokens_per_second),
        "quartiles over prompts": quartiles(summary.low, summary.high, summary.prompts, summary.repeats),
        "spread of repeats": spread,
        "times as fast as vanilla": summary.speedup_text("vanilla"),
        "times as fast as parallel": summary.speedup_text("parallel"),
        "times as fast as the fastest": summary.speedup_text("fastest"),
        "FLOPs of no cache": percent(summary.flops_ratio),
        "rows recomputed": percent(summary.recompute_ratio),
        "full steps": percent(summary.full_step_ratio),
        "commits per step": figure(summary.tokens_per_step),
        "decision, of the time": percent(summary.decision_overhead),
        "tokens as without a cache": percent(summary.agreement),
        "prompts without a difference": percent(summary.identical),
        "solved, 95 % interval": summary.solved_text,
        "lost, gained against no cache": summary.changed_text,
    }


def tuning_table(tuning: Tuning) -> pd.DataFrame:
    """One row a candidate, each measured at most once on a prompt but for the choice, told as confirmed."""
    goal, rows = tuning.goal, []
    for candidate in tuning.listed():
        again = tuning.is_best(candidate) and tuning.confirmed is not None
        known = again or (candidate.prompts > 1 and candidate.low is not None)
        spread = f"{percent(candidate.low)}..{percent(candidate.high)}" if known else "one measurement"
        rows.append(
            {
                SETTING: _setting_cell(candidate.setting),
                f"{goal.objective} of no cache, on its prompts": percent(candidate.cost),
                "smallest to largest over prompts": f"{spread}, 95 % interval" if again else spread,
                f"{goal.keep} lost, at least": percent(max(candidate.loss, 0.0)),
                "prompts measured": str(candidate.prompts),
                "no other is better in both": "yes" if tuning.is_on_front(candidate) else "no",
                "chosen": "yes" if tuning.saves and tuning.is_best(candidate) else "no",
            }
        )
    return pd.DataFrame(rows)


def bench_table(points: Sequence[BenchPoint]) -> pd.DataFrame:
    """One row a policy and size: medians over the repeats."""
    return pd.DataFrame([_point_row(point) for point in points])


def _point_row(point: BenchPoint) -> dict[str, str]:
    def milliseconds(seconds: float | None) -> str:
        return figure(None if seconds is None else 1000 * seconds)

    return {
        SETTING: _setting_cell(Setting.parse(point.setting)),
        "model": point.model,
        "layers": str(point.num_layers),
        "width": str(point.hidden_size),
        "prompt tokens": str(point.prompt_length),
        "generated positions": str(point.gen_length),
        "batch": str(point.batch),
        "number type, device, threads": f"{point.dtype}, {point.device}, {point.threads}",
        "seconds of the clock": point.clock,
        "runs": str(point.repeats),
        "steps": str(point.steps),
        "full step, ms": milliseconds(point.full_seconds),
        "partial step, ms": milliseconds(point.partial_seconds),
        "rows of a partial step": figure(point.partial_rows),
        "decision of a step, ms": milliseconds(point.plan_seconds),
        "decision, of the time": percent(point.decision_overhead),
        "run, seconds": figure(point.seconds),
        "spread of runs": "one measurement" if point.repeats == 1 else percent(point.spread),
        "generated positions per second": figure(point.positions_per_second),
        "peak memory, MB": figure(None if point.peak_bytes is None else point.peak_bytes / 1e6),
    }


def correlation_table(seen: Observation) -> pd.DataFrame:
    """One row a span and signal."""
    return pd.DataFrame([row for name, span in seen.spans.items() for row in _span_rows(SPANS[name], span)])


def _span_rows(steps: str, span: Span) -> Iterator[dict[str, str]]:
    def interval(found: RankCorrelation) -> str:
        return NOT_MEASURED if np.isnan(found.low) else f"{signed(found.low)} to {signed(found.high)}"

    def rho(value: float) -> str:
        return signed(value, ".3f") if value == value else NOT_MEASURED

    result = span.correlation
    for name, plain in result.plain.items():
        partial, given, found = result.partial[name], result.given_step[name], span.detections[name]
        yield {
            "signal": name.replace("_", " "),
            "steps": steps,
            "Spearman's rho": rho(plain.rho),
            "95 % interval": interval(plain),
            "p": figure(plain.p),
            "rho given the step": rho(given.rho),
            "the step's interval": interval(given),
            "mean rho of a prompt": rho(result.per_prompt[name]),
            "rho given the count": rho(partial.rho) if result.count_varies else "count is constant",
            "its interval": interval(partial) if result.count_varies else "count is constant",
            "its p": figure(partial.p) if result.count_varies else "count is constant",
            "ROC area": NOT_MEASURED if np.isnan(found.area) else area_text(found),
            "step pairs": str(plain.n),
            "prompts": str(plain.groups),
        }
