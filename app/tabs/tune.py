"""The tune tab: the visitor's prompts in, the tau and k that suit them out."""

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pandas as pd

from analysis.tuning import KEEPS, OBJECTIVES, Goal, Tuning
from app.figures import plot_value
from app.forms import parse_json, read_all
from app.pacing import PLOTS_HZ, Pace
from app.panels import panel
from app.perform import one_prompt
from app.problems import Problems
from app.screen import Updates, status
from app.tabs.controls import AT_ONCE, Controls, policy_value
from app.tabs.decode import OWN_LINE
from app.tune import ERRAND, TuneJob, best_json, file_told, prompts_file, prompts_of, tune_in_turn
from app.tune_readings import FRONT, TUNE_MAP
from app.tune_shown import front_value, map_value, table_label, table_of, tuning_about, use_label
from app.visitors import visitor_of
from app.workshop import Workshop
from core import GenerationConfig

NUM_EXAMPLES = 8
TAUS, KS = "0.1, 0.5, 1, 2, inf", "8, 32, 64"
WORDS = """
Find the τ and k of EntropyCache that are cheapest on **your prompts** while keeping the answers. All
settings run on a few prompts, then the cheapest go on, prompt after prompt. One is given up when it loses
too much, or when another is cheaper. Everything is compared with the same decoding without a cache.
Decoding follows the *Generation settings* of the Decode tab.
"""
NOTHING = "Nothing measured yet: press Tune."


class TuneTab:
    """Builds the tab and wires it. controls: whose forms the result is put into; tabs: where to go then."""

    def __init__(self, workshop: Workshop, controls: Controls, model: Any, tabs: gr.Tabs) -> None:
        self.workshop = workshop
        gr.Markdown(WORDS)
        with gr.Row():
            with gr.Column(scale=0, min_width=320, elem_id="tune-controls"):
                inputs = self._entries(workshop.problems)
                with gr.Row(elem_classes="es-buttons"):
                    run = gr.Button("Tune", variant="primary", elem_id="tune-run", min_width=80)
                    stop = gr.Button("Stop", elem_id="tune-stop", min_width=80)
                self.status = panel("status", {"text": "ready: press Tune to search"}, elem_id="tune-status")
                self.use = gr.Button(use_label(None), elem_id="tune-use")
            with gr.Column(scale=1, min_width=320):
                empty = plot_value(TUNE_MAP, "", 0, empty=NOTHING)
                self.map = panel("plot", empty, elem_id="tune-map")
                empty = plot_value(FRONT, "", 0, empty=NOTHING)
                self.front = panel("plot", empty, elem_id="tune-front")
                self.table = gr.Dataframe(
                    interactive=False,
                    wrap=True,
                    # Shares, or a phone shows the first two only.
                    column_widths=["26%", "28%", "24%", "22%"],
                    visible=False,
                    elem_id="tune-table",
                )
        self.best = gr.State("")
        outputs = [self.status, self.map, self.front, self.table, self.best, self.use]
        run.click(self._run, [*inputs, controls.generation, model], outputs, **OWN_LINE)
        stop.click(self._stop, None, None, **AT_ONCE)
        shown = [self.status, controls.policy, controls.settings, tabs]
        self.use.click(self._use, self.best, shown, **AT_ONCE)

    def _entries(self, problems: Problems) -> list[Any]:
        """What the search asks for, in the order that `_run` takes it."""
        each = NUM_EXAMPLES // 2
        examples = [prompt for family in problems.families[:2] for prompt in problems.some(family, each)]
        budget = "Share of it that may be lost"
        prompts = gr.Textbox(
            "\n".join(examples), label="Prompts, one a line", lines=8, max_lines=16, elem_id="tune-prompts"
        )
        file = gr.File(label="or a JSONL file", file_types=[".jsonl"], elem_id="tune-file", height=140)
        file.change(_marked, file, prompts, **AT_ONCE)
        with gr.Row():
            taus = gr.Textbox(TAUS, label="τ to try", elem_id="tune-taus", min_width=120)
            ks = gr.Textbox(KS, label="k to try", elem_id="tune-ks", min_width=120)
        keep = gr.Radio(list(KEEPS), value=KEEPS[0], label="Keep", elem_id="tune-keep")
        lose = gr.Slider(0, 0.5, 0.05, step=0.01, label=budget, elem_id="tune-budget")
        save = gr.Radio(list(OBJECTIVES), value=OBJECTIVES[0], label="Save", elem_id="tune-save")
        return [prompts, file, taus, ks, keep, lose, save]

    def _stop(self, request: gr.Request) -> None:
        self.workshop.turns.stop(visitor_of(request), ERRAND)

    def _run(
        self,
        prompts: str,
        file: str | None,
        taus: str,
        ks: str,
        keep: str,
        budget: float,
        objective: str,
        generation: str,
        model: str,
        request: gr.Request,
    ) -> Iterator[Updates]:
        pace = Pace(PLOTS_HZ)
        try:
            given = prompts_file(file) if file else prompts_of(prompts, self.workshop.problems)
            base = GenerationConfig(**read_all(parse_json(generation, "generation"), "generation"))
            job = TuneJob.read(given, taus, ks, Goal(keep, float(budget), objective), base, model)
            for text, result in tune_in_turn(self.workshop, job, visitor_of(request)):
                over = not text.startswith("running")
                if over or pace.due():
                    drawn = self._drawn(job, result) if over or result.candidates else {}
                    yield {self.status: status(text), **drawn}
        except (ValueError, OSError) as error:
            yield {self.status: status(f"error: {one_prompt(error)}")}

    def _drawn(self, job: TuneJob, result: Tuning) -> Updates:
        table: pd.DataFrame = table_of(job, result)
        about = tuning_about(job, self.workshop.shelf.held(job.model))
        return {
            self.map: map_value(job, result, about),
            self.front: front_value(job, result, about),
            self.table: gr.update(value=table, label=table_label(result), visible=not table.empty),
            self.best: best_json(result),
            self.use: use_label(result),
        }

    def _use(self, best: str) -> tuple[Any, ...]:
        if not best:
            text = status("error: no setting is chosen yet; press Tune first")
            return text, gr.skip(), gr.skip(), gr.skip()
        value = json.dumps(policy_value("entropy", **json.loads(best)))
        text = status("done: the chosen setting is in the Decode tab")
        return text, "entropy", value, gr.Tabs(selected="decode")


def _marked(file: str | None) -> gr.Textbox:
    """The box of prompts, out of use while there is a file."""
    return gr.Textbox(info=file_told(file), interactive=not file)
