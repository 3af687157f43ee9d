"""The decode tab: a prompt and policies in, tokens as they appear, figures of the run."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr

from app.cards import cards
from app.examples import recorded_example
from app.figures import scatter_panel, timeline_panel, volatility_panel
from app.forms import defaults, generation_spec, policy_spec
from app.job import OBSERVE, Job
from app.panels import panel
from app.perform import perform
from app.screen import Parts, Screen, Updates, status
from app.speeds import measure_speeds
from app.workshop import Workshop
from core import POLICIES, GenerationConfig

DEFAULT_POLICY = "entropy"


class DecodeTab:
    """Builds the tab inside the current Blocks context and wires it to a workshop."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop, self.problems = workshop, workshop.problems
        with gr.Row(elem_id="decode"):
            with gr.Column(scale=0, min_width=320, elem_id="controls"):
                self._controls()
            with gr.Column(scale=1, min_width=320, elem_id="results"):
                self._results()
        self.parts = Parts(
            self.status, self.grid, self.cards, self.timeline, self.scatter, self.volatility, self.run_id
        )
        self._wire()

    def _controls(self) -> None:
        self.prompt = gr.Textbox(
            value=self.problems.first(), label="Prompt", lines=4, max_lines=12, elem_id="prompt"
        )
        with gr.Row(elem_classes="es-try"):
            gr.HTML("try", elem_classes="es-try-label", apply_default_css=False)
            self.suggestions = {
                family: gr.Button(f"{family} ↻", size="sm", elem_classes="es-suggest", min_width=40)
                for family in self.problems.families
            }
        with gr.Group():
            self.policy = gr.Dropdown(
                list(POLICIES), value=DEFAULT_POLICY, label="Cache policy", elem_id="policy", filterable=False
            )
            spec = policy_spec()
            self.settings = panel(
                "policy", policy_value(DEFAULT_POLICY), elem_id="policy-settings", spec=spec
            )
        self.lanes = panel("lanes", [], elem_id="lanes", spec=spec)
        with gr.Row(elem_id="buttons"):
            self.run = gr.Button("Run", variant="primary", elem_id="run", min_width=80)
            self.stop = gr.Button("Stop", elem_id="stop", min_width=80)
        self.status = panel("status", {"text": "ready: press Run to decode live"}, elem_id="status")
        with gr.Accordion("Generation settings", open=False, elem_id="generation-fold"):
            self.generation = panel(
                "settings", defaults(GenerationConfig), elem_id="generation", spec=generation_spec()
            )
        self.run_id = gr.State("")

    def _results(self) -> None:
        example = recorded_example()
        self.cards = panel("cards", cards(example.record, example=True), elem_id="cards")
        self.grid = panel("grid", example.frame, elem_id="grid")
        self.timeline = panel("plot", timeline_panel(example.record, example=True), elem_id="timeline")
        self.observe = gr.Radio(
            list(OBSERVE),
            value=next(iter(OBSERVE)),
            label="The two figures below watch the prompt decoded once more, without a cache, committing",
            elem_id="observe",
        )
        with gr.Row(elem_classes="es-pair"):
            with gr.Column(min_width=320):
                self.scatter = panel("plot", scatter_panel(example.record), elem_id="scatter")
            with gr.Column(min_width=320):
                self.volatility = panel("plot", volatility_panel(example.record), elem_id="volatility")

    def _wire(self) -> None:
        inputs = [self.prompt, self.settings, self.lanes, self.generation, self.observe]
        figures = [self.cards, self.timeline, self.scatter, self.volatility]
        outputs = [self.status, self.grid, *figures, self.run_id]
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        # Everybody waits in our own line, which tells their place and lets them leave it.
        own_line = {"concurrency_limit": None, **quiet}
        self.run.click(self._run, inputs, outputs, **own_line)
        self.cards.click(self._measure, self.run_id, [self.status, self.cards], **own_line)
        self.stop.click(self._stop, None, None, queue=False, **quiet)
        self.policy.change(policy_value_json, self.policy, self.settings, queue=False, **quiet)
        for family, button in self.suggestions.items():
            another = partial(self.problems.another, family)
            button.click(another, None, self.prompt, queue=False, **quiet)

    def _stop(self, request: gr.Request) -> None:
        self.workshop.turns.stop(visitor_of(request))

    def _run(
        self, prompt: str, policy: str, lanes: str, generation: str, observe: str, request: gr.Request
    ) -> Iterator[Updates]:
        try:
            job = Job.read(prompt, policy, lanes, generation, observe)
        except ValueError as error:
            yield {self.status: status(f"error: {error}")}
            return
        visitor = visitor_of(request)
        record = self.workshop.runs.new(job)
        screen = Screen(record, self.workshop.token_text, self.parts)
        ticket = self.workshop.turns.join(visitor)
        try:
            for moment in perform(self.workshop, record, ticket):
                updates = screen.updates(moment)
                if updates:
                    yield updates
        except ValueError as error:
            yield {self.status: status(f"error: {one_prompt(error)}")}
        if record.traces:
            self.workshop.runs.keep(visitor, record)

    def _measure(self, run_id: str, request: gr.Request) -> Iterator[Updates]:
        visitor = visitor_of(request)
        record = self.workshop.runs.find(visitor, run_id)
        if record is None:
            yield {self.status: status("error: this run is no longer kept; press Run again to measure it")}
            return
        ticket = self.workshop.turns.join(visitor)
        for moment in measure_speeds(self.workshop, record, ticket):
            yield {self.status: status(moment.text)}
        yield {self.cards: json.dumps(cards(record))}


def one_prompt(error: ValueError) -> str:
    """The engine's words on a list of prompts, for the one prompt of the page."""
    return str(error).removeprefix("prompt 0: ").replace("prompt 0 ", "the prompt ")


def visitor_of(request: gr.Request | None) -> str:
    """One browser tab's name for as long as it is open."""
    return str(request.session_hash) if request is not None else "local"


def policy_value(name: str) -> dict[str, Any]:
    """A policy form's value with the policy's defaults."""
    return {"policy": name, "config": defaults(POLICIES[name].Config)}


def policy_value_json(name: str) -> str:
    return json.dumps(policy_value(name))
