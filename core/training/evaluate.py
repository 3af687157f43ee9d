"""Accuracy on held-out problems through the engine, with Wilson intervals."""

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.config import GenerationConfig
from core.end_of_text import end_of_text
from core.engine import generate
from core.events import Generation
from core.models.language_model import LanguageModel
from core.policies import create_policy
from core.training.problems import Problem, grade, held_out

ONE_TOKEN = GenerationConfig(gen_length=128, block_length=32, unmask="quota", stop_at_eos=True)
RULES = {
    "one token a step": ONE_TOKEN,
    "threshold 0.9": replace(ONE_TOKEN, unmask="threshold", threshold=0.9),
}
SLOTS = 16
LENGTH_EDGES = (0, 64, 128, 256, 512, 768, 1280)


@dataclass(frozen=True)
class Outcome:
    """One problem answered: prompt length and generated tokens (up to the first EOS), steps taken."""

    problem: Problem
    correct: bool
    prompt_tokens: int
    generated_tokens: int
    steps: int
    text: str


@dataclass(frozen=True)
class Score:
    """Share of correct answers, with a 95 % Wilson interval; tokens a step over all steps.

    contents: how many of the `n` problems differ in more than their wording. The interval is one of so
    many trials: the same content in other words is hardly a trial of its own.
    """

    correct: int
    n: int
    contents: int
    tokens_per_step: float

    @property
    def share(self) -> float:
        return self.correct / self.n

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.share * self.contents, self.contents)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.share:.1%} ({low:.1%} to {high:.1%}), n={self.n} of {self.contents} contents, "
            f"{self.tokens_per_step:.2f} tokens/step"
        )


def wilson(correct: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval of a proportion."""
    if n < 1:
        raise ValueError(f"n is {n}; it must be at least 1")
    share, spread = correct / n, z * z / n
    centre = share + spread / 2
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return (centre - half) / (1 + spread), (centre + half) / (1 + spread)


def answer(
    model: LanguageModel, problems: list[Problem], config: GenerationConfig, policy: str = "none"
) -> list[Outcome]:
    """Generate and grade; problems of like prompt length run together."""
    order = sorted(problems, key=lambda problem: len(problem.prompt))
    outcomes = []
    for first in range(0, len(order), 4 * SLOTS):
        some = order[first : first + 4 * SLOTS]
        prompts = [problem.prompt for problem in some]
        finished = generate(model, prompts, config, create_policy(policy), slots=SLOTS)
        for problem, generation in zip(some, finished, strict=True):
            outcomes.append(outcome(problem, generation, model.spec.eos_token_ids))
    return outcomes


def outcome(problem: Problem, generation: Generation, eos: tuple[int, ...]) -> Outcome:
    return Outcome(
        problem=problem,
        correct=grade(problem, generation.text or ""),
        prompt_tokens=len(generation.request.prompt_ids),
        generated_tokens=len(generation.tokens[: end_of_text(generation.tokens, eos) + 1]),
        steps=generation.num_steps,
        text=generation.text or "",
    )


def score(outcomes: list[Outcome]) -> Score:
    tokens = sum(o.generated_tokens for o in outcomes)
    return Score(
        correct=sum(o.correct for o in outcomes),
        n=len(outcomes),
        contents=len({(o.problem.family, o.problem.signature) for o in outcomes}),
        tokens_per_step=tokens / sum(o.steps for o in outcomes),
    )


def by_length(outcomes: list[Outcome]) -> Iterator[tuple[str, Score]]:
    """Scores by prompt length in tokens, empty classes left out."""
    for low, high in itertools.pairwise(LENGTH_EDGES):
        some = [o for o in outcomes if low < o.prompt_tokens <= high]
        if some:
            yield f"{low + 1} to {high}", score(some)


def table(
    model: LanguageModel, families: list[str], n: int, shots: int, seed: int, gen_length: int = 128
) -> Iterator[str]:
    """Lines of a Markdown table: family, rule, prompt lengths, score; printed as they are found.

    Each of the `n` problems a family stands behind `shots` worked examples. Raises ValueError for n < 1,
    shots < 0, a gen_length that is no multiple of the block length, and prompts beyond the model's context.
    """
    asked = {family: held_out(family, n, seed, shots) for family in families}
    rules = {rule: replace(config, gen_length=gen_length) for rule, config in RULES.items()}
    for family, problems in asked.items():
        for problem in problems:
            try:
                model.encode(problem.prompt, gen_length)
            except ValueError as error:
                raise ValueError(f"shots is {shots}; in family {family}, {error}") from None
    facts = model.facts()
    yield (
        f"model {facts['ref']}, {facts['dtype']} on {facts['device']}, no cache, greedy, "
        f"gen_length {gen_length}, blocks of {ONE_TOKEN.block_length}, stop at EOS, {shots} worked examples, "
        f"seed {seed}"
    )
    yield ""
    yield "| family | rule | prompt tokens | accuracy, 95 % interval, n, speed | seconds |"
    yield "|---|---|---|---|---|"
    for family, problems in asked.items():
        for rule, config in rules.items():
            started = time.perf_counter()
            outcomes = answer(model, problems, config)
            seconds = time.perf_counter() - started
            yield f"| {family} | {rule} | all | {score(outcomes)} | {seconds:.0f} |"
            classes = list(by_length(outcomes))
            for lengths, some in classes if len(classes) > 1 else ():
                yield f"| {family} | {rule} | {lengths} | {some} | |"
