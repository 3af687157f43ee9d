"""Measure one setting on one prompt; the unit that comparisons, sweeps and tuning are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import pandas as pd

from analysis.cost import cost
from analysis.observe import one_token_a_step, run_trace
from analysis.prompts import Prompt
from analysis.records import record
from analysis.settings import Setting
from core import GenerationConfig, LanguageModel, NotFiniteError


@dataclass(frozen=True)
class Unit:
    """What to measure: a setting on the prompt of that index, for the repeat-th time."""

    setting: Setting
    prompt: int
    repeat: int = 0

    @property
    def key(self) -> str:
        """Names the unit among those of one measurement."""
        return f"{self.setting.label}|{self.prompt}|{self.repeat}"


@dataclass(frozen=True)
class Outcome:
    """What one unit brought. seconds: plan + forward + decode; flops: see `step_flops`.

    tokens: the generated ids; num_tokens: those up to and including the first end-of-text. solved: None
    where the prompt can't be graded. The ratios are those of Trace.totals.
    """

    setting: str
    prompt: int
    repeat: int
    steps: int
    full_steps: int
    recompute_ratio: float
    tokens_per_step: float
    decision_overhead: float
    seconds: float
    flops: float
    num_tokens: int
    tokens: tuple[int, ...]
    solved: bool | None

    @property
    def key(self) -> str:
        return f"{self.setting}|{self.prompt}|{self.repeat}"

    @property
    def tokens_per_second(self) -> float:
        return self.num_tokens / self.seconds

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Outcome":
        """Read `to_json`'s content. Raises ValueError where a field is missing or wrong."""
        names = [field.name for field in fields(cls)]
        missing = [name for name in names if not isinstance(data, dict) or name not in data]
        if missing:
            raise ValueError(f"outcome lacks {', '.join(missing)}")
        outcome = record(cls, {name: data[name] for name in names})
        for name in ("steps", "seconds", "flops"):
            if not getattr(outcome, name) > 0:
                raise ValueError(f"{name} is {getattr(outcome, name)}; allowed: above 0")
        if not outcome.tokens:
            raise ValueError("tokens is empty; allowed: at least one")
        for name, most in (("num_tokens", len(outcome.tokens)), ("full_steps", outcome.steps)):
            if not 0 <= getattr(outcome, name) <= most:
                raise ValueError(f"{name} is {getattr(outcome, name)}; allowed: 0 to {most}")
        for name in ("recompute_ratio", "decision_overhead"):
            if not 0 <= getattr(outcome, name) <= 1:
                raise ValueError(f"{name} is {getattr(outcome, name)}; allowed: 0 to 1")
        return outcome


def to_frame(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row an outcome."""
    rows = [{**outcome.to_json(), "tokens_per_second": outcome.tokens_per_second} for outcome in outcomes]
    names = [*(field.name for field in fields(Outcome)), "tokens_per_second"]
    return pd.DataFrame(rows, columns=names)


def measure(model: LanguageModel, prompts: Sequence[Prompt], base: GenerationConfig, unit: Unit) -> Outcome:
    """Decode one unit, alone in its batch. NotFiniteError names its prompt."""
    prompt = prompts[unit.prompt]
    try:
        trace = run_trace(model, prompt.content, unit.setting.decoding(base), unit.setting.make_policy())
    except NotFiniteError as error:
        raise NotFiniteError(f"prompt {unit.prompt}: {error}") from None
    totals, spent = trace.totals, cost(trace)
    return Outcome(
        setting=unit.setting.label,
        prompt=unit.prompt,
        repeat=unit.repeat,
        steps=spent.steps,
        full_steps=sum(step.full for step in trace.steps),
        recompute_ratio=float(totals["recompute_ratio"] or 0),
        tokens_per_step=float(totals["tokens_per_step"] or 0),
        decision_overhead=float(totals["decision_overhead"] or 0),
        seconds=spent.seconds,
        flops=spent.flops,
        num_tokens=trace.num_useful_tokens,
        tokens=trace.tokens,
        solved=prompt.is_solved_by(trace.text),
    )


def reference_of(setting: Setting) -> Setting:
    """The same decoding without a cache: whose tokens a lossless cache would give."""
    return Setting("none", {}, setting.generation)


def vanilla(base: GenerationConfig) -> Setting:
    """One token a step without a cache: the baseline that papers quote speedups against.

    Where that is how `base` decodes anyway it is plain `none`, so that it is not measured under two names.
    """
    if one_token_a_step(base) == base:
        return Setting("none")
    return Setting("none", {}, {"unmask": "quota", "steps": base.gen_length})


def interleaved(settings: Sequence[Setting], num_prompts: int, repeats: int) -> Iterator[Unit]:
    """Every setting on every prompt, `repeats` times; settings take turns at going first.

    Neighbours in time are different settings on the same prompt, so that a machine that slows down slows
    all of them.
    """
    for repeat in range(repeats):
        for prompt in range(num_prompts):
            turn = (repeat + prompt) % len(settings)
            for setting in (*settings[turn:], *settings[:turn]):
                yield Unit(setting, prompt, repeat)


def warm_up(
    model: LanguageModel, prompts: Sequence[Prompt], base: GenerationConfig, settings: Sequence[Setting]
) -> None:
    """Decode one block of the first prompt with each setting, for nothing."""
    for setting in settings:
        decoding = setting.decoding(base)
        short = replace(decoding, gen_length=decoding.block_length, steps=None)
        run_trace(model, prompts[0].content, short, setting.make_policy())
