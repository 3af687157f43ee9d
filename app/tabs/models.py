"""The models tab: which model answers, what it would take, loading it."""

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from app.cards import model_name
from app.catalog import CATALOG, catalog_table
from app.links import model_of
from app.loading import load_in_turn
from app.models import BYTES, EMBEDDED_REF, asks_hub, estimate
from app.panels import panel
from app.perform import one_prompt
from app.screen import Updates, status
from app.tabs.controls import AT_ONCE
from app.tabs.decode import OWN_LINE
from app.visitors import visitor_of
from app.workshop import Workshop

WORDS = """
The **embedded** model comes with the page: a few million parameters, good at worked arithmetic, tiny
functions and scanning a small table, and nothing else. Masked diffusion models of the LLaDA,
Dream and A2D families can stand in its place, from a folder in Hugging Face layout or by hub id; weights are
read from safetensors and no code of theirs runs. On a Space only the listed ones are offered.
"""


class ModelsTab:
    """Builds the tab and wires it to the page and its tabs.

    corner: the panel that names the model; chosen: the state that holds the visitor's model.
    """

    def __init__(self, workshop: Workshop, page: gr.Blocks, tabs: gr.Tabs, corner: Any, chosen: Any) -> None:
        self.workshop, self.tabs, self.corner, self.chosen = workshop, tabs, corner, chosen
        with gr.Column(elem_classes="es-page"):
            gr.Markdown(WORDS)
            with gr.Row():
                self.ref = gr.Dropdown(
                    list(CATALOG),
                    value=CATALOG[0],
                    label="Model: listed, a folder, or a hub id",
                    allow_custom_value=workshop.shelf.allowed is None,
                    elem_id="model",
                    min_width=240,
                )
                self.dtype = gr.Dropdown(
                    ["auto", *BYTES], value="auto", label="dtype", elem_id="model-dtype", min_width=160
                )
            with gr.Row():
                ask = gr.Button("What would it take?", elem_id="model-estimate")
                load = gr.Button("Load and use", variant="primary", elem_id="model-load")
            self.status = panel(
                "status", {"text": "ready: the embedded model answers"}, elem_id="model-status"
            )
            self.sizes = gr.Markdown(elem_id="model-sizes")
        inputs = [self.ref, self.dtype]
        ask.click(self._estimate, inputs, self.status, **OWN_LINE)
        load.click(self._load, inputs, [self.status, self.corner, self.chosen], **OWN_LINE)
        # Asked anew with each page: how much is free changes.
        page.load(catalog_table, None, self.sizes, **AT_ONCE)
        linked = [self.ref, self.status, self.corner, self.chosen, self.tabs]
        page.load(self._follow_link, None, linked, **AT_ONCE)

    def _estimate(self, ref: str, dtype: str) -> Iterator[str]:
        ref = str(ref or "").strip()
        try:
            self.workshop.shelf.check(ref)
            if asks_hub(ref):
                yield status(f"running: asking the hub for {ref}")
            yield status(f"done: {estimate(ref, dtype).sentence(ref)}")
        except ValueError as error:
            yield status(f"error: {error}")

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
            yield self._use(ref)

    def _use(self, ref: str) -> Updates:
        return {self.corner: json.dumps({"text": model_line(self.workshop, ref)}), self.chosen: ref}

    def _follow_link(self, request: gr.Request) -> Updates:
        """Use the model of the page's address if it is in memory, else offer it: an address loads nothing."""
        ref = model_of(dict(request.query_params))
        if ref == EMBEDDED_REF:
            return {self.status: gr.skip()}
        shown = {self.ref: ref, self.tabs: gr.Tabs(selected="models")}
        try:
            self.workshop.shelf.check(ref)
        except ValueError as error:
            return {**shown, self.ref: gr.skip(), self.status: status(f"error: link: {error}")}
        if self.workshop.shelf.holds(ref):
            text = f"ready: the link's model {ref} is loaded and answers"
            return {self.ref: ref, self.status: status(text), **self._use(ref)}
        offer = "is not loaded; press Load and use, or decode with the embedded model"
        return {**shown, self.status: status(f"ready: the link's model {ref} {offer}")}


def model_line(workshop: Workshop, ref: str) -> str:
    """A held model in a few words."""
    facts = workshop.model(ref).facts()
    size = facts["num_parameters"] / 1e6
    number = f"{size:.2f} M" if size < 1000 else f"{size / 1000:.2f} B"
    where = f"{facts['dtype']} on {facts['device']}"
    return f"model {model_name(ref)}: {facts['family']}, {number} parameters, {where}"
