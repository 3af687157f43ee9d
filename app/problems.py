"""Problems: held-out prompts to try, and whether an answer to one of them is right."""

import random
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from app.panels import ASSETS
from core.training.problems import Problem, grade, read_problems

FILE = ASSETS / "model" / "problems.jsonl"


class Problems:
    """Held-out problems by family, in the order of their file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._by_family: dict[str, list[Problem]] = {}
        for problem in problems:
            self._by_family.setdefault(problem.family, []).append(problem)
        self._by_prompt = {problem.prompt.strip(): problem for problem in problems}

    @classmethod
    def load(cls, path: Path = FILE) -> "Problems":
        """Read a JSONL file of problems."""
        return cls(list(read_problems(path)))

    @property
    def families(self) -> list[str]:
        return list(self._by_family)

    def some(self, family: str, count: int) -> list[str]:
        """A family's first prompts."""
        return [problem.prompt for problem in self._by_family[family][:count]]

    def another(self, family: str, chance: random.Random | ModuleType = random) -> str:
        """Any prompt of a family."""
        return str(chance.choice(self._by_family[family]).prompt)

    def find(self, prompt: str) -> Problem | None:
        """The problem a prompt is, where it is one of them, unchanged."""
        return self._by_prompt.get(prompt.strip())

    def is_solved(self, prompt: str, answer: str | None) -> bool | None:
        """Whether an answer is right; None where the prompt is none of these or there is no text.

        Code in an answer only ever runs in the grader's restricted process.
        """
        problem = self.find(prompt)
        return None if problem is None or answer is None else grade(problem, answer)
