"""Bench: what a step costs, by policy and size; seconds of full steps, partial steps and decisions."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import mean, median

import torch

from analysis.bench_point import BenchPoint
from analysis.recorder import TraceRecorder
from analysis.settings import Setting
from analysis.spread import spread
from analysis.trace import SECONDS, Trace
from core import GenerationConfig, LanguageModel, stream
from core.timing import CLOCKS, reading, settle


@dataclass(frozen=True)
class Place:
    """Where to measure: prompts of `prompt_length` random tokens, `batch` of them at a time."""

    prompt_length: int
    batch: int


@dataclass(frozen=True)
class _BatchStep:
    """One pass of the whole batch: full where any sequence's is; rows: mean over the sequences decoded."""

    full: bool
    rows: float
    seconds: Mapping[str, float]

    @property
    def work(self) -> float:
        """Seconds without the decision."""
        return self.seconds["forward"] + self.seconds["decode"]


@dataclass(frozen=True)
class _BatchRun:
    """One run from its first pass to its last; positions: those that all sequences committed."""

    steps: tuple[_BatchStep, ...]
    positions: int

    @property
    def seconds(self) -> float:
        return sum(step.seconds[part] for step in self.steps for part in SECONDS)

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> "_BatchRun":
        """Fold the traces of sequences that started together; each has the batch's seconds while it ran."""
        steps = []
        for row in zip_longest(*(trace.steps for trace in traces)):
            running = [step for step in row if step is not None]
            rows = mean(step.num_refreshed for step in running)
            steps.append(_BatchStep(any(step.full for step in running), rows, running[0].seconds))
        # Not the useful tokens alone: after random prompts an end-of-text comes anywhere.
        return cls(tuple(steps), sum(int(trace.num_committed.sum()) for trace in traces))


def bench(
    model: LanguageModel,
    base: GenerationConfig,
    settings: Sequence[Setting],
    places: Sequence[Place],
    repeats: int,
    seed: int = 0,
    clock: str = "wall",
) -> Iterator[BenchPoint]:
    """Measure every setting at every place; runs of the settings alternate. Yields place by place.

    clock: one of core.timing.CLOCKS. Raises ValueError for another, for `cpu` on a GPU, and where prompt and
    generation exceed the model's positions.
    """
    check_clock(clock, model.device)
    for place in places:
        total = place.prompt_length + base.gen_length
        if total > model.spec.max_positions:
            raise ValueError(
                f"prompt_length {place.prompt_length} + gen_length exceeds the model's positions"
            )
        prompts = random_prompts(model, place, seed)
        runs: dict[str, list[_BatchRun]] = {setting.label: [] for setting in settings}
        peaks: dict[str, int | None] = {}
        settle()
        for repeat in range(repeats + 1):
            for setting in settings:
                with reading(clock):
                    run, peak = _run(model, prompts, setting, base)
                # The first round warms up and is not counted.
                if repeat:
                    runs[setting.label].append(run)
                    peaks[setting.label] = peak
        for setting in settings:
            made = runs[setting.label], setting.decoding(base).gen_length, place, peaks[setting.label]
            yield _point(model, setting, clock, *made)


def check_clock(clock: str, device: torch.device) -> None:
    """Raise ValueError for a clock that is none, or that can't tell what a GPU takes."""
    allowed = ["wall"] if device.type == "cuda" else list(CLOCKS)
    if clock not in allowed:
        raise ValueError(f"clock is {clock!r}; allowed on {device.type}: {', '.join(allowed)}")


def random_prompts(model: LanguageModel, place: Place, seed: int) -> list[list[int]]:
    """Token ids drawn evenly from the vocabulary, special tokens left out."""
    rng, spec = random.Random(seed), model.spec
    special = {spec.mask_token_id, spec.pad_token_id, *spec.eos_token_ids}
    known = [token for token in range(min(spec.vocab_size, 50000)) if token not in special]
    return [rng.choices(known, k=place.prompt_length) for _ in range(place.batch)]


def _run(
    model: LanguageModel, prompts: list[list[int]], setting: Setting, base: GenerationConfig
) -> tuple[_BatchRun, int | None]:
    cuda = model.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(model.device)
    recorder = TraceRecorder()
    for event in stream(model, prompts, setting.decoding(base), setting.make_policy()):
        recorder.observe(event)
    peak = torch.cuda.max_memory_allocated(model.device) if cuda else None
    return _BatchRun.of(recorder.traces()), peak


def _point(
    model: LanguageModel,
    setting: Setting,
    clock: str,
    runs: list[_BatchRun],
    gen_length: int,
    place: Place,
    peak: int | None,
) -> BenchPoint:
    steps = [step for run in runs for step in run.steps]
    full = [step.work for step in steps if step.full]
    partial = [step for step in steps if not step.full]
    totals = [run.seconds for run in runs]
    plans = [step.seconds["plan"] for run in runs for step in run.steps[1:]]
    overheads = [sum(step.seconds["plan"] for step in run.steps) / run.seconds for run in runs]
    plan_low, plan_high = _quartiles(plans)
    overhead_low, overhead_high = _quartiles(overheads)
    facts = model.facts()
    return BenchPoint(
        setting=setting.label,
        model=str(facts["ref"]),
        num_layers=model.spec.num_layers,
        hidden_size=model.spec.hidden_size,
        prompt_length=place.prompt_length,
        gen_length=gen_length,
        batch=place.batch,
        dtype=str(facts["dtype"]),
        device=str(facts["device"]),
        threads=torch.get_num_threads(),
        repeats=len(runs),
        steps=len(runs[0].steps),
        full_seconds=median(full) if full else None,
        partial_seconds=median(step.work for step in partial) if partial else None,
        partial_rows=median(step.rows for step in partial) if partial else None,
        plan_seconds=median(plans) if plans else None,
        decision_overhead=median(overheads),
        seconds=median(totals),
        spread=(max(totals) - min(totals)) / median(totals),
        positions_per_second=median(run.positions / run.seconds for run in runs),
        peak_bytes=peak,
        plan_low=plan_low,
        plan_high=plan_high,
        overhead_low=overhead_low,
        overhead_high=overhead_high,
        num_plans=len(plans),
        clock=clock,
    )


def _quartiles(values: Sequence[float]) -> tuple[float | None, float | None]:
    return spread(values) if len(values) > 1 else (None, None)
