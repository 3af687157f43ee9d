"""Problem: one prompt with a worked example response and what is needed to grade another one."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from zlib import crc32

HELD_OUT_ONE_IN = 10


@dataclass(frozen=True)
class Problem:
    """A prompt with an automatic grader.

    Either `answer` (the text that must follow `#### `) or `function` and `tests` (pairs of one argument
    and the expected value) is given. `signature` names the content without its wording; it decides
    whether the problem is held out. `shots` counts the worked examples that precede the question.
    """

    family: str
    prompt: str
    example_response: str
    answer: str | None = None
    function: str | None = None
    tests: tuple[tuple[object, object], ...] = ()
    signature: str = ""
    shots: int = 0

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.function is None):
            raise ValueError("a problem has either an answer or a function with tests, not both")
        if self.function is not None and not self.tests:
            raise ValueError(f"tests is empty; function {self.function} needs at least one")

    @property
    def is_held_out(self) -> bool:
        """True for the tenth of all signatures that training never draws."""
        return crc32(f"{self.family}|{self.signature}".encode()) % HELD_OUT_ONE_IN == 0


def with_examples(problem: Problem, examples: Sequence[Problem]) -> Problem:
    """The same question after worked examples, in the manner of few-shot chain-of-thought prompts."""
    shown = "".join(f"Question: {e.prompt}\nAnswer: {e.example_response}\n\n" for e in examples)
    return replace(problem, prompt=f"{shown}Question: {problem.prompt}", shots=len(examples))


def write_problems(path: Path, problems: Iterable[Problem]) -> None:
    """One JSON object a line; empty fields are left out."""
    lines = (
        json.dumps({k: v for k, v in asdict(p).items() if v not in (None, (), "", 0)}) + "\n"
        for p in problems
    )
    path.write_text("".join(lines), encoding="utf-8")


def read_problems(path: Path) -> Iterator[Problem]:
    """Problems of a file in the layout of `assets/model/problems.jsonl`."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            record["tests"] = tuple((given, wanted) for given, wanted in record.get("tests", ()))
            yield Problem(**record)
