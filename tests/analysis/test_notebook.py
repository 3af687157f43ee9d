"""The notebook of the two observations: its cells run in order, offline, without Jupyter."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = json.loads((ROOT / "assets" / "entropyscope.ipynb").read_text(encoding="utf-8"))
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_ten_cells_measure_both_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the notebook must work offline")

    monkeypatch.setenv("NOTEBOOK_PROMPTS", "2")
    monkeypatch.chdir(ROOT / "assets")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert len(CELLS) == 10
    names: dict[str, Any] = {}
    for source in CELLS:
        exec(compile(source, "entropyscope.ipynb", "exec"), names)
    assert names["one_token_pairs"].num_prompts == 2
    assert not names["one_token_ranks"].count_varies
    assert names["one_token_ranks"].plain["max_entropy"].known
    assert len(names["one_token_curve"].ages) > 10
    assert len(names["rows"]) == 2


def test_what_is_committed_of_its_outputs_is_light_and_free_of_local_paths() -> None:
    text = json.dumps(NOTEBOOK)
    assert len(text) < 1_000_000
    assert str(ROOT) not in text
    assert all(
        output["output_type"] != "error" for cell in NOTEBOOK["cells"] for output in cell.get("outputs", ())
    )
