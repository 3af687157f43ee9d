"""The drift of passes without a cache in words and tables: entropy beside its rivals, volatility by age."""

from collections.abc import Sequence

import numpy as np

from analysis.cli.text import counted, figure, table
from analysis.observation import SIGNALS, Observation
from analysis.ranks import RankCorrelation
from analysis.resampling import drawn_of
from analysis.roc import Detection
from analysis.volatility import Volatility

AGES = (0, 1, 2, 4, 8, 16, 32, 64)
RIVALS = [signal for signal in SIGNALS if signal != "max_entropy"]


def drift_lines(seen: Observation) -> list[str]:
    """Report lines for one group of prompts: a row a signal, and where volatility settles."""
    result = seen.correlation
    lines = [
        f"drift without a cache, {seen.rule} rule, {seen.pace:.2f} tokens a step, "
        f"n = {seen.pairs} step pairs of {counted(seen.prompts, 'prompt')}",
        "Spearman of a step's signal with the drift of cached positions to the next step; 95 % interval over "
        f"{drawn_of(seen.prompts)}; p by circular shifts:",
    ]
    rows = []
    for name in SIGNALS:
        plain, given = result.plain[name], result.given_step[name]
        if plain.known:
            rows.append(
                [
                    name,
                    f"{plain.rho:+.3f}",
                    f"[{plain.low:+.2f}, {plain.high:+.2f}]",
                    f"{plain.p:.3f}",
                    f"{result.partial[name].rho:+.3f}"
                    if result.count_varies and name != "num_committed"
                    else "-",
                    f"{given.rho:+.3f}" if given.known and name != "step" else "-",
                    area(seen.detections[name]),
                ]
            )
    if rows:
        header = ("signal", "rho", "interval", "p", "given count", "given step", "ROC area (top 10 %)")
        lines.append(table(header, rows))
    else:
        lines.append("no coefficient: too few steps, or nothing varies")
    curve = seen.volatility
    if curve.settled_age is None:
        lines.append(f"volatility: no plateau found in ages up to {len(curve.ages) - 1}")
    else:
        lines.append(
            f"volatility: within noise of its plateau {figure(curve.plateau, 2)} from "
            f"{curve.settled_age} steps after unmasking (k = {curve.recent} at this pace)"
        )
    return lines


def entropy_table(observations: Sequence[Observation], markdown: bool = False) -> str:
    """Entropy against the drift that follows, a row a group."""
    header = (
        "family", "prompts", "pairs", "tokens a step", "rho of max entropy", "p", "mean of prompts",
        "given count", "given step", "ROC area, top-decile drift",
    )  # fmt: skip
    rows = []
    for seen in observations:
        result, name = seen.correlation, "max_entropy"
        partial = coefficient(result.partial[name]) if result.count_varies else "does not vary"
        rows.append(
            [
                seen.group,
                str(seen.prompts),
                str(seen.pairs),
                f"{seen.pace:.1f}",
                coefficient(result.plain[name]),
                f"{result.plain[name].p:.3f}",
                f"{result.per_prompt[name]:+.3f}",
                partial,
                coefficient(result.given_step[name]),
                area(seen.detections[name]),
            ]
        )
    return table(header, rows, markdown=markdown)


def rivals_table(observations: Sequence[Observation], markdown: bool = False) -> str:
    """The rivals' plain coefficients and ROC areas, a row a group; - where a signal never varies."""
    rows = []
    for seen in observations:
        cells = []
        for name in RIVALS:
            plain, found = seen.correlation.plain[name], seen.detections[name]
            cells.append(f"{coefficient(plain)}; {area(found)}" if plain.known else "-")
        rows.append([seen.group, *cells])
    return table(("family", *RIVALS), rows, markdown=markdown)


def volatility_table(observations: Sequence[Observation], markdown: bool = False) -> str:
    """Mean drift by steps since unmasking with its interval, a row a group."""
    header = ("family", "tokens", *(f"age {age}" for age in AGES), "plateau", "settled at", "k")
    rows = []
    for seen in observations:
        curve = seen.volatility
        tokens = str(int(curve.count[0])) if len(curve.ages) else "0"
        settled = (
            ["none found", "-"] if curve.settled_age is None else [str(curve.settled_age), str(curve.recent)]
        )
        plateau = "-" if np.isnan(curve.plateau) else f"{curve.plateau:.1e}"
        rows.append([seen.group, tokens, *(_at(curve, age) for age in AGES), plateau, *settled])
    return table(header, rows, markdown=markdown)


def coefficient(result: RankCorrelation) -> str:
    """A coefficient and its interval."""
    if not result.known:
        return "not measured"
    return f"{result.rho:+.3f} [{result.low:+.2f}, {result.high:+.2f}]"


def area(found: Detection) -> str:
    """An area under the ROC curve and its interval."""
    if np.isnan(found.area):
        return "not measured"
    return f"{found.area:.3f} [{found.low:.2f}, {found.high:.2f}]"


def _at(curve: Volatility, age: int) -> str:
    """The mean at an age and its interval; - where too few tokens became so old."""
    if age >= len(curve.ages):
        return "-"
    return f"{curve.mean[age]:.1e} [{curve.low[age]:.1e}, {curve.high[age]:.1e}]"
