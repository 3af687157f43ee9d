"""Models: what can be offered, what it takes to hold one, and the few that are held."""

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from core import LanguageModel, ModelSpec, load_model
from core.models.families import FAMILIES
from core.models.loading import EMBEDDED

EMBEDDED_REF = "embedded"
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# On a CPU "auto" is decided by a timing as the model is loaded: room is asked for the larger.
AUTO_ON_CPU, EITHER = "float32", "float32 (bfloat16 where that is faster here)"
CANVAS = 1024
GIB = 2**30
SPARE = 0.9
CONFIG, HUB_SECONDS = "config.json", 5.0


@dataclass(frozen=True)
class Estimate:
    """What a model takes, in bytes. cache: K and V of CANVAS positions, twice where drift is watched."""

    spec: ModelSpec
    dtype: str
    device: str
    weights: int
    cache: int
    free: int

    @property
    def needed(self) -> int:
        return self.weights + self.cache

    @property
    def fits(self) -> bool:
        return self.needed <= SPARE * self.free

    def sentence(self, ref: str) -> str:
        """The estimate in one line."""
        verdict = "it fits" if self.fits else "it will not fit"
        return (
            f"{ref}: {self.spec.num_parameters / 1e6:,.1f} M parameters in {self.dtype} take about "
            f"{self.needed / GIB:.2f} GiB with K/V of {CANVAS} positions; {self.free / GIB:.1f} GiB "
            f"are free on {self.device}: {verdict}"
        )


def estimate(ref: str, dtype: str = "auto") -> Estimate:
    """Read a model's config.json (fetched alone for a hub id) and add up what it would take.

    Raises ValueError in one sentence where there is no such model or none that is supported.
    """
    config = _config(ref)
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(f"model {ref} is of type {kind!r}; supported: {', '.join(FAMILIES)}")
    try:
        spec = FAMILIES[kind].translate(config, _some_mask(config))
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise ValueError(f"model {ref}: {error}") from error
    return weigh(spec, dtype)


def weigh(spec: ModelSpec, dtype: str = "auto") -> Estimate:
    """What a model of that shape takes, against the memory that is free now."""
    cuda = torch.cuda.is_available()
    chosen = dtype if dtype in BYTES else "bfloat16" if cuda else AUTO_ON_CPU
    size = BYTES[chosen]
    return Estimate(
        spec=spec,
        dtype=EITHER if chosen == AUTO_ON_CPU and dtype not in BYTES else chosen,
        device="cuda" if cuda else "cpu",
        weights=spec.num_parameters * size,
        cache=2 * CANVAS * spec.kv_bytes_per_position(size),
        free=free_bytes(),
    )


def free_bytes() -> int:
    """Memory that could be used now: of the GPU where there is one, else of the machine or container."""
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[0])
    left = container_bytes()
    return machine_bytes() if left is None else min(left, machine_bytes())


def machine_bytes() -> int:
    """What the machine has available; all it has where it does not say."""
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def container_bytes(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a container's own limit leaves, files in memory counted as free; None where there is no limit."""
    try:
        limit, used = ((group / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        stat = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        files = next((int(value) for name, value in stat if name == "inactive_file"), 0)
        return None if limit == "max" else max(0, int(limit) - int(used) + files)
    except (OSError, ValueError):
        return None


def asks_hub(ref: str) -> bool:
    """Whether the hub is asked for a model: it is no folder here, and may be an id there."""
    return not _local(ref).is_file() and ref.count("/") == 1 and not ref.startswith((".", "/", "~"))


def _local(ref: str) -> Path:
    return (EMBEDDED if ref == EMBEDDED_REF else Path(ref).expanduser()) / CONFIG


def _config(ref: str) -> dict[str, Any]:
    path = _from_hub(ref) if asks_hub(ref) else _local(ref)
    if not path.is_file():
        raise ValueError(f"model {ref}: there is no such folder with a config.json, and it is no hub id")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"model {ref}: config.json is not valid JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"model {ref}: config.json holds no JSON object")
    return content


def _some_mask(config: dict[str, Any]) -> int:
    """The config's mask id, or any that it leaves free: a model's size does not depend on it."""
    ends = config.get("eos_token_id")
    taken = ends if isinstance(ends, list) else [ends]
    named = config.get("mask_token_id")
    return int(named) if named is not None else min(set(range(len(taken) + 1)) - set(taken))


def _from_hub(ref: str) -> Path:
    """A model's config.json, from the hub's cache where the hub does not answer."""
    from huggingface_hub import (
        errors,
        get_hf_file_metadata,
        hf_hub_download,
        hf_hub_url,
        try_to_load_from_cache,
    )

    # Of whichever library the hub's client speaks through.
    unanswered = (errors.HTTPError, OSError)  # type: ignore[attr-defined]
    try:
        try:
            # Asked once: where there is no line the download would try again and again, for 23 seconds.
            get_hf_file_metadata(hf_hub_url(ref, CONFIG), timeout=HUB_SECONDS)
        except unanswered:
            kept = try_to_load_from_cache(ref, CONFIG)
            if not isinstance(kept, str):
                raise
            return Path(kept)
        return Path(hf_hub_download(ref, CONFIG))
    except (*unanswered, errors.HFValidationError, errors.LocalEntryNotFoundError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"model {ref} could not be reached on the hub: {reason}") from error


class ModelShelf:
    """The models in memory: the embedded one, which is tiny, and the last `most` others.

    allowed: the refs that visitors may load, None for any. estimator: see `estimate`.
    """

    def __init__(
        self,
        loader: Callable[..., LanguageModel] = load_model,
        allowed: tuple[str, ...] | None = None,
        most: int = 1,
        estimator: Callable[[str, str], Estimate] | None = None,
    ) -> None:
        self.allowed, self._most, self._loader = allowed, most, loader
        self._estimate = estimator or estimate
        self._lock = threading.Lock()
        self._held: OrderedDict[str, LanguageModel] = OrderedDict()

    def holds(self, ref: str, dtype: str = "auto") -> bool:
        """Whether the model is in memory, in this dtype unless that is `auto`."""
        held = self._held.get(ref)
        return held is not None and dtype in ("auto", str(held.dtype).removeprefix("torch."))

    def held(self, ref: str) -> LanguageModel | None:
        """The model if it is in memory; waits for nobody."""
        return self._held.get(ref)

    def get(self, ref: str, dtype: str = "auto") -> LanguageModel:
        """The model, loaded now if need be, after another has made room.

        Raises ValueError where visitors may not load it, it won't fit, or it can't be loaded.
        """
        self.check(ref)
        with self._lock:
            if not self.holds(ref, dtype):
                if ref != EMBEDDED_REF:
                    self._expect(ref, dtype)
                for leaving in self._leaving(ref):
                    del self._held[leaving]
                self._held[ref] = self._loader(ref, dtype=dtype)
            self._held.move_to_end(ref)
            return self._held[ref]

    def expect(self, ref: str, dtype: str = "auto") -> Estimate:
        """The estimate, counting as free what would leave. ValueError where the model won't fit."""
        with self._lock:
            return self._expect(ref, dtype)

    def _expect(self, ref: str, dtype: str) -> Estimate:
        told = self._estimate(ref, dtype)
        leaving = (self._held[held] for held in self._leaving(ref))
        freed = sum(held.num_bytes for held in leaving if held.device.type == told.device)
        told = replace(told, free=told.free + freed)
        if not told.fits:
            raise ValueError(told.sentence(ref))
        return told

    def _leaving(self, ref: str) -> list[str]:
        """The held models that make room for this one: its own in another dtype, else the oldest."""
        if ref in self._held:
            return [ref]
        others = [held for held in self._held if held != EMBEDDED_REF]
        return [] if ref == EMBEDDED_REF else others[: max(0, len(others) - self._most + 1)]

    def check(self, ref: str) -> None:
        """Raise ValueError where visitors may not load this model."""
        if self.allowed is not None and ref not in self.allowed:
            raise ValueError(f"model is {ref!r}; allowed here: {', '.join(self.allowed)}")
