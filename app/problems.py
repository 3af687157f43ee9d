"""Problems: held-out prompts to try, and whether an answer to one of them is right."""

import random
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from app.panels import ASSETS
from core.training.problems import MARK, Problem, fresh, grade, read_problems

FILE = ASSETS / "model" / "problems.jsonl"
SEEDS = 2**32
REMEMBERED = 10_000


class Problems:
    """Held-out problems by family, in the order of their file, and the fresh ones drawn since."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._by_family: dict[str, list[Problem]] = {}
        for problem in problems:
            self._by_family.setdefault(problem.family, []).append(problem)
        self._by_prompt = {problem.prompt.strip(): problem for problem in problems}
        self._fresh: dict[str, Problem] = {}

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
        """The prompt of a held-out problem drawn now; its grader is kept until REMEMBERED later ones."""
        problem = fresh(family, chance.randrange(SEEDS))
        self._fresh[problem.prompt.strip()] = problem
        while len(self._fresh) > REMEMBERED:
            self._fresh.pop(next(iter(self._fresh)))
        return problem.prompt

    def find(self, prompt: str) -> Problem | None:
        """The problem a prompt is, where it is one of them or of the fresh ones, unchanged."""
        prompt = prompt.strip()
        return self._by_prompt.get(prompt) or self._fresh.get(prompt)

    def is_solved(self, prompt: str, answer: str | None) -> bool | None:
        """Whether an answer is right; None where the prompt is none of these or there is no text.

        Code in an answer only ever runs in the grader's restricted process.
        """
        problem = self.find(prompt)
        return None if problem is None or answer is None else grade(problem, answer)

    def judged(self, prompt: str, solved: bool | None) -> str:
        """What an answer was judged by, which is less than all of it; empty where it was not."""
        problem = self.find(prompt)
        if problem is None or solved is None:
            return ""
        if problem.answer is not None:
            found = "is" if solved else "is not"
            return f"the line after the last {MARK} {found} {problem.answer}; what led there was not judged"
        inputs = len(problem.tests)
        passed = f"passed {inputs} of {inputs}" if solved else f"did not pass all {inputs}"
        return f"the function {passed} inputs; how it is written was not judged"
