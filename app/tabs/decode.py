"""The decode tab: a prompt and policies in, tokens as they appear, figures of the run."""

import json
import random
from collections.abc import Iterator
from typing import Any

import gradio as gr

from app.cards import cards
from app.examples import recorded_example
from app.figures import scatter_panel, timeline_panel, volatility_panel
from app.forms import defaults, generation_spec, policy_spec
from app.frames import FrameFeed
from app.job import OBSERVE, Job
from app.pacing import GRID_HZ, PLOTS_HZ, Pace
from app.panels import Cards, LaneEditor, PlotPanel, PolicyForm, SettingsForm, StatusLine, TokenGrid
from app.perform import Moment, perform
from app.problems import Problems
from app.runs import RunRecord
from app.workshop import Workshop
from core import POLICIES, GenerationConfig

DEFAULT_POLICY = "entropy"
Updates = dict[Any, Any]


class DecodeTab:
    """Builds the tab inside the current Blocks context and wires it to a workshop."""

    def __init__(self, workshop: Workshop, problems: Problems) -> None:
        self.workshop, self.problems = workshop, problems
        with gr.Row(elem_id="decode"):
            with gr.Column(scale=0, min_width=320, elem_id="controls"):
                self._controls()
            with gr.Column(scale=1, min_width=320, elem_id="results"):
                self._results()
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
            self.settings = PolicyForm(policy_value(DEFAULT_POLICY), elem_id="policy-settings", spec=policy_spec())
        self.lanes = LaneEditor([], elem_id="lanes", spec=policy_spec())
        with gr.Row(elem_id="buttons"):
            self.run = gr.Button("Run", variant="primary", elem_id="run", min_width=80)
            self.stop = gr.Button("Stop", elem_id="stop", min_width=80)
        self.status = StatusLine({"text": "ready: press Run to decode live"}, elem_id="status")
        with gr.Accordion("Generation settings", open=False, elem_id="generation-fold"):
            self.generation = SettingsForm(
                defaults(GenerationConfig), elem_id="generation", spec=generation_spec()
            )
        self.run_id = gr.State("")

    def _results(self) -> None:
        example = recorded_example()
        self.cards = Cards(cards(example.record, example=True), elem_id="cards")
        self.grid = TokenGrid(example.frame, elem_id="grid")
        self.timeline = PlotPanel(elem_id="timeline")
        self.timeline.value = timeline_panel(example.record, example=True)
        self.observe = gr.Radio(
            list(OBSERVE),
            value=next(iter(OBSERVE)),
            label="The two figures below watch the prompt decoded once more, without a cache, committing",
            elem_id="observe",
        )
        with gr.Row(elem_classes="es-pair"):
            with gr.Column(min_width=320):
                self.scatter = PlotPanel(elem_id="scatter")
                self.scatter.value = scatter_panel(example.record)
            with gr.Column(min_width=320):
                self.volatility = PlotPanel(elem_id="volatility")
                self.volatility.value = volatility_panel(example.record)

    def _wire(self) -> None:
        inputs = [self.prompt, self.settings, self.lanes, self.generation, self.observe]
        outputs = [self.status, self.grid, self.cards, self.timeline, self.scatter, self.volatility, self.run_id]
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        self.run.click(
            self._run, inputs, outputs, concurrency_limit=None, scroll_to_output=False, **quiet
        )
        self.stop.click(self._stop, None, None, queue=False, **quiet)
        self.policy.change(policy_value_json, self.policy, self.settings, queue=False, **quiet)
        for family, button in self.suggestions.items():
            button.click(
                lambda family=family: self.problems.another(family, random), None, self.prompt, queue=False, **quiet
            )

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
        screen = Screen(self, record)
        ticket = self.workshop.turns.join(visitor)
        try:
            for moment in perform(self.workshop, record, ticket):
                updates = screen.updates(moment)
                if updates:
                    yield updates
        except ValueError as error:
            yield {self.status: status(f"error: {error}")}
        if record.traces:
            self.workshop.runs.keep(visitor, record)


class Screen:
    """What of the page to redraw, and how often, as one run goes on."""

    def __init__(self, tab: DecodeTab, record: RunRecord) -> None:
        self.tab, self.record = tab, record
        self.feed = FrameFeed(record, tab.workshop.token_text)
        self.grid, self.figures, self.watch, self.text = Pace(GRID_HZ), Pace(PLOTS_HZ), Pace(PLOTS_HZ), Pace(GRID_HZ)
        self.told = ""

    def updates(self, moment: Moment) -> Updates:
        """The components to change now. The last moment brings everything, complete."""
        tab, record, now = self.tab, self.record, moment.last or moment.flush
        out: Updates = {}
        if moment.text != self.told and (now or self.text.due()):
            out[tab.status] = status(moment.text)
            self.told = moment.text
        if record.traces and moment.grid and (now or self.grid.due()):
            out[tab.grid] = json.dumps(self.feed.frame(moment.state, whole=moment.last))
        if record.traces and moment.figures and (now or self.figures.due()):
            out[tab.cards] = json.dumps(cards(record))
            out[tab.timeline] = timeline_panel(record)
        if moment.observation and (now or self.watch.due()):
            out[tab.scatter] = scatter_panel(record)
            out[tab.volatility] = volatility_panel(record)
        if moment.last:
            out[tab.run_id] = record.run_id
        return out


def visitor_of(request: gr.Request | None) -> str:
    """One browser tab's name for as long as it is open."""
    return str(request.session_hash) if request is not None else "local"


def status(text: str) -> str:
    return json.dumps({"text": text})


def policy_value(name: str) -> dict[str, Any]:
    """A policy form's value with the policy's defaults."""
    return {"policy": name, "config": defaults(POLICIES[name].Config)}


def policy_value_json(name: str) -> str:
    return json.dumps(policy_value(name))
