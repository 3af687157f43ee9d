"""The download of a run: one zip with its traces, settings, tables, figures and the offline page."""

import csv
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.trace import Trace
from app.cards import about, cards
from app.frames import FrameFeed, TokenText
from app.history import LETTERS
from app.links import query_of
from app.offline import drawn_figures, offline_page
from app.runs import RunRecord
from core import POLICIES

TextsOf = Callable[[Trace], TokenText]
# What a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@")
UNKNOWN_OF_OLD_TRACES = ("weights_sha256", "torch", "num_threads")
NOTES = """# {run}: a run of EntropyScope

{about}

- `report.html`: the page of this run, for any browser, without a network.
- `settings.json`: what decides each run, defaults included: model with the SHA-256 of its weight files,
  dtype, device, torch and threads, policy, decoding with its seed, and the prompt. `null` is not known.
- `trace-a.json`, `trace-b.json`, ...: all that each run told (schema 1); the page opens them again.
- `observation.json`: the pass without a cache behind the drift figures, where there was one.
- `policies.csv`, `policies.tex`: a row a run with the figures of its card; empty is not measured. Tokens a
  step count every position committed, tokens/s those up to and including the first end-of-text. Speedups are
  medians over rounds, least and most beside them where there were several.
- `steps.csv`: a row a step, counted from 0; seconds are of planning, forward and decoding.
- `tokens.csv`: a row a generated position, those behind an end-of-text included. `decoded_at` is the step
  that committed it, -1 where none did; confidence is a probability, entropy in nats. A `'` that begins
  `text` is not of the token: it stands before what a spreadsheet would take for a formula, or before
  another `'`.
- `figures/*.json`: plotly figures, named by what they show and by run and policy; those without a run are
  of `observation.json`.
"""


def write_bundle(record: RunRecord, texts_of: TextsOf, folder: Path) -> Path:
    """Write `<run>.zip` into a folder and return its path; see `NOTES` for what is in it."""
    path = folder / f"{record.run_id}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents(record, texts_of):
            archive.writestr(f"{record.run_id}/{name}", content)
    return path


def _known(record: RunRecord) -> bool:
    """Whether all its policies are ours: an opened trace may be of another, which no link can ask for."""
    return all(lane.spec.name in POLICIES for lane in record.lanes)


def contents(record: RunRecord, texts_of: TextsOf) -> Iterator[tuple[str, str]]:
    """Files of the bundle. Runs of several jobs side by side have no one link to bring them back."""
    link = query_of(record.job) if record.job.prompt and record.same_job and _known(record) else ""
    yield "README.md", NOTES.format(run=record.run_id, about=about(record))
    frame = FrameFeed(record, texts_of).frame("done", whole=True)
    yield "report.html", offline_page(record, frame, link)
    runs = {_trace_file(letter): trace for letter, trace in _lettered(record)}
    observed = {} if record.observation is None else {"observation.json": record.observation}
    yield "settings.json", json.dumps({"query": link, **settings(runs, observed)}, indent=1, allow_nan=False)
    for name, trace in {**runs, **observed}.items():
        yield name, json.dumps(trace.to_json(), allow_nan=False)
    policies = policies_frame(record)
    yield "policies.csv", policies.to_csv(index=False)
    yield "policies.tex", latex_table(policies)
    yield "steps.csv", _stacked(record, Trace.to_frame).to_csv(index=False)
    tokens = _stacked(record, lambda trace: tokens_frame(trace, texts_of(trace)))
    # Unasked, a lone carriage return would stand without quotes and end its row.
    yield "tokens.csv", tokens.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)
    for name, value, variant in drawn_figures(record):
        figure = variant["figure"]
        words = {"title": value["title"], "headline": variant["headline"], "about": value["about"]}
        yield (
            f"figures/{name}.json",
            json.dumps({**figure, "layout": {**figure["layout"], "meta": {"how": value["how"], **words}}}),
        )


def settings(runs: dict[str, Trace], observed: dict[str, Trace]) -> dict[str, Any]:
    """What decides each run, by the name of its trace's file: enough to decode it again."""
    return {
        kind: [{"file": name, **_settings_of(trace)} for name, trace in traces.items()]
        for kind, traces in (("runs", runs), ("observation", observed))
    }


def _settings_of(trace: Trace) -> dict[str, Any]:
    told = trace.to_json()
    kept = {name: told[name] for name in ("policy", "generation", "prompt", "prompt_ids", "batch_size")}
    return {"model": {**dict.fromkeys(UNKNOWN_OF_OLD_TRACES), **told["model"]}, **kept}


def policies_frame(record: RunRecord) -> pd.DataFrame:
    """One row a lane with the figures of its card; what was not measured is left empty."""
    rows = []
    for lane in cards(record)["lanes"]:
        numbers = {}
        for entry in lane["numbers"]:
            name = f"{entry['label']} {entry['unit']}".strip()
            numbers[name] = entry["value"]
            if "range" in entry:
                numbers[f"{name} least"], numbers[f"{name} most"] = entry["range"]
        rows.append({"policy": lane["label"], "verdict": lane["verdict"], **numbers})
    return pd.DataFrame(rows)


def tokens_frame(trace: Trace, text: TokenText) -> pd.DataFrame:
    """`Trace.tokens_frame` with each token's text, safe to be opened as a spreadsheet."""
    frame = trace.tokens_frame()
    decoded = frame["decoded_at"] >= 0
    texts = [
        as_cell(text(token)) if known else "" for token, known in zip(trace.tokens, decoded, strict=True)
    ]
    frame.insert(2, "text", texts)
    return frame


def as_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula; `removeprefix("'")` brings it back."""
    risky = text.lstrip().startswith(FORMULA) or text.startswith(("'", "\t", "\r"))
    return f"'{text}" if risky else text


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


def _lettered(record: RunRecord) -> list[tuple[str, Trace]]:
    lanes = zip(LETTERS.lower(), record.lanes, strict=False)
    return [(letter, lane.trace) for letter, lane in lanes if lane.trace is not None]


def _trace_file(letter: str) -> str:
    return f"trace-{letter}.json"


def _stacked(record: RunRecord, frame_of: Callable[[Trace], pd.DataFrame]) -> pd.DataFrame:
    """The frames of all runs under each other, told apart by letter: two may have one policy."""
    labels = [lane.label for lane in record.lanes if lane.trace is not None]
    parts = [
        frame_of(trace).assign(run=letter, policy=label)
        for (letter, trace), label in zip(_lettered(record), labels, strict=True)
    ]
    return pd.concat(parts) if parts else pd.DataFrame()
