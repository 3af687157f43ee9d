"""Workshop: what one server process owns: the model, the line before it, and the visitors' runs."""

import threading
from collections.abc import Callable
from functools import lru_cache

from analysis.trace import Trace
from app.problems import Problems
from app.runs import RunStore
from app.turns import Turns
from core import LanguageModel, load_model


class Workshop:
    """Shared by every visitor. The model is loaded at first use, by whoever's turn it is.

    space: the name of the Hugging Face Space this runs on, if any.
    """

    def __init__(
        self,
        ref: str = "embedded",
        loader: Callable[[str], LanguageModel] = load_model,
        problems: Problems | None = None,
        space: str | None = None,
    ) -> None:
        self.ref, self.space = ref, space
        self.problems = problems if problems is not None else Problems.load()
        self.turns = Turns()
        self.runs = RunStore()
        self._loader = loader
        self._loading = threading.Lock()
        self._model: LanguageModel | None = None
        self._texts: Callable[[int], str] | None = None

    @property
    def loaded(self) -> bool:
        return self._model is not None

    def model(self) -> LanguageModel:
        """The model, loaded now if need be. Raises ValueError where it can't be."""
        with self._loading:
            if self._model is None:
                self._model = self._loader(self.ref)
            return self._model

    def token_text(self, token: int) -> str:
        """A token's text as it stands in the middle of a sentence, or its id without a tokenizer."""
        if self._texts is None:
            self._texts = token_texts(self.model())
        return self._texts(token)

    def texts_of(self, trace: Trace) -> Callable[[int], str]:
        """Token texts of a trace: this workshop's where its model made it, else the bare ids."""
        same = trace.model["ref"] == self.ref
        return self.token_text if same else "#{}".format

    def grade(self, prompt: str, answer: str | None) -> bool | None:
        """Whether an answer to one of the held-out problems is right; None for other prompts."""
        return self.problems.is_solved(prompt, answer)

    def leave(self, visitor: str) -> None:
        """A visitor has closed the page: stop their run, forget their traces."""
        self.turns.stop(visitor)
        self.runs.forget(visitor)


def token_texts(model: LanguageModel) -> Callable[[int], str]:
    """Token id to text, remembered."""
    tokenizer = model.tokenizer

    @lru_cache(maxsize=200_000)
    def text(token: int) -> str:
        return f"#{token}" if tokenizer is None else str(tokenizer.decode([token]))

    return text
