"""Journal: outcomes in a JSONL file as they come, so that an interrupted measurement goes on."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from analysis.measure import Outcome
from analysis.prompts import Prompt
from core import GenerationConfig, LanguageModel
from core.files import hold
from core.models.packing import PackedLinear

MODEL_FACTS = ("ref", "family", "dtype", "device", "num_parameters")
# What a journal was begun with, where that is not "another" of the header's name.
OTHERS = {
    "generation": "other generation settings",
    "prompts": "another number of prompts",
    "prompts_sha256": "other prompts",
}
SAMPLED_ROWS = 64
HEADER_START = len('{"schema": 1, "kind": "journal"')


def purpose(model: LanguageModel, prompts: Sequence[Prompt], base: GenerationConfig) -> dict[str, Any]:
    """What outcomes must share to stand in one journal: model, weights, decoding, prompts and graders."""
    content = json.dumps([asdict(prompt) for prompt in prompts])
    facts = model.facts()
    return {
        "model": {**{name: facts[name] for name in MODEL_FACTS}, "weights": fingerprint(model)},
        "generation": base.to_dict(),
        "prompts": len(prompts),
        "prompts_sha256": sha256(content.encode()).hexdigest(),
    }


def fingerprint(model: LanguageModel) -> str:
    """A digest that training or merging changes, though the model keeps its name and size.

    Of each tensor some rows from its whole length are read: large models have too many to read them all.
    """
    digest = sha256()
    for module in model.backbone.modules():
        # A matrix packed for the processor is no parameter.
        packed = [module.weight] if isinstance(module, PackedLinear) else []
        for part in (*packed, *module.parameters(recurse=False)):
            rows = part.detach()[:: max(1, len(part) // SAMPLED_ROWS)]
            digest.update(rows.float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


class Journal:
    """A file of one header line and one outcome a line; open with `with`.

    Opening an existing file reads what it holds into `done` and goes on behind it; a last line that was
    cut off in writing is dropped. machine: the environment that a new file is begun in; begun_on: that of
    the file as it was found, None for a new one. Without a path, outcomes are kept in `done` alone. Raises
    ValueError for a file that is no journal of the same purpose, or that another process is writing.
    """

    def __init__(
        self, path: Path | None, purpose: dict[str, Any], machine: dict[str, Any] | None = None
    ) -> None:
        self.path, self.purpose, self.machine = path, purpose, machine
        self.done: dict[str, Outcome] = {}
        self.begun_on: dict[str, Any] | None = None

    @classmethod
    def read(cls, path: Path, purpose: dict[str, Any]) -> dict[str, Outcome]:
        """A file's outcomes by their keys; it stays as it is. Raises ValueError as opening does."""
        journal = cls(path, purpose)
        journal._kept(path.read_bytes())
        return journal.done

    def __enter__(self) -> "Journal":
        self._file: BinaryIO | None = None
        if self.path is None:
            return self
        # Opened before it is read, so that nobody writes in between.
        with ExitStack() as undo:
            file = undo.enter_context(self.path.open("a+b"))
            # A device, such as the null device, holds nothing and is everyone's.
            if self.path.is_file():
                hold(file, self.path.name)
                file.seek(0)
            whole = file.read()
            kept = self._kept(whole)
            if len(kept) < len(whole):
                file.truncate(len(kept))
            self._file = file
            undo.pop_all()
        if not kept:
            self._write({**self.header, "environment": self.machine})
        return self

    @property
    def header(self) -> dict[str, Any]:
        return {"schema": 1, "kind": "journal", **self.purpose}

    def _kept(self, whole: bytes) -> bytes:
        """The whole lines of a file, read into `done`."""
        assert self.path is not None
        kept = whole[: whole.rfind(b"\n") + 1]
        # A killed measurement may leave half a header, but a file that is no journal keeps its one line.
        if not kept and not json.dumps(self.header)[:-1].encode().startswith(whole[:HEADER_START]):
            raise ValueError(f"{self.path.name} is no journal of outcomes; choose a new file")
        if kept:
            self._read(self.path, kept.decode("utf-8", errors="replace").splitlines(), self.header)
        return kept

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome: in `done`, and in the file before this returns."""
        self.done[outcome.key] = outcome
        self._write(outcome.to_json())

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(record).encode() + b"\n")
            self._file.flush()

    def _read(self, path: Path, lines: list[str], header: dict[str, Any]) -> None:
        try:
            found = json.loads(lines[0])
            outcomes = [Outcome.from_json(json.loads(line)) for line in lines[1:]]
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path.name} is no journal of outcomes ({error})") from None
        # Through JSON, so that tuples and infinities compare as they are read.
        for name, value in json.loads(json.dumps(header)).items():
            if not isinstance(found, dict) or found.get(name) != value:
                other = OTHERS.get(name, f"another {name}")
                raise ValueError(f"{path.name} was begun with {other}; choose a new file")
        self.done = {outcome.key: outcome for outcome in outcomes}
        self.begun_on = found.get("environment")
