"""The contract of a cache policy: read the state, say which positions to refresh."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

from torch import Tensor

from core.config import GenerationConfig, check_fields
from core.models.spec import ModelSpec
from core.sampling import Proposal
from core.state import DecodeState


class LayerView(Protocol):
    """What a per-layer policy may look at before layer `index` runs."""

    def values(self, start: int) -> Tensor:
        """Cached value vectors of positions start..L-1, a view [B, G, L - start, D]."""
        ...

    def swap_values(self, start: int) -> Tensor:
        """Put value vectors of this layer's input into the cache from `start` on; return them."""
        ...

    def attention_rows(self, position: Tensor) -> Tensor:
        """Attention [B, H, L] of the cached query at position int [B] over the cached keys."""
        ...


PerLayer = Callable[[int, LayerView], Tensor]
OnRows = Callable[[int, Tensor, Tensor], None]


@dataclass(frozen=True)
class Plan:
    """What one step should compute.

    refresh: bool [B, L], positions whose K/V are recomputed (the engine adds the rows that predict the
    targets and drops padding and idle slots).
    reason: int64 [B], an index into the policy's REASONS, read off with the step's one host copy;
    REASONS[0] is always "first step", which the engine fills in itself.
    decode: bool [B, L], narrows this step's targets; None is every masked position of the window.
    visible: bool [N, B, L], keys that may be attended at each layer; None is every valid one.
    per_layer: called before each layer, returns the rows bool [B, L] that this layer recomputes; the rest
    keep their cached increments. on_attention: called after each layer's attention with its index, the
    weights [B, H, R, L] (0 on padding) and the rows int [B, R] (surplus entries equal L). watched: bool
    [B], sequences whose attention is wanted: on_attention, which is slow, is called in steps that have one
    (read off with the step's one host copy); None is every sequence.
    """

    refresh: Tensor
    reason: Tensor
    decode: Tensor | None = None
    visible: Tensor | None = None
    per_layer: PerLayer | None = None
    on_attention: OnRows | None = None
    watched: Tensor | None = None


@dataclass(frozen=True)
class Outcome:
    """What one step did.

    committed: bool [B, T] and proposal: in target space (see Proposal). full: bool [B], sequences of
    which every valid position was recomputed in every layer; refreshed: int [B, L], layers recomputed.
    """

    committed: Tensor
    proposal: Proposal
    full: Tensor
    refreshed: Tensor


@dataclass(frozen=True)
class PolicyConfig:
    """Base of every policy's config: plain typed fields, checked on construction."""

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Raise ValueError for a value outside its range."""

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class CachePolicy(ABC):
    """Base of every policy. Subclasses keep per-slot tensors only and see no model and no K/V storage.

    Class facts: name; Config; lossless, a Config under which the tokens equal those of `none` (None where
    the method has no such limit); REASONS, the labels of Plan.reason; layerwise, True when plans use
    per_layer, for the whole run; reads_kept_rows, True when targets may be predicted from a row that no
    layer after the first recomputed, else the engine adds the predicting rows to every layer's;
    keeps_queries, True when it calls LayerView.attention_rows; needs_blocks, True when a sliding window
    has no meaning for it.
    """

    name: ClassVar[str]
    Config: ClassVar[type[PolicyConfig]] = PolicyConfig
    lossless: ClassVar[PolicyConfig | None] = None
    REASONS: ClassVar[tuple[str, ...]]
    layerwise: ClassVar[bool] = False
    reads_kept_rows: ClassVar[bool] = False
    keeps_queries: ClassVar[bool] = False
    needs_blocks: ClassVar[bool] = False

    def __init__(self, config: Any = None) -> None:
        self.config = self.Config() if config is None else config

    def check_decoding(self, generation: GenerationConfig) -> None:
        """Raise ValueError for a decoding that this policy has no meaning under."""
        if self.needs_blocks and generation.window != "block":
            raise ValueError(f"policy {self.name} works block by block; window is {generation.window!r}")

    def start(self, state: DecodeState, spec: ModelSpec, generation: GenerationConfig) -> None:
        """A run begins: allocate per-slot tensors for the state's B and L."""

    def reset(self, state: DecodeState, slots: Tensor) -> None:
        """New sequences in these slots, bool [B]: forget their predecessors."""

    @abstractmethod
    def plan(self, state: DecodeState) -> Plan:
        """Say what the coming step computes; idempotent, since admitting a request asks again.

        At a sequence's step 0 the engine refreshes all of it whatever the plan says.
        """

    def observe(self, state: DecodeState, outcome: Outcome) -> None:
        """Hear what was committed; the state still shows the step that did it."""
