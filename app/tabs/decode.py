"""The decode tab: a prompt and policies in, tokens as they appear, figures and explanations of the run."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from app.cards import cards
from app.drift import measure_drift
from app.examples import recorded_example
from app.explain import measure_staleness, staleness_panel, whatif_panel
from app.figures import timeline_panel
from app.forms import entered
from app.going import begin
from app.job import OBSERVE, Job
from app.panels import panel
from app.perform import Moment, one_prompt
from app.runs import RunRecord
from app.screen import Parts, Screen, Updates, cards_value, status
from app.speeds import measure_speeds
from app.tabs.controls import AT_ONCE, UNSEEN, Controls, policy_value
from app.tabs.explain import Explanations, chosen_tau
from app.tabs.keep import Keep
from app.turns import Ticket
from app.visitors import visitor_of
from app.workshop import Workshop

# What this tab stops: a search of the same visitor goes on.
ERRAND = "decode"
# Everybody waits in our own line, which tells their place and lets them leave it.
OWN_LINE: dict[str, Any] = {"concurrency_limit": None, **UNSEEN}
LOST = "stopped: the connection was lost, and nothing of yours is running; what is shown is kept"
Measure = Callable[[Workshop, RunRecord, Ticket], Iterator[Moment]]


class DecodeTab:
    """Builds the tab inside the current Blocks context and wires it to a workshop.

    model: the state that holds the visitor's model.
    """

    def __init__(self, workshop: Workshop, page: gr.Blocks, model: Any) -> None:
        self.workshop, self.model = workshop, model
        example = recorded_example()
        with gr.Row(elem_id="decode"):
            with gr.Column(scale=0, min_width=320, elem_id="controls"):
                self.controls = Controls(workshop.problems, example.record.job.prompt)
                self.keep = Keep(workshop)
            with gr.Column(scale=1, min_width=320, elem_id="results"):
                self.cards = panel("cards", cards(example.record, example=True), elem_id="cards")
                self.grid = panel("grid", example.frame, elem_id="grid")
                timeline = timeline_panel(example.record, example=True)
                self.timeline = panel("plot", timeline, elem_id="timeline")
                self.explain = Explanations(example.record)
        # Its change is what has the figures of a run drawn, wherever the run comes from.
        self.shown = gr.State(0)
        self.parts = Parts(
            status=self.controls.status,
            grid=self.grid,
            cards=self.cards,
            timeline=self.timeline,
            scatter=self.explain.scatter,
            volatility=self.explain.volatility,
            shown=self.shown,
        )
        self._wire(page)

    def _wire(self, page: gr.Blocks) -> None:
        controls, explain = self.controls, self.explain
        forms = [controls.prompt, controls.settings, controls.lanes, controls.generation]
        inputs = [*forms, explain.observe, self.model]
        self.keep.wire(page, controls, self.parts, inputs)
        outputs = self.parts.all()
        # The page itself holds back a press that comes while a run goes on, and says so.
        pressed = {**OWN_LINE, "trigger_mode": "multiple"}
        controls.run.click(self._run, inputs, outputs, **pressed)
        controls.stop.click(self._stop, None, None, **AT_ONCE)
        drawn = [*explain.afterwards(), self.keep.history]
        self.shown.change(self._draw, self.shown, drawn, **AT_ONCE)
        # Past Gradio's own stream, which may be the one that was lost.
        controls.status.click(self._look, None, [*outputs, *drawn], **AT_ONCE)
        speeds = partial(self._measure, measure_speeds, {self.cards: cards_value})
        self.cards.click(_generator(speeds), self.shown, [controls.status, self.cards], **OWN_LINE)
        stale = partial(self._measure, measure_staleness, {explain.staleness: staleness_panel})
        explain.staleness.click(
            _generator(stale), self.shown, [controls.status, explain.staleness], **OWN_LINE
        )
        watched = explain.watched()
        for figure in watched:
            figure.click(self._drift, [self.shown, explain.observe], [controls.status, *watched], **OWN_LINE)
        projected = [explain.tau, explain.never, explain.k]
        latest = {"trigger_mode": "always_last", **AT_ONCE}
        for entry in projected:
            entry.input(self._project, [self.shown, *projected], explain.whatif, **latest)
        chosen = explain.run_projected.click(
            _projected_policy, projected, [controls.policy, controls.settings], **AT_ONCE
        )
        chosen.then(self._run, inputs, outputs, **pressed)

    def _stop(self, request: gr.Request) -> None:
        self.workshop.turns.stop(visitor_of(request), ERRAND)

    def _run(
        self,
        prompt: str,
        policy: str,
        lanes: str,
        generation: str,
        observe: str,
        model: str,
        request: gr.Request,
    ) -> Iterator[Updates]:
        try:
            job = Job.read(prompt, policy, lanes, generation, observe, model)
        except ValueError as error:
            yield {self.parts.status: status(f"error: {error}")}
            return
        going = begin(self.workshop, job, visitor_of(request), ERRAND)
        screen = Screen(going.record, self.workshop.texts_of, self.parts)
        with closing(going.watched()) as moments:
            for moment in moments:
                updates = screen.updates(moment)
                if updates:
                    yield updates

    def _look(self, event: gr.EventData, request: gr.Request) -> Updates:
        """The run as it is, for a page whose connection was lost while it went on.

        The event says which run the page has seen the end of, by its order.
        """
        visitor = visitor_of(request)
        self.workshop.absence.end(visitor)
        going = self.workshop.going.get(visitor)
        if going is None or (going.over and going.record.order <= int(getattr(event, "seen", -1))):
            return {self.parts.status: status(LOST)}
        record, told = going.seen()
        whole = replace(told, grid=True, figures=True, observation=True, flush=True)
        updates = Screen(record, self.workshop.texts_of, self.parts).updates(whole)
        return {**updates, **self._draw(record.order, request)} if told.last else updates

    def _draw(self, shown: int, request: gr.Request) -> Updates:
        """What is drawn once a run is over. On an event of its own, so that the run's messages are small."""
        visitor = visitor_of(request)
        record = self.workshop.runs.on_show(visitor, shown)
        drawn = {part: draw(record) for part, draw in self.explain.afterwards().items()} if record else {}
        return {**drawn, self.keep.history: self.keep.listed(visitor)}

    def _measure(
        self,
        measure: Measure,
        parts: Mapping[Any, Callable[[RunRecord], Any]],
        shown: int,
        request: gr.Request,
    ) -> Iterator[Updates]:
        """Measure something more of a run that is kept, then draw the parts that show it."""
        visitor = visitor_of(request)
        record = self.workshop.runs.on_show(visitor, shown)
        if record is None:
            yield {self.parts.status: status("error: there is no run of yours to measure; press Run first")}
            return
        try:
            for moment in measure(self.workshop, record, self.workshop.turns.join(visitor, ERRAND)):
                drawn = {part: draw(record) for part, draw in parts.items()} if moment.last else {}
                yield {self.parts.status: status(moment.text), **drawn}
        except ValueError as error:
            yield {self.parts.status: status(f"error: {one_prompt(error)}")}

    def _drift(self, shown: int, observe: str, request: gr.Request) -> Iterator[Updates]:
        measure = partial(measure_drift, one_token=OBSERVE.get(observe) != "own")
        yield from self._measure(measure, self.explain.watched(), shown, request)

    def _project(self, shown: int, tau: float, never: bool, k: float, request: gr.Request) -> str:
        record, threshold = self.workshop.runs.on_show(visitor_of(request), shown), chosen_tau(tau, never)
        if record is None:
            return whatif_panel(recorded_example().record, threshold, int(k), example=True)
        return whatif_panel(record, threshold, int(k))


def _generator(
    handler: Callable[..., Iterator[Updates]],
) -> Callable[[int, gr.Request], Iterator[Updates]]:
    """A generator function of it, which Gradio can tell from a plain one, unlike a partial."""

    def handle(shown: int, request: gr.Request) -> Iterator[Updates]:
        yield from handler(shown, request)

    return handle


def _projected_policy(tau: float, never: bool, k: float) -> tuple[str, str]:
    threshold = chosen_tau(tau, never)
    value = policy_value("entropy", entropy_threshold=entered(threshold), recent=entered(int(k)))
    return "entropy", json.dumps(value)
