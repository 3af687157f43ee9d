"""Runs made to be looked at: a prompt decoded without a cache while its value vectors are watched."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analysis.probes import ValueDriftProbe
from analysis.recorder import TraceRecorder
from analysis.trace import Trace
from core import GenerationConfig, LanguageModel, RunStarted, create_policy, stream


def one_token_a_step(generation: GenerationConfig) -> GenerationConfig:
    """The same settings, committing one token a step: the slowest and least confounded decoding."""
    return replace(generation, unmask="quota", steps=generation.gen_length)


def observe_no_cache(
    model: LanguageModel,
    prompt: str | Sequence[int],
    generation: GenerationConfig,
    one_token: bool = True,
) -> Iterator[Trace]:
    """Decode a prompt without a cache, drift measured; yields the trace so far after every step.

    This is the paper's setting: every position is refreshed every step, so drift is that between
    consecutive steps. one_token: commit one token a step instead of by the run's own rule, since the
    number of tokens committed drives drift by itself. Raises ValueError for input that can't run.
    """
    chosen = one_token_a_step(generation) if one_token else generation
    recorder = TraceRecorder(decode=lambda ids: model.decode(ids) or "")
    for event in stream(model, [prompt], chosen, create_policy("none"), [ValueDriftProbe()]):
        recorder.observe(event)
        if not isinstance(event, RunStarted):
            yield recorder.trace()


def no_cache_trace(
    model: LanguageModel,
    prompt: str | Sequence[int],
    generation: GenerationConfig,
    one_token: bool = True,
) -> Trace:
    """`observe_no_cache` to its end."""
    *_, trace = observe_no_cache(model, prompt, generation, one_token)
    return trace
