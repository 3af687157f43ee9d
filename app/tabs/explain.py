"""The explanations under a run, one tab each; drawn once the run is over, except for the first."""

import math
from collections.abc import Callable
from typing import Any

import gradio as gr

from app.explain import (
    layers_panel,
    map_panel,
    signals_panel,
    staleness_panel,
    tokens_panel,
    whatif_panel,
)
from app.figures import policy_setting, scatter_panel, volatility_panel
from app.job import OBSERVE
from app.panels import panel
from app.runs import RunRecord

DEFAULT_TAU, DEFAULT_K = 1.0, 64
MAX_TAU, MAX_K = 3.0, 128
ALWAYS = -1.0


class Explanations:
    """The tabs, built into the current context with an example in them."""

    def __init__(self, example: RunRecord) -> None:
        with gr.Tabs(elem_id="explain", overflow_behavior="wrap"):
            with gr.Tab("Entropy and drift"):
                self._drift(example)
            with gr.Tab("What if?", elem_id="tab-whatif"):
                self._whatif(example)
            with gr.Tab("Recompute map"):
                self.map = panel("plot", map_panel(example, example=True), elem_id="map")
            with gr.Tab("Layers and tokens"), gr.Row(elem_classes="es-pair"):
                with gr.Column(min_width=320):
                    self.layers = panel("plot", layers_panel(example), elem_id="layers")
                with gr.Column(min_width=320):
                    self.tokens = panel("plot", tokens_panel(example), elem_id="tokens")
            with gr.Tab("Signals"):
                self.signals = panel("plot", signals_panel(example), elem_id="signals")
            with gr.Tab("Staleness"):
                self.staleness = panel("plot", staleness_panel(example), elem_id="staleness")

    def _drift(self, example: RunRecord) -> None:
        self.observe = gr.Radio(
            list(OBSERVE),
            value=next(iter(OBSERVE)),
            label="Drift is measured in a second pass over the prompt, without a cache, committing",
            elem_id="observe",
        )
        with gr.Row(elem_classes="es-pair"):
            with gr.Column(min_width=320):
                self.scatter = panel("plot", scatter_panel(example), elem_id="scatter")
            with gr.Column(min_width=320):
                self.volatility = panel("plot", volatility_panel(example), elem_id="volatility")

    def _whatif(self, example: RunRecord) -> None:
        with gr.Row(elem_id="whatif-settings"):
            self.tau = gr.Slider(
                0, MAX_TAU, DEFAULT_TAU, step=0.05, label="τ (nats)", elem_id="whatif-tau", min_width=240
            )
            self.never = gr.Checkbox(
                False, label="τ = inf: never by entropy", elem_id="whatif-never", min_width=200
            )
            self.k = gr.Slider(
                0, MAX_K, DEFAULT_K, step=1, label="k, recent tokens", elem_id="whatif-k", min_width=240
            )
            self.run_projected = gr.Button("Run it with these", elem_id="whatif-run", size="sm")
        self.whatif = panel(
            "plot", whatif_panel(example, DEFAULT_TAU, DEFAULT_K, example=True), elem_id="whatif"
        )

    def watched(self) -> dict[Any, Callable[[RunRecord], Any]]:
        """The figures of the pass without a cache, and how they are drawn."""
        return {
            self.scatter: scatter_panel,
            self.volatility: volatility_panel,
            self.layers: layers_panel,
            self.tokens: tokens_panel,
            self.signals: signals_panel,
        }

    def afterwards(self) -> dict[Any, Callable[[RunRecord], Any]]:
        """What is drawn once a run is over, and how."""
        return {
            self.map: map_panel,
            self.layers: layers_panel,
            self.tokens: tokens_panel,
            self.signals: signals_panel,
            self.staleness: staleness_panel,
            self.tau: lambda record: _tau_slider(whatif_settings(record)[0]),
            self.never: lambda record: whatif_settings(record)[0] == math.inf,
            self.k: lambda record: _k_slider(whatif_settings(record)[1]),
            self.whatif: lambda record: whatif_panel(record, *whatif_settings(record)),
        }


def whatif_settings(record: RunRecord) -> tuple[float, int]:
    """What the projection starts from: the run's own tau and k, whatever they are."""
    tau, k = policy_setting(record, "entropy_threshold"), policy_setting(record, "recent")
    return DEFAULT_TAU if tau is None else float(tau), DEFAULT_K if k is None else int(k)


def chosen_tau(tau: float, never: bool) -> float:
    """The threshold that slider and tick stand for together."""
    return math.inf if never else float(tau)


def _tau_slider(tau: float) -> gr.Slider:
    """It reaches as far as the run's own tau; inf, for which it has no place, is ticked beside it."""
    # Below 0 every step is full, however far below.
    shown = MAX_TAU if tau == math.inf else max(tau, ALWAYS)
    return gr.Slider(value=shown, minimum=min(0.0, shown), maximum=max(MAX_TAU, shown))


def _k_slider(k: int) -> gr.Slider:
    return gr.Slider(value=k, maximum=max(MAX_K, k))
