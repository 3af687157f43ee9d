"""One prompt decoded into a trace, with or without probes; the runs that analyses are made of."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from analysis.probes import ValueDriftProbe
from analysis.recorder import TraceRecorder
from analysis.trace import Trace
from core import CachePolicy, Event, GenerationConfig, LanguageModel, Probe, RunStarted, create_policy, stream

PromptContent = str | Sequence[int]


def one_token_a_step(generation: GenerationConfig) -> GenerationConfig:
    """The same settings, committing one token a step: the slowest and least confounded decoding.

    The very same where they do so anyway, so that nobody measures one decoding as two.
    """
    if generation.unmask == "quota" and generation.quota_steps == generation.gen_length:
        return generation
    return replace(generation, unmask="quota", steps=generation.gen_length)


def observe(
    model: LanguageModel,
    prompt: PromptContent,
    generation: GenerationConfig,
    policy: CachePolicy,
    probes: Sequence[Probe] = (),
) -> Iterator[Trace]:
    """Decode one prompt; yields the trace so far after every step and once more at the end.

    Raises ValueError, before any work, for input that can't run.
    """
    return traces(model, stream(model, [prompt], generation, policy, probes))


def traces(model: LanguageModel, events: Iterable[Event]) -> Iterator[Trace]:
    """The trace so far after every step of a stream of one prompt, and once more at the end."""
    recorder = _recorder(model)
    for event in events:
        recorder.observe(event)
        if not isinstance(event, RunStarted):
            yield recorder.trace()


def run_trace(
    model: LanguageModel,
    prompt: PromptContent,
    generation: GenerationConfig,
    policy: CachePolicy,
    probes: Sequence[Probe] = (),
) -> Trace:
    """The trace of one prompt decoded to its end."""
    recorder = _recorder(model)
    for event in stream(model, [prompt], generation, policy, probes):
        recorder.observe(event)
    return recorder.trace()


def _recorder(model: LanguageModel) -> TraceRecorder:
    return TraceRecorder(decode=lambda ids: model.decode(ids) or "")


def observe_no_cache(
    model: LanguageModel, prompt: PromptContent, generation: GenerationConfig, one_token: bool = True
) -> Iterator[Trace]:
    """Decode a prompt without a cache, drift measured; yields the trace so far, as `observe` does.

    This is the paper's setting: every position is refreshed every step, so drift is that between
    consecutive steps. one_token: commit one token a step instead of by the run's own rule, since the
    number of tokens committed drives drift by itself.
    """
    chosen = one_token_a_step(generation) if one_token else generation
    return observe(model, prompt, chosen, create_policy("none"), [ValueDriftProbe()])


def no_cache_trace(
    model: LanguageModel, prompt: PromptContent, generation: GenerationConfig, one_token: bool = True
) -> Trace:
    """`observe_no_cache` to its end."""
    *_, trace = observe_no_cache(model, prompt, generation, one_token)
    return trace
