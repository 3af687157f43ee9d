"""Prompts of a measurement: text or token ids, with a grader where the record brings one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.wording import counted
from core.training.problems import Problem, grade, held_out


@dataclass(frozen=True)
class Prompt:
    """content: text or token ids. problem: what is needed to grade a response, or None."""

    content: str | tuple[int, ...]
    problem: Problem | None = None

    def is_solved_by(self, text: str | None) -> bool | None:
        """Whether a response solves the problem; None where it can't be graded."""
        if self.problem is None or text is None:
            return None
        return grade(self.problem, text)


def family_prompts(families: Sequence[str], number: int) -> list[Prompt]:
    """`number` held-out problems of each family, always the same. Raises ValueError for an unknown one."""
    return [Prompt(problem.prompt, problem) for name in families for problem in held_out(name, number)]


def distinct(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The first prompt of each content: other wordings of it are no further sample for an interval."""
    first: dict[object, Prompt] = {}
    for prompt in prompts:
        problem = prompt.problem
        content: object = prompt.content
        if problem is not None and problem.signature:
            content = (problem.family, problem.signature)
        first.setdefault(content, prompt)
    return list(first.values())


def prompts_text(prompts: Sequence[Prompt]) -> str:
    """How many there are, and of how many contents where that is fewer."""
    alone = len(distinct(prompts))
    told = counted(len(prompts), "prompt")
    return told if alone == len(prompts) else f"{told}, {alone} of different content"


def read_prompts(path: Path) -> list[Prompt]:
    """One JSON object a line: `prompt` (text) or `prompt_ids`, and optionally a grader.

    A grader is `answer` (the text that must follow `#### `) or `function` and `tests`. Raises ValueError
    naming the line that is wrong, OSError for a file that can't be read.
    """
    prompts = []
    try:
        # Not splitlines: a prompt may hold other line separators than the file's.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"prompts file {path.name} is not text ({error})") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                prompts.append(_read_record(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"prompts file {path.name}, line {number}: {error}") from None
    if not prompts:
        raise ValueError(f"prompts file {path.name} holds no prompt")
    return prompts


def _read_record(record: Any) -> Prompt:
    if not isinstance(record, dict) or ("prompt" in record) == ("prompt_ids" in record):
        raise ValueError("allowed: an object with either prompt or prompt_ids")
    if "prompt_ids" in record:
        ids = record["prompt_ids"]
        if not isinstance(ids, list) or any(type(token) is not int for token in ids):
            raise ValueError("prompt_ids must be a list of integers")
        content: str | tuple[int, ...] = tuple(ids)
    else:
        content = record["prompt"]
        if not isinstance(content, str):
            raise ValueError("prompt must be text")
    if "answer" not in record and "function" not in record:
        return Prompt(content)
    if "answer" in record and not isinstance(record["answer"], str):
        raise ValueError("answer must be text")
    if "function" in record and not isinstance(record["function"], str):
        raise ValueError("function must be text")
    tests = record.get("tests", [])
    if not isinstance(tests, list) or not all(isinstance(test, list) and len(test) == 2 for test in tests):
        raise ValueError("tests must be a list of [argument, result]")
    return Prompt(
        content,
        Problem(
            family=str(record.get("family", "")),
            prompt=str(record.get("prompt", "")),
            example_response=str(record.get("example_response", "")),
            answer=record.get("answer"),
            function=record.get("function"),
            tests=tuple((given, wanted) for given, wanted in tests),
        ),
    )
