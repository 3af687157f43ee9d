"""Problems: held-out prompts to try, from the embedded model's own test set."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from app.panels import ASSETS

FILE = ASSETS / "model" / "problems.jsonl"


class Problems:
    """Held-out problems by family, in the order of their file."""

    def __init__(self, problems: Sequence[dict[str, Any]]) -> None:
        self._by_family: dict[str, list[dict[str, Any]]] = {}
        for problem in problems:
            self._by_family.setdefault(problem["family"], []).append(problem)
        self._by_prompt = {problem["prompt"]: problem for problem in problems}

    @classmethod
    def load(cls, path: Path = FILE) -> "Problems":
        """Read a JSONL file of problems."""
        lines = path.read_text(encoding="utf-8").splitlines()
        return cls([json.loads(line) for line in lines if line.strip()])

    @property
    def families(self) -> list[str]:
        return list(self._by_family)

    def first(self) -> str:
        """The first family's first prompt."""
        return str(next(iter(self._by_family.values()))[0]["prompt"])

    def another(self, family: str, chance: random.Random | ModuleType = random) -> str:
        """Any prompt of a family."""
        return str(chance.choice(self._by_family[family])["prompt"])

    def find(self, prompt: str) -> dict[str, Any] | None:
        """The problem a prompt is, where it is one of them, unchanged."""
        return self._by_prompt.get(prompt.strip())
