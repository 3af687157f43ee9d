"""Figure of how well a threshold on each signal finds the steps that drift most."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from analysis.plots.theme import LOOK, SERIES, apply_theme, empty_figure
from analysis.roc import Detection

SIGNAL_NAMES = {
    "max_entropy": "largest entropy",
    "mean_entropy": "mean entropy",
    "max_doubt": "largest doubt",
    "num_committed": "tokens committed",
    "since_full": "steps since the last full one",
    "earliness": "earliness",
}


def area_text(detection: Detection) -> str:
    """An area under the ROC curve with its interval, where there is one."""
    if np.isnan(detection.low):
        return f"{detection.area:.2f}"
    return f"{detection.area:.2f} [{detection.low:.2f}, {detection.high:.2f}]"


def detection_figure(detections: Sequence[Detection], threshold: float | None = None) -> go.Figure:
    """ROC curves, one a signal that varies, each area with its interval.

    threshold: tau, whose working point is marked on the curve of the largest entropy.
    """
    known = [detection for detection in detections if detection.varies and not np.isnan(detection.area)]
    share = detections[0].top_share if detections else 0.1
    title = f"Detecting the {share:.0%} of steps with the most drift"
    if not known:
        return empty_figure(title, "too few steps")
    figure = go.Figure()
    for detection, colour in zip(known, SERIES, strict=False):
        figure.add_scatter(
            x=detection.false_rate,
            y=detection.true_rate,
            customdata=detection.threshold,
            mode="lines",
            line={"color": colour},
            name=f"{SIGNAL_NAMES.get(detection.signal, detection.signal)} {area_text(detection)}",
            hovertemplate="above %{customdata:.3f}: finds %{y:.0%}, false alarms %{x:.0%}",
        )
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": LOOK.faint, "dash": "dot"},
        name="chance",
        hoverinfo="skip",
    )
    judged = next((detection for detection in known if detection.signal == "max_entropy"), None)
    if judged is not None and threshold is not None and np.isfinite(threshold):
        # Thresholds fall: what lies above the first that tau reaches is what lies above tau.
        at = int((judged.threshold > threshold).sum())
        figure.add_scatter(
            x=[judged.false_rate[at]],
            y=[judged.true_rate[at]],
            mode="markers",
            marker={"color": LOOK.warning, "size": 11, "symbol": "diamond"},
            name=f"τ = {threshold:g}",
        )
    apply_theme(figure, title, "false alarms", "found")
    figure.update_xaxes(tickformat=".0%", range=[0, 1.02])
    figure.update_yaxes(tickformat=".0%", range=[0, 1.02])
    return figure
