"""Run a policy on a tiny model and hold what each request did, cut out of the batch it ran in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core import (
    POLICIES,
    CachePolicy,
    Generation,
    GenerationConfig,
    LanguageModel,
    RunFinished,
    RunStarted,
    StepEvent,
    stream,
)
from core.events import Event
from core.probes import Probe

# Three blocks, so that every policy crosses two block boundaries.
GEN, BLOCK = 18, 6

# One setting a rule under which tiny models commit one token in some steps and several in others.
RULES = {
    "one a step": {"unmask": "quota"},
    "quota": {"unmask": "quota", "steps": 6},
    "threshold": {"unmask": "threshold", "threshold": 0.35},
    "factor": {"unmask": "factor", "factor": 1.6},
    "entropy-bound": {"unmask": "entropy-bound", "entropy_bound": 1.5},
    "klass": {"unmask": "klass", "threshold": 0.3, "kl_threshold": 0.2, "kl_history": 1},
}
HEAT = {"greedy": {}, "sampled": {"temperature": 0.8, "seed": 5}}
# Every rule, and sampling by one of them.
WAYS = [*((rule, "greedy") for rule in RULES), ("threshold", "sampled")]


def config(rule: str = "threshold", heat: str = "greedy", **settings: object) -> GenerationConfig:
    """Decoding settings by the name of a rule, greedy or sampled."""
    shape = {"gen_length": GEN, "block_length": BLOCK}
    return GenerationConfig(**(shape | RULES[rule] | HEAT[heat] | settings))  # type: ignore[arg-type]


def eager_policy(name: str) -> CachePolicy:
    """The policy with settings that make it do both full and partial passes in one run."""
    settings = {
        "entropy": {"entropy_threshold": 2.0, "recent": 4},
        "dkv": {"interval": 3},
        "dkv-greedy": {"interval": 2},
        "dllm-cache": {"kp": 6, "kr": 3, "ratio": 0.25},
        "d2cache": {"current_k": 3, "rollout_p": 0.3, "inflate": 1},
        "elastic": {"gamma": 0.97},
    }
    return POLICIES[name](POLICIES[name].Config(**settings.get(name, {})))


def lossless_policy(name: str) -> CachePolicy:
    return POLICIES[name](POLICIES[name].lossless)


@dataclass
class Step:
    """One step of one request; arrays over its own canvas, left padding removed."""

    step: int
    full: bool
    reason: str
    targets: np.ndarray
    committed: np.ndarray
    tokens: np.ndarray
    confidence: np.ndarray
    entropy: np.ndarray
    refreshed: np.ndarray


@dataclass
class Run:
    """One request from admission to end. `committed_at` is each generated position's step."""

    prompt_ids: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    generation: Generation | None = None

    @property
    def tokens(self) -> list[int]:
        assert self.generation is not None
        return list(self.generation.tokens)

    @property
    def committed(self) -> list[list[int]]:
        """Positions committed at each step, counted from the start of the generation."""
        start = len(self.prompt_ids)
        return [sorted((np.flatnonzero(step.committed) - start).tolist()) for step in self.steps]

    @property
    def order(self) -> list[int]:
        """All generated positions, earlier commits first."""
        return [position for step in self.committed for position in step]

    @property
    def computed(self) -> list[list[int]]:
        """Layers recomputed per position at each step."""
        return [step.refreshed.tolist() for step in self.steps]


def gather(events: Iterable[Event]) -> list[Run]:
    """One Run a request, in the order of the prompts."""
    events = iter(events)
    started = next(events)
    assert isinstance(started, RunStarted)
    runs = [Run(request.prompt_ids) for request in started.requests]
    finished = None
    for event in events:
        if isinstance(event, RunFinished):
            finished = event
            continue
        assert isinstance(event, StepEvent)
        for slot, index in enumerate(event.request.tolist()):
            if index >= 0:
                pad = started.prompt_length - len(runs[index].prompt_ids)
                runs[index].steps.append(cut(event, slot, pad))
    assert finished is not None, "a run that was not cut short ends with RunFinished"
    for run, generation in zip(runs, finished.generations, strict=True):
        run.generation = generation
    return runs


def cut(event: StepEvent, slot: int, pad: int) -> Step:
    grids = ("targets", "committed", "tokens", "confidence", "entropy", "refreshed")
    for name in ("targets", "committed", "refreshed"):
        assert not getattr(event, name)[slot, :pad].any(), f"{name} reaches into padding"
    return Step(
        step=int(event.step[slot]),
        full=bool(event.full[slot]),
        reason=event.reason[slot],
        **{name: getattr(event, name)[slot, pad:] for name in grids},
    )


def decode(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    generation: GenerationConfig,
    policy: CachePolicy,
    probes: Sequence[Probe] = (),
    **options: object,
) -> list[Run]:
    """Run the engine to its end and gather what each request did."""
    ids = [list(prompt) for prompt in prompts]
    return gather(stream(model, ids, generation, policy, probes, **options))  # type: ignore[arg-type]


def with_eos(model: LanguageModel, eos: int) -> LanguageModel:
    """The same weights under a spec in which `eos` ends a text."""
    return replace(model, spec=replace(model.spec, eos_token_ids=(eos,)))
