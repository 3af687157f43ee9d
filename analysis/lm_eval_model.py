"""DiffusionLM: a model under a cache policy as lm-eval sees it. Needs the optional package lm-eval."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval.api.model import LM  # type: ignore[import-not-found,unused-ignore]

from analysis.recorder import TraceRecorder
from analysis.settings import Setting
from core import GenerationConfig, LanguageModel, stream
from core.end_of_text import end_of_text


@dataclass
class Spent:
    """What all requests took together; tokens as in `Trace.num_useful_tokens`, seconds of the runs."""

    requests: int = 0
    truncated: int = 0
    tokens: int = 0
    steps: int = 0
    rows: float = 0.0
    canvas_rows: int = 0
    seconds: float = 0.0
    plan_seconds: float = 0.0

    def figures(self) -> dict[str, float | int | None]:
        """tokens_per_second of a whole batch, recompute_ratio and decision_overhead, and the counts."""
        return {
            "requests": self.requests,
            "truncated_prompts": self.truncated,
            "tokens": self.tokens,
            "steps": self.steps,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens / self.seconds if self.seconds else None,
            "recompute_ratio": self.rows / self.canvas_rows if self.canvas_rows else None,
            "decision_overhead": self.plan_seconds / self.seconds if self.seconds else None,
        }


class LikelihoodError(ValueError):
    """A task asks for log-likelihoods, which a diffusion model has none of."""


class DiffusionLM(LM):  # type: ignore[misc,unused-ignore]
    """Answers `generate_until`, `batch` prompts at a time. Tasks that score log-likelihoods are refused.

    chat: wrap each context in the model's chat template, where it has one; else it is text to continue.
    progress: gives the batches on, one by one, and shows how far they are.
    Contexts that are too long lose their beginning and are counted in `spent.truncated`.
    """

    def __init__(
        self,
        model: LanguageModel,
        setting: Setting,
        base: GenerationConfig,
        batch: int = 1,
        chat: bool = True,
        progress: Callable[[list[list[int]], str], Iterator[list[int]]] | None = None,
    ) -> None:
        super().__init__()
        if model.tokenizer is None:
            raise ValueError(f"model {model.ref} has no tokenizer; tasks are text")
        self.model, self.setting, self.config = model, setting, setting.decoding(base)
        self.text: Any = model.tokenizer
        self.batch, self.chat, self.progress = batch, chat, progress
        self.spent = Spent()

    def generate_until(self, requests: list[Any]) -> list[str]:
        """One continuation a request, cut before the first of its stop texts."""
        prompts = [self._encode(request.args[0]) for request in requests]
        # Prompts of like length share a batch, so that little of it is padding.
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        answers = [""] * len(prompts)
        chunks = [order[at : at + self.batch] for at in range(0, len(order), self.batch)]
        for chunk in self.progress(chunks, "requests") if self.progress else chunks:
            for index, text in zip(chunk, self._decode([prompts[i] for i in chunk]), strict=True):
                answers[index] = cut(text, requests[index].args[1].get("until", ()))
        return answers

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        raise LikelihoodError("the task scores log-likelihoods; allowed: tasks that generate")

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        raise LikelihoodError("the task scores log-likelihoods; allowed: tasks that generate")

    def _encode(self, context: str) -> list[int]:
        ids = self.model.encode(context) if self.chat else list(self.text.encode(context))
        room = self.model.spec.max_positions - self.config.gen_length
        self.spent.truncated += len(ids) > room
        return ids[-room:]

    def _decode(self, prompts: Sequence[list[int]]) -> list[str]:
        recorder = TraceRecorder()
        for event in stream(self.model, prompts, self.config, self.setting.make_policy()):
            recorder.observe(event)
        traces, spent = recorder.traces(), self.spent
        # Every slot's steps carry the seconds of the whole batch: the longest run has them all.
        longest = max(traces, key=lambda trace: len(trace.steps))
        spent.seconds += float(longest.totals["seconds"] or 0)
        spent.plan_seconds += sum(step.seconds["plan"] for step in longest.steps)
        spent.requests += len(traces)
        for trace in traces:
            spent.tokens += trace.num_useful_tokens
            spent.steps += len(trace.steps)
            spent.rows += sum(step.num_refreshed for step in trace.steps)
            spent.canvas_rows += len(trace.steps) * trace.canvas_length
        return [self._text(trace.tokens) for trace in traces]

    def _text(self, tokens: Sequence[int]) -> str:
        """Text up to the first end-of-text, outer blanks kept: code to be continued needs them."""
        kept = list(tokens[: end_of_text(tokens, self.model.spec.eos_token_ids)])
        return str(self.text.decode(kept, skip_special_tokens=True))


def cut(text: str, stops: str | Sequence[str]) -> str:
    """Text before the first of the stop texts that stands in it."""
    places = [text.find(stop) for stop in ([stops] if isinstance(stops, str) else stops) if stop]
    found = [place for place in places if place >= 0]
    return text[: min(found)] if found else text
