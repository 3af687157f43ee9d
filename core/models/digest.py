"""weights_sha256: what tells a checkpoint from another of the same name, as `sha256sum` would print it."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

HEX_LETTERS = 64


def weights_sha256(files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of each file in hexadecimal digits, by file name."""
    return {path.name: _sha256(path) for path in sorted(set(files))}


def _sha256(path: Path) -> str:
    stored = path.resolve()
    # The hub's cache names a large file by this very digest, which spares reading gigabytes once more.
    if stored.parent.name == "blobs" and len(stored.name) == HEX_LETTERS:
        return stored.name
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
