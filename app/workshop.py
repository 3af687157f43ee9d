"""Workshop: what one server process owns: the models, the line before them, and the visitors' runs."""

from collections.abc import Callable
from functools import lru_cache

from analysis.trace import Trace
from app.models import EMBEDDED_REF, ModelShelf
from app.problems import Problems
from app.runs import RunStore
from app.turns import Turns
from app.zero_gpu import Lender
from core import LanguageModel


class Workshop:
    """Shared by every visitor. Models are loaded at first use, by whoever's turn it is.

    space: the name of the Hugging Face Space this runs on, if any. lends: whether it has ZeroGPU.
    """

    def __init__(
        self,
        shelf: ModelShelf | None = None,
        problems: Problems | None = None,
        space: str | None = None,
        lends: bool = False,
    ) -> None:
        self.shelf = shelf if shelf is not None else ModelShelf()
        self.problems = problems if problems is not None else Problems.load()
        self.space = space
        self.lender = Lender(self.shelf, moves=lends)
        self.turns = Turns()
        self.runs = RunStore()
        self._texts: dict[str, Callable[[int], str]] = {}

    def model(self, ref: str = EMBEDDED_REF) -> LanguageModel:
        """A model, loaded now if need be. Raises ValueError where it can't be."""
        model = self.shelf.get(ref)
        if model.ref not in self._texts:
            self._texts[model.ref] = token_texts(model)
        return model

    def texts_of(self, trace: Trace) -> Callable[[int], str]:
        """Token texts of a trace as they stand within a sentence; ids where its model is unknown here."""
        known = self._texts.get(trace.model["ref"])
        return known if known is not None else "#{}".format

    def grade(self, prompt: str, answer: str | None) -> bool | None:
        """Whether an answer to one of the held-out problems is right; None for other prompts."""
        return self.problems.is_solved(prompt, answer)

    def leave(self, visitor: str) -> None:
        """A visitor has closed the page: stop their run, forget their traces."""
        self.turns.stop(visitor)
        self.runs.forget(visitor)


def token_texts(model: LanguageModel) -> Callable[[int], str]:
    """Token id to text, remembered; to its number without a tokenizer."""
    tokenizer = model.tokenizer

    @lru_cache(maxsize=200_000)
    def text(token: int) -> str:
        return f"#{token}" if tokenizer is None else str(tokenizer.decode([token]))

    return text
