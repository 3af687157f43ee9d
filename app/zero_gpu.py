"""Lender: work on a model in the process that is lent a GPU, on a Space that has ZeroGPU; here otherwise.

ZeroGPU forks a process for every loan: what it is given and what it yields is pickled, what it changes is
lost, and of an error only the class name comes back.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Literal

import gradio as gr
import torch

from app.models import ModelShelf
from core import LanguageModel, load_model

Task = Callable[..., Iterator[Any]]
Word = tuple[Literal["value", "refused"], Any]
# What one loan may take. A visitor's quota must cover it all before it is given.
LOAN_SECONDS = 60
WARM_UP_LENGTH = 64


def has_zero_gpu(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs on a Space with ZeroGPU."""
    return environment.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def load_for_lending(ref: str, dtype: str = "auto") -> LanguageModel:
    """`load_model` for a process that never gets a GPU itself: its children move the weights to theirs."""
    return load_model(ref, device="cpu", dtype="bfloat16" if dtype == "auto" else dtype, movable=True)


class Lender:
    """Runs generator functions on the models of a shelf. To be made before the page is launched.

    moves: whether a process that is lent a GPU has to move the weights there, as after `load_for_lending`.
    """

    def __init__(self, shelf: ModelShelf, moves: bool = False) -> None:
        self._shelf, self._moves = shelf, moves
        self._lent: Callable[[Task, str, tuple[Any, ...]], Iterator[Word]] = self._work
        with suppress(ImportError):
            import spaces

            # Off ZeroGPU this gives the function back as it is.
            self._lent = spaces.GPU(self._work, duration=LOAN_SECONDS)

    def run(self, task: Task, ref: str, *args: Any) -> Iterator[Any]:
        """What `task(model, *args)` yields. Closing the iterator ends the task at its next value.

        task: a generator function at the top level of its module; args and values can be pickled.
        Raises ValueError for what the task refuses, and where no GPU is to be had.
        """
        self._shelf.get(ref)
        try:
            with closing(self._lent(task, ref, args)) as words:  # type: ignore[type-var]
                for kind, value in words:
                    if kind == "refused":
                        raise ValueError(value)
                    yield value
        except gr.Error as error:
            raise ValueError(f"no GPU for this: {error.message}") from error

    def _work(self, task: Task, ref: str, args: tuple[Any, ...]) -> Iterator[Word]:
        # A fork inherits the shelf as it was, with its lock: only a process older than the model asks there.
        model = self._shelf.held(ref) or self._shelf.get(ref)
        model = on_gpu(model) if self._moves else model
        try:
            for value in task(model, *args):
                yield "value", value
        except ValueError as error:
            yield "refused", str(error)


def on_gpu(model: LanguageModel) -> LanguageModel:
    """The model moved to the GPU and warmed up; as it is where there is none, or it is there."""
    if model.device.type != "cpu" or not torch.cuda.is_available():
        return model
    moved = replace(model, backbone=model.backbone.to("cuda"))
    # A new process loads its kernels at first use: no part of a run's seconds.
    moved.full_logits([[0] * WARM_UP_LENGTH])
    return moved
