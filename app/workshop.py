"""Workshop: what one server process owns: the models, the line before them, and the visitors' runs."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from analysis.trace import Trace
from app.absence import GRACE_SECONDS, Absence
from app.models import EMBEDDED_REF, ModelShelf
from app.problems import Problems
from app.runs import RunStore
from app.turns import Turns
from app.zero_gpu import Lender
from core import LanguageModel

if TYPE_CHECKING:
    from app.going import Going


class Workshop:
    """Shared by every visitor. Models are loaded at first use, by whoever's turn it is.

    space: the name of the Hugging Face Space this runs on, if any. lends: whether it has ZeroGPU. grace:
    seconds that a visitor whose connection has ended may be away. going: each visitor's latest run, from
    its beginning until they leave.
    """

    def __init__(
        self,
        shelf: ModelShelf | None = None,
        problems: Problems | None = None,
        space: str | None = None,
        lends: bool = False,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.shelf = shelf if shelf is not None else ModelShelf()
        self.problems = problems if problems is not None else Problems.load()
        self.space = space
        self.lender = Lender(self.shelf, moves=lends)
        self.turns = Turns()
        self.runs = RunStore()
        self.going: dict[str, Going] = {}
        self.absence = Absence(self.leave, grace)
        self.on_leave: Callable[[str], object] = lambda visitor: None
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

    def lose(self, visitor: str) -> None:
        """A visitor's connection has ended: they have left, unless they are back before long."""
        if self.runs.has_left(visitor):
            self.leave(visitor)
        else:
            self.absence.begin(visitor)

    def leave(self, visitor: str) -> None:
        """A visitor has closed the page: stop their run, forget their traces."""
        self.absence.end(visitor)
        self.turns.stop(visitor)
        self.going.pop(visitor, None)
        self.runs.forget(visitor)
        self.on_leave(visitor)


def token_texts(model: LanguageModel) -> Callable[[int], str]:
    """Token id to text, remembered; to its number without a tokenizer."""
    tokenizer = model.tokenizer

    @lru_cache(maxsize=200_000)
    def text(token: int) -> str:
        return f"#{token}" if tokenizer is None else str(tokenizer.decode([token]))

    return text
