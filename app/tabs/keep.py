"""Keep and share: the runs of this visit, files in and out, a link to the settings."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import gradio as gr

from analysis.wording import counted
from app.bundle import write_bundle
from app.cards import model_name
from app.history import history, picked
from app.job import Job
from app.links import FormValues, forms_of, has_settings, model_of, query_of
from app.models import EMBEDDED_REF
from app.opened import forms_of_record, opened_record, read_trace
from app.panels import panel
from app.perform import Moment
from app.pictures import write_pictures
from app.runs import RunRecord
from app.screen import Parts, Screen, Updates, status
from app.tabs.controls import AT_ONCE, UNSEEN, Controls
from app.visitors import visitor_of
from app.workshop import Workshop

# The browser opens what the server has just made, as if its link had been pressed.
FOLLOW = "() => document.querySelector('#bundle a, a#bundle, button#bundle')?.click()"
# A browser of the server's is at work for some seconds: one at a time.
ON_ITS_OWN: dict[str, Any] = {"concurrency_limit": 1, **UNSEEN}
# Gradio tells the page that a state has changed only where the event has gone through its queue.
IN_TURN: dict[str, Any] = {"concurrency_limit": None, **UNSEEN}
COPY = """(link) => {
  navigator.clipboard?.writeText(link).catch(() => {});
  setTimeout(() => document.getElementById("link")?.scrollIntoView({ block: "nearest" }), 100);
}"""


class Keep:
    """An accordion in the controls' column, built into the current context."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        with gr.Accordion("Keep and share", open=False, elem_id="keep-fold"):
            self.history = panel("history", [], elem_id="history")
            with gr.Row(elem_classes="es-buttons"):
                self.download = gr.Button("Download zip", size="sm", elem_id="download", min_width=80)
                self.upload = gr.UploadButton(
                    "Open trace.json", file_types=[".json"], size="sm", elem_id="open-trace", min_width=80
                )
                self.draw = gr.Button("PNG and PDF", size="sm", elem_id="pictures", min_width=80)
            self.bundle = gr.DownloadButton("zip", elem_id="bundle", elem_classes="es-unseen")
            self.copy = gr.Button("Copy link to these settings", size="sm", elem_id="copy-link")
            self.link = gr.Textbox(
                label="Link", interactive=False, elem_id="link", visible="hidden", max_lines=3
            )

    def wire(self, page: gr.Blocks, controls: Controls, parts: Parts, inputs: list[Any]) -> None:
        """Connect to the rest of the page. inputs: what Job.read takes, in its order."""
        self.parts = parts
        bundled = self.download.click(self._bundle, parts.shown, [parts.status, self.bundle], **AT_ONCE)
        bundled.success(None, None, None, js=FOLLOW)
        drawn = self.draw.click(self._pictures, parts.shown, [parts.status, self.bundle], **ON_ITS_OWN)
        drawn.success(None, None, None, js=FOLLOW)
        self.history.click(self._show, None, parts.all(), **IN_TURN)
        linked = self.copy.click(self._link, inputs, [parts.status, self.link], **AT_ONCE)
        linked.success(None, self.link, None, js=COPY)
        self.forms = {
            "prompt": controls.prompt,
            "policy": controls.policy,
            "settings": controls.settings,
            "lanes": controls.lanes,
            "generation": controls.generation,
            "observe": inputs[-2],
        }
        filled = [part for name, part in self.forms.items() if name != "observe"]
        self.upload.upload(self._open, [self.upload, inputs[-1]], [*parts.all(), *filled], **IN_TURN)
        page.load(self._follow_link, controls.prompt, [parts.status, *self.forms.values()], **AT_ONCE)

    def listed(self, visitor: str) -> str:
        """The history panel's value."""
        return json.dumps(history(self.workshop.runs.of(visitor)))

    def _bundle(self, shown: int, request: gr.Request) -> Iterator[Updates]:
        record = self.workshop.runs.on_show(visitor_of(request), shown)
        if record is None:
            text = "error: there is no run of yours to download; press Run first"
            yield {self.parts.status: status(text), self.bundle: None}
            return
        # Gradio takes a copy of what it is given, and removes that one after an hour.
        with tempfile.TemporaryDirectory() as folder:
            path = write_bundle(record, self.workshop.texts_of, Path(folder))
            yield {self.parts.status: status(f"done: {path.name} is ready"), self.bundle: str(path)}

    def _pictures(self, shown: int, request: gr.Request) -> Iterator[Updates]:
        record = self.workshop.runs.on_show(visitor_of(request), shown)
        if record is None:
            text = "error: there is no run of yours to draw; press Run first"
            yield {self.parts.status: status(text), self.bundle: None}
            return
        yield {self.parts.status: status("running: drawing every figure as PNG and PDF")}
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = write_pictures(record, Path(folder))
            except ValueError as error:
                hint = "the PNG and SVG buttons of each figure need neither"
                yield {self.parts.status: status(f"error: {error}; {hint}"), self.bundle: None}
                return
            yield {self.parts.status: status(f"done: {path.name} is ready"), self.bundle: str(path)}

    def _open(self, file: str | None, model: str, request: gr.Request) -> Updates:
        """Show a file's trace, and fill in the forms with what it was decoded with."""
        if file is None:
            return {self.parts.status: status("error: no file was given")}
        visitor = visitor_of(request)
        try:
            # Taken first: who leaves while the file is read wants nothing kept of it.
            order = self.workshop.runs.new_order()
            trace, count = read_trace(file)
            known = self.workshop.shelf.held(str(trace.model["ref"]))
            takes_ids = known is not None and known.tokenizer is None
            number = self.workshop.runs.new_number(visitor)
            record = opened_record(trace, f"opened-{number}", order, takes_ids)
        except (ValueError, OSError) as error:
            return {self.parts.status: status(f"error: {error}")}
        self.workshop.runs.keep(visitor, record)
        which = f", the first of {count} traces, one a line of the file" if count > 1 else ""
        forms, told = forms_of_record(record)
        text = f"done: opened {counted(len(trace.steps), 'step')} of {record.lanes[0].label}{which}; {told}"
        if record.job.model != model:
            text += f"; its model is {model_name(record.job.model)}, see Models"
        filled = {self.forms[name]: value for name, value in forms.items()}
        return {**filled, **self._on_show(record, text)}

    def _show(self, event: gr.EventData, request: gr.Request) -> Updates:
        visitor = visitor_of(request)
        try:
            record = picked(self.workshop.runs, visitor, getattr(event, "picks", None))
        except ValueError as error:
            return {self.parts.status: status(f"error: {error}")}
        self.workshop.runs.keep(visitor, record)
        return self._on_show(record, f"done: {counted(len(record.lanes), 'kept run')} on show")

    def _on_show(self, record: RunRecord, text: str) -> Updates:
        screen = Screen(record, self.workshop.texts_of, self.parts)
        shown = Moment("done", text, grid=True, figures=True, observation=True, last=True)
        return screen.updates(shown)

    def _link(
        self,
        prompt: str,
        policy: str,
        lanes: str,
        generation: str,
        observe: str,
        model: str,
        request: gr.Request,
    ) -> Updates:
        try:
            query = query_of(Job.read(prompt, policy, lanes, generation, observe, model))
        except ValueError as error:
            return {self.parts.status: status(f"error: {error}")}
        link = gr.update(value=f"{page_address(request, self.workshop.space)}?{query}", visible=True)
        return {self.parts.status: status("done: the link is copied, and shown below"), self.link: link}

    def _follow_link(self, prompt: str, request: gr.Request) -> Updates:
        query = dict(request.query_params)
        if not has_settings(query):
            return {self.parts.status: gr.skip()}
        try:
            forms = forms_of(query, prompt)
        except ValueError as error:
            return {self.parts.status: status(f"error: link: {error}")}
        filled = {self.forms[field.name]: getattr(forms, field.name) for field in fields(FormValues)}
        model = model_of(query)
        there = model == EMBEDDED_REF or self.workshop.shelf.holds(model)
        text = "press Run" if there else "its model is not loaded, see Models"
        return {**filled, self.parts.status: status(f"ready: settings from the link; {text}")}


def page_address(request: gr.Request, space: str | None) -> str:
    """Where the visitor's browser has this page: a Space's own address, not that of the frame it is in."""
    if space:
        return f"https://huggingface.co/spaces/{space}"
    referer = str(request.headers.get("referer") or request.headers.get("origin") or "")
    return referer.split("?")[0] or "/"
