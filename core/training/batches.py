"""Lessons -> token sequences -> batches of one width."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from core.training.recipe import WIDTHS, Lesson, Recipe, draw_lesson
from core.training.tokenizer import ASSISTANT_ID, BOS_ID, EOS_ID, USER_ID


@dataclass(frozen=True)
class Sequence:
    """Token ids; answers are [start, stop) spans, of which the last is the response with its EOS."""

    tokens: list[int]
    answers: list[tuple[int, int]]


@dataclass(frozen=True)
class Batch:
    """tokens int [B, T], padded with EOS; response_start, response_stop int [B]; shown bool [B, T].

    `shown` marks the answers of the worked examples before the question.
    """

    tokens: Tensor
    response_start: Tensor
    response_stop: Tensor
    shown: Tensor


def encode(tokenizer: Tokenizer, lesson: Lesson) -> Sequence:
    """`<|bos|><|user|> prompt<|assistant|> response<|eos|>`, with where the answers lie."""
    tokens, answers = [BOS_ID, USER_ID], []
    start = " Question: " if lesson.examples else " "
    for example in lesson.examples:
        tokens += tokenizer.encode(f"{start}{example.prompt}\nAnswer:").ids
        answer = tokenizer.encode(f" {example.example_response}").ids
        answers.append((len(tokens), len(tokens) + len(answer)))
        tokens += answer
        start = "\n\nQuestion: "
    tokens += [*tokenizer.encode(f"{start}{lesson.problem.prompt}").ids, ASSISTANT_ID]
    response = [*tokenizer.encode(f" {lesson.problem.example_response}").ids, EOS_ID]
    answers.append((len(tokens), len(tokens) + len(response)))
    return Sequence(tokens + response, answers)


def canvas_width(rng: Random, length: int) -> int | None:
    """The width a sequence is padded to; None if it is too long.

    Three in ten get a longer empty tail, so that the model ends its answer in a long canvas.
    """
    kind = rng.random()
    extra = 0 if kind < 0.7 else rng.randint(1, 32) if kind < 0.85 else rng.randint(32, 256)
    return next((w for w in WIDTHS if w >= length + extra), next((w for w in WIDTHS if w >= length), None))


def collate(sequences: list[Sequence], width: int) -> Batch:
    tokens = torch.full((len(sequences), width), EOS_ID)
    shown = torch.zeros(len(sequences), width, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence.tokens)] = torch.tensor(sequence.tokens)
        for start, stop in sequence.answers[:-1]:
            shown[row, start:stop] = True
    starts, stops = zip(*(sequence.answers[-1] for sequence in sequences), strict=True)
    return Batch(tokens, torch.tensor(starts), torch.tensor(stops), shown)


class BatchStream:
    """Endless batches; set `progress` as training advances."""

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, rng: Random) -> None:
        self.recipe, self.tokenizer, self.rng = recipe, tokenizer, rng
        self.progress = 0.0
        self._waiting: dict[int, list[Sequence]] = {width: [] for width in WIDTHS}

    def __iter__(self) -> Iterator[Batch]:
        while True:
            sequence = encode(self.tokenizer, draw_lesson(self.rng, self.progress))
            width = canvas_width(self.rng, len(sequence.tokens))
            if width is None:
                continue
            waiting = self._waiting[width]
            waiting.append(sequence)
            if len(waiting) == self.recipe.batch_tokens // width:
                yield collate(waiting, width)
                waiting.clear()
