"""The models tab: which model answers, what it would take, loading it."""

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from app.cards import model_name
from app.loading import load_in_turn
from app.models import BYTES, CATALOG, estimate
from app.panels import panel
from app.screen import Updates, status
from app.tabs.controls import AT_ONCE
from app.tabs.decode import OWN_LINE, one_prompt
from app.visitors import visitor_of
from app.workshop import Workshop

WORDS = """
The **embedded** model comes with the page: a few million parameters, good at worked arithmetic and tiny
functions and nothing else. Masked diffusion models of the LLaDA, Dream and A2D families can stand in its
place, from a folder in Hugging Face layout or by hub id; weights are read from safetensors and no code of
theirs runs. On a Space only the listed ones are offered.
"""


class ModelsTab:
    """Builds the tab and wires it. corner: the panel that names the model; chosen: the visitor's model."""

    def __init__(self, workshop: Workshop, corner: Any, chosen: Any) -> None:
        self.workshop, self.corner, self.chosen = workshop, corner, chosen
        with gr.Column(elem_classes="es-page"):
            gr.Markdown(WORDS)
            with gr.Row():
                self.ref = gr.Dropdown(
                    list(CATALOG),
                    value=CATALOG[0],
                    label="Model: listed, a folder, or a hub id",
                    allow_custom_value=workshop.shelf.allowed is None,
                    elem_id="model",
                )
                self.dtype = gr.Dropdown(["auto", *BYTES], value="auto", label="dtype", elem_id="model-dtype")
            with gr.Row():
                ask = gr.Button("What would it take?", elem_id="model-estimate")
                load = gr.Button("Load and use", variant="primary", elem_id="model-load")
            self.status = panel(
                "status", {"text": "ready: the embedded model answers"}, elem_id="model-status"
            )
        inputs = [self.ref, self.dtype]
        ask.click(self._estimate, inputs, self.status, **AT_ONCE)
        load.click(self._load, inputs, [self.status, self.corner, self.chosen], **OWN_LINE)

    def _estimate(self, ref: str, dtype: str) -> str:
        try:
            self.workshop.shelf.check(ref)
            return status(f"done: {estimate(ref.strip(), dtype).sentence(ref)}")
        except ValueError as error:
            return status(f"error: {error}")

    def _load(self, ref: str, dtype: str, request: gr.Request) -> Iterator[Updates]:
        ref = str(ref or "").strip()
        ticket = self.workshop.turns.join(visitor_of(request))
        try:
            for moment in load_in_turn(self.workshop, ref, dtype, ticket):
                yield {self.status: status(moment.text)}
        except ValueError as error:
            yield {self.status: status(f"error: {one_prompt(error)}")}
            return
        if self.workshop.shelf.holds(ref):
            yield {self.corner: json.dumps({"text": model_line(self.workshop, ref)}), self.chosen: ref}


def model_line(workshop: Workshop, ref: str) -> str:
    """A held model in a few words."""
    facts = workshop.model(ref).facts()
    size = facts["num_parameters"] / 1e6
    number = f"{size:.2f} M" if size < 1000 else f"{size / 1000:.2f} B"
    where = f"{facts['dtype']} on {facts['device']}"
    return f"model {model_name(ref)}: {facts['family']}, {number} parameters, {where}"
