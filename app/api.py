"""The page's typed endpoints, for programs and, where MCP is switched on, for assistants as tools."""

from typing import Any

import gradio as gr

from app.cards import cards
from app.catalog import CATALOG
from app.forms import policy_spec
from app.job import MAX_LANES, Job
from app.links import lane_form
from app.models import EMBEDDED_REF
from app.perform import one_prompt, perform
from app.runs import RunRecord
from app.visitors import visitor_of
from app.workshop import Workshop

Settings = dict[str, Any] | None


def add_endpoints(workshop: Workshop) -> None:
    """Declare the endpoints in the current Blocks context. Gradio reads their docstrings' Args."""

    def policies() -> dict[str, Any]:
        """Every KV cache policy with what it does and its settings, their defaults and meanings."""
        return policy_spec()["policies"]

    def models() -> list[dict[str, Any]]:
        """The masked diffusion language models that are offered here, and which are in memory."""
        offered = workshop.shelf.allowed or CATALOG
        return [{"model": ref, "loaded": workshop.shelf.holds(ref)} for ref in offered]

    def run(
        prompt: str,
        policy: str = "entropy",
        generation: Settings = None,
        model: str = EMBEDDED_REF,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Decode a prompt with one KV cache policy; gives the trace of every step (schema 1).

        Args:
            prompt: What the model is to answer.
            policy: A policy's name, or name:setting=value,setting=value.
            generation: Decoding settings that differ from the defaults, by name, as {"gen_length": 64}.
            model: The model that answers, by the name that `models` gives it; loaded first if it fits.
        """
        record = _performed(workshop, prompt, [policy], generation, model, request)
        return record.traces[0].to_json()

    def compare(
        prompt: str,
        policies: list[str],
        generation: Settings = None,
        model: str = EMBEDDED_REF,
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Decode a prompt with one to four KV cache policies in turn; gives figures and traces in that order.

        Args:
            prompt: What the model is to answer.
            policies: One to four policies, each a name or name:setting=value,setting=value.
            generation: Decoding settings that differ from the defaults, by name, as {"gen_length": 64}.
            model: The model that answers, by the name that `models` gives it; loaded first if it fits.
        """
        record = _performed(workshop, prompt, policies, generation, model, request)
        return {**cards(record, still=True), "traces": [trace.to_json() for trace in record.traces]}

    for endpoint in (policies, models, run, compare):
        gr.api(endpoint, api_name=endpoint.__name__, concurrency_limit=None)


def _performed(
    workshop: Workshop,
    prompt: str,
    policies: list[str],
    generation: Settings,
    model: str,
    request: gr.Request | None,
) -> RunRecord:
    try:
        # Gradio hands on whatever JSON it was sent.
        if not isinstance(policies, list) or not all(isinstance(policy, str) for policy in policies):
            raise ValueError("policies are no list of texts; allowed: names, or name:setting=value")
        for name, value in (("prompt", prompt), ("model", model)):
            if not isinstance(value, str):
                raise ValueError(f"{name} is {value!r}; allowed: a text")
        if not 1 <= len(policies) <= MAX_LANES:
            raise ValueError(f"policies are {len(policies)}; allowed: 1 to {MAX_LANES}")
        first, *others = [lane_form(policy) for policy in policies]
        job = Job.read(prompt, first, others, generation or {}, "not at all", model)
        workshop.shelf.check(model)
        record = workshop.runs.new(job)
        for _ in perform(workshop, record, workshop.turns.join(visitor_of(request))):
            pass
    except ValueError as error:
        raise gr.Error(one_prompt(error), print_exception=False) from error
    return record
