"""The download of a run: one zip with its traces, tables, figures and the offline page."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.trace import Trace
from app.cards import cards
from app.links import query_of
from app.offline import FIGURES, offline_page
from app.runs import RunRecord


def write_bundle(record: RunRecord, frame: dict[str, Any], folder: Path) -> Path:
    """Write `<run>.zip` into a folder and return its path; see `contents` for what is in it."""
    path = folder / f"{record.run_id}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents(record, frame):
            archive.writestr(f"{record.run_id}/{name}", content)
    return path


def contents(record: RunRecord, frame: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Files of the bundle. Traces are schema 1 and can be opened again; figures are plotly's JSON."""
    link = query_of(record.job) if record.job.prompt else ""
    yield "report.html", offline_page(record, frame, link)
    yield (
        "settings.json",
        json.dumps({"query": link, "generation": record.job.generation.to_dict()}, indent=1),
    )
    for letter, trace in zip("abcd", record.traces, strict=False):
        yield f"trace-{letter}.json", json.dumps(trace.to_json(), allow_nan=False)
    if record.observation is not None:
        yield "observation.json", json.dumps(record.observation.to_json(), allow_nan=False)
    policies = policies_frame(record)
    yield "policies.csv", policies.to_csv(index=False)
    yield "policies.tex", latex_table(policies)
    yield "steps.csv", _stacked(record, Trace.to_frame).to_csv(index=False)
    yield "tokens.csv", _stacked(record, Trace.tokens_frame).to_csv(index=False)
    for name, content in _figures(record):
        yield f"figures/{name}.json", json.dumps(content)


def policies_frame(record: RunRecord) -> pd.DataFrame:
    """One row a lane with the figures of its card; what was not measured is left empty."""
    rows = []
    for lane in cards(record)["lanes"]:
        numbers = {f"{entry['label']} {entry['unit']}".strip(): entry["value"] for entry in lane["numbers"]}
        rows.append({"policy": lane["label"], "verdict": lane["verdict"], **numbers})
    return pd.DataFrame(rows)


def latex_table(frame: pd.DataFrame) -> str:
    """A booktabs table of texts, ready to be pasted; an empty cell is a dash."""
    signs = {
        "%": r"\%",
        "_": r"\_",
        "&": r"\&",
        "#": r"\#",
        "τ": r"$\tau$",
        "γ": r"$\gamma$",
        "×": r"$\times$",
    }

    def cell(value: object) -> str:
        text = "--" if value is None or value != value else str(value)
        return "".join(signs.get(sign, sign) for sign in text.replace(" ·", ","))

    lines = [" & ".join(map(cell, row)) + r" \\" for row in frame.itertuples(index=False)]
    header = " & ".join(map(cell, frame.columns)) + r" \\"
    columns = "l" * 2 + "r" * (len(frame.columns) - 2)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", header, r"\midrule", *lines, r"\bottomrule", end, ""])


def _stacked(record: RunRecord, frame_of: Any) -> pd.DataFrame:
    parts = [
        frame_of(lane.trace).assign(policy=lane.label) for lane in record.lanes if lane.trace is not None
    ]
    return pd.concat(parts) if parts else pd.DataFrame()


def _figures(record: RunRecord) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, draw in FIGURES.items():
        for index, variant in enumerate(json.loads(draw(record))["variants"]):
            yield (f"{name}-{index}" if index else name), variant["figure"]
