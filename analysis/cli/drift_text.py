"""The drift of passes without a cache in words and tables: entropy beside its rivals, volatility by age."""

from collections.abc import Sequence

import numpy as np

from analysis.cli.text import counted, percent, table
from analysis.observation import KINDS, SIGNALS, SPANS, Observation, Span
from analysis.ranks import RankCorrelation
from analysis.resampling import drawn_of
from analysis.roc import Detection
from analysis.volatility import Volatility
from analysis.wording import signed

AGES = (0, 1, 2, 4, 8, 16, 32, 64)
ENTROPY = "max_entropy"
PARTS = ("pairs", "mean drift", "rho", "given step")
RIVALS = [signal for signal in SIGNALS if signal != ENTROPY]


def drift_lines(seen: Observation) -> list[str]:
    """Report lines for one group of prompts: a row a signal, and where volatility settles."""
    lines = [
        f"drift without a cache, {seen.rule} rule, {seen.pace:.2f} commits a step, "
        f"n = {seen.spans['all'].pairs} step pairs of {counted(seen.prompts, 'prompt')}, "
        f"{percent(seen.share_behind)} of which only fill in what follows the end of the text",
        "Spearman of a step's signal with the drift of cached positions to the next step; 95 % interval over "
        f"{drawn_of(seen.prompts)}; p by circular shifts, which rule out no trend that both share; see "
        "given step:",
    ]
    rows = [row for name, span in seen.spans.items() for row in _signal_rows(SPANS[name], span)]
    if rows:
        header = (
            "steps", "signal", "rho", "interval", "p", "given count", "given step", "ROC area (top 10 %)",
        )  # fmt: skip
        lines.append(table(header, rows, left=2))
    else:
        lines.append("no coefficient: too few steps, or nothing varies")
    curve = seen.volatility
    k = "" if curve.recent is None else f" (k = {curve.recent} at this pace)"
    return [*lines, f"volatility: {'; '.join(curve.described)}{k}"]


def _signal_rows(steps: str, span: Span) -> list[list[str]]:
    result, rows = span.correlation, []
    for name in SIGNALS:
        plain, partial, given = result.plain[name], result.partial[name], result.given_step[name]
        if plain.known:
            rows.append(
                [
                    steps,
                    name,
                    signed(plain.rho, ".3f"),
                    plain.interval_text,
                    f"{plain.p:.3f}",
                    signed(partial.rho, ".3f") if result.count_varies and partial.known else "-",
                    signed(given.rho, ".3f") if given.known else "-",
                    area(span.detections[name]),
                ]
            )
    return rows


def entropy_table(observations: Sequence[Observation], markdown: bool = False) -> str:
    """Entropy against the drift that follows, a row a group and span."""
    header = (
        "family", "steps", "prompts", "pairs", "commits a step", "rho of max entropy", "p", "mean of prompts",
        "given count", "given step", "mismatched prompts", "ROC area, top-decile drift",
    )  # fmt: skip
    rows = []
    for seen in observations:
        for name, span in seen.spans.items():
            result = span.correlation
            plain, beside = result.plain[ENTROPY], seen.mismatched.get(name)
            rows.append(
                [
                    seen.group,
                    SPANS[name],
                    str(seen.prompts),
                    str(span.pairs),
                    f"{seen.pace:.1f}",
                    coefficient(plain),
                    f"{plain.p:.3f}" if plain.known else "-",
                    signed(result.per_prompt[ENTROPY], ".3f") if plain.known else "-",
                    coefficient(result.partial[ENTROPY]) if result.count_varies else "does not vary",
                    coefficient(result.given_step[ENTROPY]),
                    coefficient(beside.correlation.plain[ENTROPY]) if beside else "too few prompts",
                    area(span.detections[ENTROPY]),
                ]
            )
    return table(header, rows, left=2, markdown=markdown)


def rivals_table(observations: Sequence[Observation], markdown: bool = False) -> str:
    """The rivals' coefficients and ROC areas, a row a group and span; - where a signal never varies."""
    rows = []
    for seen in observations:
        for name, span in seen.spans.items():
            cells = []
            for rival in RIVALS:
                plain, found = span.correlation.plain[rival], span.detections[rival]
                cells.append(f"{coefficient(plain)}; {area(found)}" if plain.known else "-")
            rows.append([seen.group, SPANS[name], *cells])
    return table(("family", "steps", *RIVALS), rows, left=2, markdown=markdown)


def kinds_table(observations: Sequence[Observation], markdown: bool = False) -> str:
    """What `cached` pools and what it comes to, a row a group and kind of position."""
    header = ("family", "positions", *(f"{name}: {part}" for name in SPANS.values() for part in PARTS))
    rows = []
    for seen in observations:
        for kind in KINDS:
            cells = []
            for name in SPANS:
                span = seen.kinds[kind][name]
                plain, given = span.correlation.plain[ENTROPY], span.correlation.given_step[ENTROPY]
                drift = "-" if np.isnan(span.drift) else f"{span.drift:.1e}"
                cells += [str(span.pairs), drift, coefficient(plain), coefficient(given)]
            rows.append([seen.group, kind, *cells])
    return table(header, rows, left=2, markdown=markdown)


def volatility_table(observations: Sequence[Observation], markdown: bool = False) -> str:
    """Mean drift by steps since unmasking with its interval, a row a group and kind of token."""
    header = (
        "family", "tokens", "n", *(f"age {age}" for age in AGES),
        "plateau", "within its noise from age", "commits by then",
    )  # fmt: skip
    rows = []
    for seen in observations:
        for curve in (seen.volatility, seen.filler):
            number = str(int(curve.count[0])) if len(curve.ages) else "0"
            at, k = ("-", "-") if curve.settled_age is None else (str(curve.settled_age), str(curve.recent))
            plateau = "-" if np.isnan(curve.plateau) else f"{curve.plateau:.1e}"
            ages = (_at(curve, age) for age in AGES)
            rows.append([seen.group, curve.tokens, number, *ages, plateau, at, k])
    return table(header, rows, left=2, markdown=markdown)


def coefficient(result: RankCorrelation) -> str:
    """A coefficient and its interval."""
    if not result.known:
        return "not measured"
    return f"{signed(result.rho, '.3f')} {result.interval_text}"


def area(found: Detection) -> str:
    """An area under the ROC curve and its interval."""
    if np.isnan(found.area):
        return "not measured"
    return (
        f"{found.area:.3f}"
        if np.isnan(found.low)
        else f"{found.area:.3f} [{found.low:.2f}, {found.high:.2f}]"
    )


def _at(curve: Volatility, age: int) -> str:
    """The mean at an age and its interval; - where too few tokens became so old."""
    if age >= len(curve.ages):
        return "-"
    mean, low, high = (float(values[age]) for values in (curve.mean, curve.low, curve.high))
    return f"{mean:.1e}" if np.isnan(low) else f"{mean:.1e} [{low:.1e}, {high:.1e}]"
