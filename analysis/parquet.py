"""Outcomes as a Parquet file, for tools that read tables. Needs the optional package pyarrow."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.measure import Outcome

HEADER = b"entropyscope"


def write_parquet(path: Path, header: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
    """One row an outcome; what they hold for, a journal's first line, stands in the file's metadata.

    Raises ValueError where pyarrow is missing.
    """
    arrow, files = packages()
    table = arrow.Table.from_pylist([outcome.to_json() for outcome in outcomes])
    files.write_table(table.replace_schema_metadata({HEADER: json.dumps(header).encode()}), path)


def read_parquet(path: Path) -> tuple[dict[str, Any], list[Outcome]]:
    """What `write_parquet` was given. Raises ValueError for another file and where pyarrow is missing."""
    arrow, files = packages()
    try:
        table = files.read_table(path)
    except arrow.ArrowException as error:
        raise ValueError(f"no Parquet file ({error})") from None
    metadata = table.schema.metadata or {}
    if HEADER not in metadata:
        raise ValueError("it does not say what it holds; `export` writes files that do")
    return json.loads(metadata[HEADER]), [Outcome.from_json(row) for row in table.to_pylist()]


def packages() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet. Raises ValueError where they are missing."""
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ValueError("Parquet needs the package pyarrow; pip install pyarrow") from None
    return pyarrow, parquet
