"""The drift of a pass without a cache in words: entropy's coefficient beside its rivals', volatility."""

from collections.abc import Sequence

import numpy as np

from analysis.cli.text import figure, table
from analysis.correlation import correlate, detect, drift_pairs
from analysis.trace import Trace
from analysis.volatility import volatility

SIGNALS = ("max_entropy", "mean_entropy", "max_doubt", "num_committed", "step")


def drift_lines(traces: Sequence[Trace]) -> list[str]:
    """Report lines for traces of a no-cache pass measured by a ValueDriftProbe."""
    pairs = drift_pairs(traces)
    result = correlate(pairs, SIGNALS)
    rule = traces[0].generation["unmask"]
    pace = np.mean([trace.num_committed.mean() for trace in traces])
    lines = [
        f"drift without a cache, {rule} rule, {pace:.2f} tokens a step, "
        f"n = {len(pairs.drift)} step pairs of {len(traces)} prompts",
        "Spearman of a step's signal with the drift of cached positions to the next step, 95 % interval:",
    ]
    rows = []
    for name in SIGNALS:
        plain, partial, given = result.plain[name], result.partial[name], result.given_step[name]
        if plain.known:
            rows.append(
                [
                    name,
                    f"{plain.rho:+.3f}",
                    f"[{plain.low:+.2f}, {plain.high:+.2f}]",
                    f"{plain.p:.3f}",
                    f"{partial.rho:+.3f}" if result.count_varies and name != "num_committed" else "-",
                    f"{given.rho:+.3f}" if given.known and name != "step" else "-",
                    figure(detect(pairs, name).area),
                ]
            )
    if rows:
        header = ("signal", "rho", "interval", "p", "given count", "given step", "ROC area (top 10 %)")
        lines.append(table(header, rows))
    else:
        lines.append("no coefficient: too few steps, or nothing varies")
    curve = volatility(traces)
    if curve.settled_age is None:
        lines.append(f"volatility: no plateau found in ages up to {len(curve.ages) - 1}")
    else:
        lines.append(
            f"volatility: within noise of its plateau {figure(curve.plateau, 2)} from "
            f"{curve.settled_age} steps after unmasking (k = {curve.recent} at this pace)"
        )
    return lines
