"""dKV-Cache: cache a token's K/V one step after it was decoded."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.config import GenerationConfig, one_of, require
from core.models.spec import ModelSpec
from core.policies.base import CachePolicy, Plan, PolicyConfig
from core.rows import to_rows
from core.state import DecodeState


@dataclass(frozen=True)
class DKVCacheConfig(PolicyConfig):
    """interval: steps between full passes inside a block (README: 8 for LLaDA, 16 or 4 for Dream).
    delay: steps for which a committed token is still recomputed; 1 is the paper's one-step delay, 0
    would leave the K/V of its mask in the cache. shift: which decoded token lets a position be cached:
    `right` its own, `un` its right neighbour, which it predicts in shifted models, `un_right` both.
    """

    interval: int = 8
    delay: int = 1
    shift: str = one_of("right", "un", "un_right", default="right")

    def check(self) -> None:
        require(self.interval >= 1, "interval", self.interval, "an integer of at least 1")
        require(self.delay >= 0, "delay", self.delay, "an integer of at least 0")


class DKVCache(CachePolicy):
    """Recompute every mask of the sequence and what was just decoded; everything every few steps.

    Decides: the step within the block, its first two and every `interval`-th one being full.
    Recomputes: L in full steps, else all masks, those of later blocks too, and the tokens of the last
    `delay` steps. So a token's K/V enter the cache from its first pass as a token, never as a mask.
    Cost: 0.
    Source: dKV-Cache-Decode (arXiv 2505.15781), section 3, and the released decode loop.
    Differs: keys stay in place, where the release reorders them; with a sliding window, which the release
    lacks, the whole generation counts as one block.
    """

    name = "dkv"
    Config = DKVCacheConfig
    lossless = DKVCacheConfig(interval=1)
    REASONS = ("first step", "reuse", "block start", "interval")

    config: DKVCacheConfig

    def plan(self, state: DecodeState) -> Plan:
        starting = state.block_step <= 1
        due = state.block_step % self.config.interval == 0
        reason = torch.where(starting, 2, torch.where(due, 3, 1))
        # A prompt was never decoded, however long the delay.
        recent = state.decoded_at >= (state.step[:, None] - self.config.delay).clamp(min=0)
        fresh = state.masked | recent
        ahead = torch.nn.functional.pad(fresh[:, 1:], (0, 1))
        refresh = {"right": fresh, "un": ahead, "un_right": fresh | ahead}[self.config.shift]
        return Plan(refresh=refresh | (reason > 1)[:, None], reason=reason)


@dataclass(frozen=True)
class DKVGreedyConfig(PolicyConfig):
    """interval: steps between full passes inside a block (paper: 2). neighbours: masks recomputed around each
    centre, the nearest first, left before right (paper: 4). tokens: positions open to a step, of which the
    unmask rule commits one at least.
    center: `next` centres on the coming positions (released code), `last` on those just committed.
    random_order: decode in an order drawn once a sequence, as the method does; False leaves the order to
    the unmask rule among the recomputed masks (ours) and then centres on `last`.
    """

    interval: int = 2
    neighbours: int = 4
    tokens: int = 1
    center: str = one_of("next", "last", default="next")
    random_order: bool = True

    def check(self) -> None:
        require(self.interval >= 1, "interval", self.interval, "an integer of at least 1")
        require(self.neighbours >= 0, "neighbours", self.neighbours, "an integer of at least 0")
        require(self.tokens >= 1, "tokens", self.tokens, "an integer of at least 1")
        usable = self.random_order or self.center == "last"
        require(usable, "center", self.center, "last, where random_order is false")
        usable = self.random_order or self.neighbours >= 1
        require(usable, "neighbours", self.neighbours, "at least 1, where random_order is false")


class DKVGreedy(CachePolicy):
    """Recompute only what was just committed, what comes next and a few masks around them.

    Decides: the step within the block, every `interval`-th one being full, and an order of decoding drawn
    once a sequence.
    Recomputes: L in full steps, else the tokens just committed, the `tokens` coming next and `neighbours`
    masks around each; O(1) rows whatever L.
    Cost: O(b L) comparisons to find the neighbours.
    Source: dKV-Cache-Greedy (arXiv 2505.15781), section 3, and the released greedy loop.
    Differs: the order is drawn once for the whole generation, not once a block; of the `tokens` positions
    coming next a step commits those that the unmask rule finds fit, where the release spreads a step count;
    a batch's rows are never shared.
    """

    name = "dkv-greedy"
    Config = DKVGreedyConfig
    lossless = DKVGreedyConfig(interval=1, center="last", random_order=False)
    REASONS = ("first step", "reuse", "interval")

    config: DKVGreedyConfig

    def start(self, state: DecodeState, spec: ModelSpec, generation: GenerationConfig) -> None:
        generator = torch.Generator().manual_seed(generation.seed)
        order = torch.randperm(generation.gen_length, generator=generator).to(state.tokens.device)
        # Kept per generation offset, so a sequence draws the same order in any batch.
        self.order = torch.nn.functional.pad(order, (state.prompt_len, 0))

    def plan(self, state: DecodeState) -> Plan:
        due = (state.block_step % self.config.interval == 0)[:, None]
        reason = torch.where(due[:, 0], 2, 1)
        coming = self.coming(state)
        centers = coming if self.config.center == "next" else state.just_decoded
        # Neighbours that are there to be decoded must lie in the window.
        around = state.masked & ~coming if self.config.random_order else state.window
        refresh = state.just_decoded | coming | self.nearest(around, centers, state)
        decode = coming if self.config.random_order else refresh | due
        return Plan(refresh=refresh | due, reason=reason, decode=decode)

    def coming(self, state: DecodeState) -> Tensor:
        """Positions decoded next: the window's first `tokens` in the drawn order, bool [B, L]."""
        length = state.tokens.shape[1]
        if not self.config.random_order:
            return torch.zeros_like(state.window)
        turn = torch.where(state.window, self.order, length)
        last = turn.topk(min(self.config.tokens, length), dim=1, largest=False).values[:, -1:]
        return state.window & (turn <= last)

    def nearest(self, candidates: Tensor, centers: Tensor, state: DecodeState) -> Tensor:
        """The `neighbours` candidates nearest to each centre, left before right in a tie, bool [B, L]."""
        if not self.config.neighbours:
            return torch.zeros_like(candidates)
        length = candidates.shape[1]
        # A step commits and targets positions of one window only.
        at = to_rows(centers, min(state.block_length, length))[..., None]
        distance = 2 * (state.columns - at).abs() + (state.columns > at).long()
        far = 2 * length + 2
        distance = distance.masked_fill(~candidates[:, None] | (at == length), far)
        limit = distance.topk(min(self.config.neighbours, length), dim=2, largest=False).values[..., -1:]
        return ((distance <= limit) & (distance < far)).any(dim=1)
