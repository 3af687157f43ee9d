"""Bench: what a step costs, by policy and size; seconds of full steps, partial steps and decisions."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import torch

from analysis.bench_point import BenchPoint
from analysis.recorder import TraceRecorder
from analysis.settings import Setting
from analysis.trace import SECONDS, Step, Trace
from core import GenerationConfig, LanguageModel, stream


@dataclass(frozen=True)
class Place:
    """Where to measure: prompts of `prompt_length` random tokens, `batch` of them at a time."""

    prompt_length: int
    batch: int


def bench(
    model: LanguageModel,
    base: GenerationConfig,
    settings: Sequence[Setting],
    places: Sequence[Place],
    repeats: int,
    seed: int = 0,
) -> Iterator[BenchPoint]:
    """Measure every setting at every place; runs of the settings alternate. Yields place by place.

    Raises ValueError where prompt and generation exceed the model's positions.
    """
    for place in places:
        total = place.prompt_length + base.gen_length
        if total > model.spec.max_positions:
            raise ValueError(
                f"prompt_length {place.prompt_length} + gen_length exceeds the model's positions"
            )
        prompts = random_prompts(model, place, seed)
        runs: dict[str, list[Trace]] = {setting.label: [] for setting in settings}
        peaks: dict[str, int | None] = {}
        for repeat in range(repeats + 1):
            for setting in settings:
                trace, peak = _run(model, prompts, setting, base)
                # The first round warms up and is not counted.
                if repeat:
                    runs[setting.label].append(trace)
                    peaks[setting.label] = peak
        for setting in settings:
            yield _point(setting, runs[setting.label], place, peaks[setting.label])


def random_prompts(model: LanguageModel, place: Place, seed: int) -> list[list[int]]:
    """Token ids drawn evenly from the vocabulary, special tokens left out."""
    rng, spec = random.Random(seed), model.spec
    special = {spec.mask_token_id, spec.pad_token_id, *spec.eos_token_ids}
    known = [token for token in range(min(spec.vocab_size, 50000)) if token not in special]
    return [rng.choices(known, k=place.prompt_length) for _ in range(place.batch)]


def _run(
    model: LanguageModel, prompts: list[list[int]], setting: Setting, base: GenerationConfig
) -> tuple[Trace, int | None]:
    cuda = model.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(model.device)
    recorder = TraceRecorder()
    for event in stream(model, prompts, setting.decoding(base), setting.make_policy()):
        recorder.observe(event)
    return recorder.trace(), torch.cuda.max_memory_allocated(model.device) if cuda else None


def _point(setting: Setting, runs: list[Trace], place: Place, peak: int | None) -> BenchPoint:
    steps = [step for run in runs for step in run.steps]
    full = [_work(step) for step in steps if step.full]
    partial = [step for step in steps if not step.full]
    totals = [sum(step.seconds[part] for step in run.steps for part in SECONDS) for run in runs]
    plans = [step.seconds["plan"] for run in runs for step in run.steps[1:]]
    overheads = [
        sum(step.seconds["plan"] for step in run.steps) / total
        for run, total in zip(runs, totals, strict=True)
    ]
    first = runs[0]
    plan_low, plan_high = _quartiles(plans)
    overhead_low, overhead_high = _quartiles(overheads)
    return BenchPoint(
        setting=setting.label,
        model=str(first.model["ref"]),
        num_layers=first.num_layers,
        hidden_size=int(first.model["hidden_size"]),
        prompt_length=place.prompt_length,
        gen_length=first.gen_length,
        batch=place.batch,
        dtype=str(first.model["dtype"]),
        device=str(first.model["device"]),
        threads=torch.get_num_threads(),
        repeats=len(runs),
        steps=len(first.steps),
        full_seconds=median(full) if full else None,
        partial_seconds=median(map(_work, partial)) if partial else None,
        partial_rows=median(step.num_refreshed for step in partial) if partial else None,
        plan_seconds=median(plans) if plans else None,
        decision_overhead=median(overheads),
        seconds=median(totals),
        spread=(max(totals) - min(totals)) / median(totals),
        tokens_per_second=place.batch * first.gen_length / median(totals),
        peak_bytes=peak,
        plan_low=plan_low,
        plan_high=plan_high,
        overhead_low=overhead_low,
        overhead_high=overhead_high,
        num_plans=len(plans),
    )


def _quartiles(values: Sequence[float]) -> tuple[float | None, float | None]:
    if len(values) < 2:
        return None, None
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def _work(step: Step) -> float:
    return step.seconds["forward"] + step.seconds["decode"]
