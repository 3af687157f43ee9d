"""The controls beside every run: prompt, policies, Run and Stop, status, generation settings."""

import json
from functools import partial
from typing import Any

import gradio as gr

from app.forms import defaults, generation_spec, policy_spec
from app.panels import panel
from app.problems import Problems
from core import POLICIES, GenerationConfig

DEFAULT_POLICY = "entropy"
READY = "ready: press Run, or Ctrl+Enter, to decode live"
# Progress is told by our own status lines. With every message Gradio would else write it into all outputs of
# all events so far and copy their values to do so, which takes a browser longer than to draw the tokens.
UNSEEN: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
# A handler that only fills in a form: no place in the line, no overlay, no endpoint.
AT_ONCE: dict[str, Any] = {"queue": False, **UNSEEN}


class Controls:
    """The left column, built into the current context."""

    def __init__(self, problems: Problems, prompt: str) -> None:
        self.prompt = gr.Textbox(value=prompt, label="Prompt", lines=4, max_lines=12, elem_id="prompt")
        with gr.Row(elem_classes="es-try"):
            gr.HTML("try", elem_classes="es-try-label", apply_default_css=False)
            suggestions = {
                family: gr.Button(f"{family} ↻", size="sm", elem_classes="es-suggest", min_width=40)
                for family in problems.families
            }
        spec = policy_spec()
        with gr.Group():
            self.policy = gr.Dropdown(
                list(POLICIES), value=DEFAULT_POLICY, label="Cache policy", elem_id="policy", filterable=False
            )
            value = policy_value(DEFAULT_POLICY)
            self.settings = panel("policy", value, elem_id="policy-settings", spec=spec)
        self.lanes = panel("lanes", [], elem_id="lanes", spec=spec)
        with gr.Column(elem_id="go"):
            with gr.Row(elem_id="buttons"):
                self.run = gr.Button("Run", variant="primary", elem_id="run", min_width=80)
                self.stop = gr.Button("Stop", elem_id="stop", min_width=80)
            self.status = panel("status", {"text": READY}, elem_id="status")
        with gr.Accordion("Generation settings", open=False, elem_id="generation-fold"):
            entries = defaults(GenerationConfig)
            self.generation = panel("settings", entries, elem_id="generation", spec=generation_spec())
        # Only a visitor's own choice resets the form: a shared link fills in both.
        self.policy.input(policy_json, self.policy, self.settings, **AT_ONCE)
        for family, button in suggestions.items():
            button.click(partial(problems.another, family), None, self.prompt, **AT_ONCE)


def policy_value(name: str, **config: Any) -> dict[str, Any]:
    """A policy form's value: the policy's defaults, but for what is given."""
    return {"policy": name, "config": {**defaults(POLICIES[name].Config), **config}}


def policy_json(name: str) -> str:
    return json.dumps(policy_value(name))
