"""The trace of a run as it grows, wherever its model works: analysis.observe for a model by its name."""

from collections.abc import Callable, Iterator, Sequence

from analysis.observe import one_token_a_step, traces
from analysis.probes import ValueDriftProbe
from analysis.trace import Trace
from app.workshop import Workshop
from core import CachePolicy, Event, GenerationConfig, LanguageModel, Probe, create_policy, stream

Content = str | Sequence[int]
ProbeOf = Callable[[LanguageModel], Probe]


def observe(
    workshop: Workshop,
    ref: str,
    content: Content,
    generation: GenerationConfig,
    policy: CachePolicy,
    probes: Sequence[ProbeOf] = (),
) -> Iterator[Trace]:
    """Decode one prompt; yields the trace so far after every step and once more at the end.

    probes: what makes each of a model; a class or another function at the top level of its module.
    Raises ValueError for input that can't run.
    """
    events = workshop.lender.run(decode, ref, content, generation, policy, tuple(probes))
    return traces(workshop.model(ref), events)


def observe_no_cache(
    workshop: Workshop, ref: str, content: Content, generation: GenerationConfig, one_token: bool
) -> Iterator[Trace]:
    """`observe` without a cache and with drift measured; one_token: commit one token a step."""
    chosen = one_token_a_step(generation) if one_token else generation
    return observe(workshop, ref, content, chosen, create_policy("none"), [drift])


def decode(
    model: LanguageModel,
    content: Content,
    generation: GenerationConfig,
    policy: CachePolicy,
    probes: Sequence[ProbeOf],
) -> Iterator[Event]:
    """The engine's events: plain data, so that they can come from another process."""
    yield from stream(model, [content], generation, policy, [probe(model) for probe in probes])


def drift(model: LanguageModel) -> Probe:
    """A probe of value drift, which needs no model."""
    return ValueDriftProbe()
