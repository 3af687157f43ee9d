"""The page's typed endpoints: run, compare and policies, for programs."""

from typing import Any

import gradio as gr

from app.cards import cards
from app.forms import policy_spec
from app.job import MAX_LANES, Job
from app.links import forms_of
from app.perform import perform
from app.runs import RunRecord
from app.tabs.decode import one_prompt
from app.visitors import visitor_of
from app.workshop import Workshop

Settings = dict[str, Any] | None


def add_endpoints(workshop: Workshop) -> None:
    """Declare the endpoints in the current Blocks context."""

    def policies() -> dict[str, Any]:
        """Every cache policy with what it does and its settings, their defaults and meanings."""
        return policy_spec()["policies"]

    def run(
        prompt: str, policy: str = "entropy", generation: Settings = None, request: gr.Request | None = None
    ) -> dict[str, Any]:
        """Decode a prompt with one policy; returns the trace (schema 1).

        policy: name or name:setting=value,setting=value. generation: decoding settings that differ from
        the defaults, by name.
        """
        record = _performed(workshop, prompt, [policy], generation, request)
        return record.traces[0].to_json()

    def compare(
        prompt: str, policies: list[str], generation: Settings = None, request: gr.Request | None = None
    ) -> dict[str, Any]:
        """Decode a prompt with one to four policies in turn; returns figures and traces in their order.

        policies: each as in `run`. generation: as in `run`.
        """
        record = _performed(workshop, prompt, policies, generation, request)
        return {**cards(record, still=True), "traces": [trace.to_json() for trace in record.traces]}

    for endpoint in (policies, run, compare):
        gr.api(endpoint, api_name=endpoint.__name__, concurrency_limit=None)


def _performed(
    workshop: Workshop, prompt: str, policies: list[str], generation: Settings, request: gr.Request | None
) -> RunRecord:
    try:
        if not 1 <= len(policies) <= MAX_LANES:
            raise ValueError(f"policies are {len(policies)}; allowed: 1 to {MAX_LANES}")
        query = {key: str(value) for key, value in (generation or {}).items()}
        known = forms_of(
            {**query, "policy": policies[0], "with": "|".join(policies[1:]), "observe": "off"}, ""
        )
        job = Job.read(prompt, known.settings, known.lanes, known.generation, known.observe)
        record = workshop.runs.new(job)
        for _ in perform(workshop, record, workshop.turns.join(visitor_of(request))):
            pass
    except ValueError as error:
        raise gr.Error(one_prompt(error), print_exception=False) from error
    return record
