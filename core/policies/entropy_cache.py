"""EntropyCache: a full pass only when the tokens just committed were uncertain."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from core.config import GenerationConfig, one_of, require
from core.models.spec import ModelSpec
from core.policies.base import CachePolicy, Outcome, Plan, PolicyConfig
from core.state import NOT_YET, DecodeState


@dataclass(frozen=True)
class EntropyCacheConfig(PolicyConfig):
    """Settings of EntropyCache. The paper does not state its tau; defaults marked (ours) are not its own.

    entropy_threshold: tau in nats, compared with the largest entropy among the tokens just committed;
    `inf` never triggers, below 0 always does (ours: 1.0). recent: k, the most recently committed tokens
    recomputed in a partial pass, ties to the earlier position; never fewer than all just committed
    (64, from a third-party note). scope: `since_full` draws them from the tokens committed since the last
    full pass, `global` from all. refresh_on_block_start: also refresh as a block begins (ours: off).
    max_partial_run: partial passes in a row before one full pass is forced, none is unlimited (ours).

    Entropy is that of the raw softmax at temperature 1, the mask token included (ours).
    """

    entropy_threshold: float = field(default=1.0, metadata={"allowed": "a number, or inf"})
    recent: int = 64
    scope: str = one_of("since_full", "global", default="since_full")
    refresh_on_block_start: bool = False
    max_partial_run: int | None = None

    def check(self) -> None:
        require(self.recent >= 0, "recent", self.recent, "an integer of at least 0")
        limit = self.max_partial_run
        require(limit is None or limit >= 1, "max_partial_run", limit, "none or at least 1")


class EntropyCache(CachePolicy):
    """Refresh everything when the committed tokens' maximum entropy exceeds tau, else masks and recents.

    Decides: E, the maximum over the tokens just committed of -sum p ln p; E > tau makes the next step full.
    Recomputes: L after a trigger, else the window's masks and the `recent` tokens committed last; masks
    outside the window stay cached.
    Cost: O(V) a committed token, whatever L, N and d.
    Source: EntropyCache (arXiv 2603.18489), abstract and overview figure.
    Differs: no code was released to compare with. The figure's inverted skip flag is resolved by the prose
    (skip when E <= tau); tokens just committed are recomputed even where there are more than `recent`,
    since their cached K/V are those of a mask.
    """

    name = "entropy"
    Config = EntropyCacheConfig
    lossless = EntropyCacheConfig(entropy_threshold=-1.0)
    REASONS = ("first step", "reuse", "entropy above tau", "block start", "partial run limit")

    config: EntropyCacheConfig

    def check_decoding(self, generation: GenerationConfig) -> None:
        super().check_decoding(generation)
        useless = self.config.refresh_on_block_start and generation.window != "block"
        require(not useless, "refresh_on_block_start", True, "false with window=sliding, which has no blocks")

    def start(self, state: DecodeState, spec: ModelSpec, generation: GenerationConfig) -> None:
        self.max_entropy = torch.full(state.step.shape, math.inf, device=state.step.device)
        self.refreshing = torch.ones_like(state.active)
        self.last_full = torch.zeros_like(state.step)
        self.partial_run = torch.zeros_like(state.step)

    def reset(self, state: DecodeState, slots: Tensor) -> None:
        self.max_entropy = self.max_entropy.masked_fill(slots, math.inf)
        self.last_full = self.last_full.masked_fill(slots, 0)
        self.partial_run = self.partial_run.masked_fill(slots, 0)

    def plan(self, state: DecodeState) -> Plan:
        reason = torch.where(self.max_entropy > self.config.entropy_threshold, 2, 1)
        if self.config.refresh_on_block_start:
            reason = torch.where((reason == 1) & state.block_is_new, 3, reason)
        if self.config.max_partial_run is not None:
            too_long = self.partial_run >= self.config.max_partial_run
            reason = torch.where((reason == 1) & too_long, 4, reason)
        self.refreshing = (reason > 1) | (state.step == 0)
        refresh = self.recents(state) | state.window | self.refreshing[:, None]
        return Plan(refresh=refresh, reason=reason)

    def recents(self, state: DecodeState) -> Tensor:
        """The k most recently committed positions, and all just committed ones, bool [B, L]."""
        chosen = state.just_decoded
        if self.config.recent == 0:
            return chosen
        # Only generated positions are ever decoded, so the prompt's length costs nothing here.
        decoded_at = state.decoded_at[:, state.prompt_len :]
        length = decoded_at.shape[1]
        since = self.last_full[:, None] if self.config.scope == "since_full" else 0
        candidate = (decoded_at >= since) & (decoded_at != NOT_YET)
        latest = candidate
        if self.config.recent < length:
            key = decoded_at * length - torch.arange(length, device=decoded_at.device)
            key = key.masked_fill(~candidate, -length)
            smallest = key.topk(self.config.recent, dim=1, sorted=False).values.amin(dim=1, keepdim=True)
            latest = candidate & (key >= smallest)
        return chosen | torch.nn.functional.pad(latest, (state.prompt_len, 0))

    def observe(self, state: DecodeState, outcome: Outcome) -> None:
        entropy = outcome.proposal.entropy.masked_fill(~outcome.committed, -math.inf).amax(dim=1)
        self.max_entropy = torch.where(outcome.committed.any(dim=1), entropy, self.max_entropy)
        # What was decided, not what was computed: a small partial set may happen to be everything.
        self.last_full = torch.where(self.refreshing, state.step, self.last_full)
        self.partial_run = torch.where(self.refreshing, 0, self.partial_run + 1)
