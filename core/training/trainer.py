"""The training loop: batches, steps, validation, log, checkpoint, resume, export."""

import json
import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from pickle import UnpicklingError
from random import Random
from threading import current_thread, main_thread

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor

from core.files import hold, replacing
from core.models.loading import device_named
from core.training.batches import Batch, BatchStream, collate, encode
from core.training.corruption import Corrupted, corrupt
from core.training.export import export
from core.training.model import TiedModel
from core.training.optimizer import Optimizer
from core.training.problems import FAMILIES, held_out
from core.training.recipe import WIDTHS, Lesson, Recipe
from core.training.tokenizer import save_tokenizer, train_tokenizer

LOG_EVERY_SECONDS = 20.0
SAVE_EVERY_SECONDS = 120.0
VALIDATE_EVERY_TOKENS = 1_000_000
VALIDATION_PROBLEMS = 32


@contextmanager
def late_interrupt() -> Iterator[list[bool]]:
    """Put off the first Ctrl-C: it is appended to the list yielded. A second one interrupts as usual."""
    pressed: list[bool] = []
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler or current_thread() is not main_thread():
        yield pressed
        return

    def note(*_: object) -> None:
        pressed.append(True)
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, usual)


class Trainer:
    """A run in `directory`: checkpoint.pt, log.jsonl and, at every save, the exported model."""

    def __init__(
        self,
        recipe: Recipe,
        directory: Path,
        device: str,
        dtype: torch.dtype,
        compile_layers: bool,
        minutes: float = math.inf,
    ) -> None:
        self.directory, self.device, self.minutes = directory, device_named(device), minutes
        directory.mkdir(parents=True, exist_ok=True)
        saved = self._saved()
        self.recipe = self._prolonged(saved, recipe) if saved else recipe
        torch.manual_seed(self.recipe.seed)
        self.tokenizer = self._tokenizer()
        self.recipe = replace(self.recipe, vocab_size=self.tokenizer.get_vocab_size())
        self.model = TiedModel(self.recipe.spec, dtype, compile_layers).to(self.device)
        self.optimizer = Optimizer(self.model, self.recipe)
        self.tokens_seen, self.seconds = 0, 0.0
        if saved:
            self.optimizer.restore(saved["count"], saved["tensors"])
            self.tokens_seen, self.seconds = saved["tokens_seen"], saved["seconds"]
        self.generator = torch.Generator().manual_seed(self.recipe.seed + self.optimizer.count)

    def _saved(self) -> dict | None:
        path = self.directory / "checkpoint.pt"
        if not path.exists():
            return None
        try:
            saved = torch.load(path, map_location=self.device, weights_only=True)
            return {**saved, "recipe": Recipe(**saved["recipe"])}
        except (
            EOFError,
            RuntimeError,
            UnpicklingError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ValueError(f"{path} is no checkpoint to go on from: {reason}") from None

    def _prolonged(self, saved: dict, recipe: Recipe) -> Recipe:
        """The saved recipe for more tokens; ValueError where it is spent or another one was asked for."""
        if recipe.tokens <= saved["tokens_seen"]:
            seen = f"the {saved['tokens_seen']} that {self.directory} has seen"
            raise ValueError(f"tokens is {recipe.tokens}; allowed: more than {seen}")
        if self.minutes <= saved["seconds"] / 60:
            taken = f"the {saved['seconds'] / 60:.4g} that {self.directory} has taken"
            raise ValueError(f"minutes is {self.minutes}; allowed: more than {taken}")
        for field in fields(Recipe):
            asked, begun = getattr(recipe, field.name), getattr(saved["recipe"], field.name)
            # The vocabulary is as large as the text allowed.
            if field.name not in ("tokens", "vocab_size") and asked not in (begun, field.default):
                raise ValueError(f"{field.name} is {asked}; allowed: {begun}, as {self.directory} was begun")
        return replace(saved["recipe"], tokens=recipe.tokens)

    def _tokenizer(self) -> Tokenizer:
        path = self.directory / "tokenizer.json"
        if path.exists():
            try:
                return Tokenizer.from_file(str(path))
            except Exception as error:  # tokenizers raises bare Exception for a damaged file
                raise ValueError(f"{path} is no tokenizer to go on with: {error}") from error
        tokenizer = train_tokenizer(self.recipe.seed, self.recipe.vocab_size)
        save_tokenizer(tokenizer, self.directory, self.recipe.spec.max_positions)
        return tokenizer

    def run(self) -> None:
        """Train until `recipe.tokens` have been seen or the minutes are over, then save and export.

        Ctrl-C saves after the step it falls into and is raised then. Raises ValueError where another process
        trains in this folder.
        """
        folder = os.open(self.directory, os.O_RDONLY)
        try:
            hold(folder, self.directory)
            with late_interrupt() as interrupted:
                self._run(interrupted)
        finally:
            os.close(folder)
        if interrupted:
            raise KeyboardInterrupt

    def _run(self, interrupted: list[bool]) -> None:
        stream = BatchStream(
            self.recipe, self.tokenizer, Random(f"{self.recipe.seed}|{self.optimizer.count}")
        )
        started = time.perf_counter() - self.seconds
        logged = saved = time.perf_counter()
        validated = self.tokens_seen
        stream.progress = self.progress
        losses: list[float] = []
        for batch in stream:
            losses.append(self.step(batch))
            stream.progress = self.progress
            now = time.perf_counter()
            self.seconds = now - started
            if now - logged > LOG_EVERY_SECONDS:
                self.log(loss=sum(losses) / len(losses))
                losses, logged = [], now
            if self.tokens_seen - validated > VALIDATE_EVERY_TOKENS:
                validated = self.tokens_seen
                self.log(**self.validate())
            if now - saved > SAVE_EVERY_SECONDS:
                self.save()
                saved = now
            if self.progress >= 1 or interrupted:
                break
        self.log(**self.validate())
        self.save()

    @property
    def progress(self) -> float:
        """0 to 1 by tokens seen or, where the time is limited, by time if that is further."""
        return min(1.0, max(self.tokens_seen / self.recipe.tokens, self.seconds / (60 * self.minutes)))

    def step(self, batch: Batch) -> float:
        """One update; returns the loss."""
        corrupted = corrupt(batch, self.recipe, self.generator)
        logits, peaks = self.model(corrupted.tokens.to(self.device), corrupted.rows.to(self.device))
        loss = self._loss(corrupted, logits)
        loss.backward()
        self.peak = float(peaks.max())
        self.optimizer.step(self.recipe.lr_factor(self.optimizer.count, self.progress), peaks)
        self.tokens_seen += batch.tokens.numel()
        return float(loss.detach())

    def _loss(self, corrupted: Corrupted, logits: Tensor) -> Tensor:
        each = F.cross_entropy(logits.float(), corrupted.targets.to(self.device), reduction="none")
        return (each * corrupted.weights.to(self.device)).sum()

    def _validation(self) -> Iterator[tuple[str, Batch]]:
        for family in FAMILIES:
            problems = held_out(family, VALIDATION_PROBLEMS, seed=1)
            sequences = [encode(self.tokenizer, Lesson(problem)) for problem in problems]
            longest = max(len(sequence.tokens) for sequence in sequences)
            yield family, collate(sequences, next(width for width in WIDTHS if width >= longest))

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Loss of the EMA weights on fixed held-out problems under fixed masks, by family."""
        result = {}
        for tensor in self.optimizer.trained:
            tensor.parameter.copy_(tensor.average)
        for family, batch in self._validation():
            corrupted = corrupt(batch, self.recipe, torch.Generator().manual_seed(0))
            logits, _ = self.model(corrupted.tokens.to(self.device), corrupted.rows.to(self.device))
            result[f"val_{family}"] = round(float(self._loss(corrupted, logits)), 4)
        for tensor in self.optimizer.trained:
            tensor.parameter.copy_(tensor.master)
        return result

    def log(self, **values: float) -> None:
        record = {
            "step": self.optimizer.count,
            "tokens": self.tokens_seen,
            "seconds": round(self.seconds, 1),
            "peak": round(self.peak, 1),
            "lr": round(self.recipe.lr_factor(self.optimizer.count, self.progress), 4),
            **values,
        }
        with (self.directory / "log.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")

    def save(self) -> None:
        """Write checkpoint.pt and export the EMA weights; each is whole at any time."""
        state = {
            **self.optimizer.state(),
            "recipe": asdict(self.recipe),
            "tokens_seen": self.tokens_seen,
            "seconds": self.seconds,
        }
        with replacing(self.directory / "checkpoint.pt") as partial:
            torch.save(state, partial)
        export(self.optimizer.averages(), self.recipe.spec, self.directory)
