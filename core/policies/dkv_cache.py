"""dKV-Cache: cache a token's K/V one step after it was decoded."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from core.config import GenerationConfig, require
from core.models.spec import ModelSpec
from core.policies.base import CachePolicy, Plan, PolicyConfig
from core.state import DecodeState

SHIFTS = ("right", "un", "un_right")
CENTERS = ("next", "last")


@dataclass(frozen=True)
class DKVCacheConfig(PolicyConfig):
    """interval: steps between full passes inside a block (README: 8 for LLaDA, 16 or 4 for Dream).
    delay: steps for which a committed token is still recomputed; 1 is the paper's one-step delay, 0
    would leave the K/V of its mask in the cache. shift: which decoded token lets a position be cached:
    `right` its own, `un` its right neighbour, which it predicts in shifted models, `un_right` both.
    """

    interval: int = 8
    delay: int = 1
    shift: str = "right"

    def check(self) -> None:
        require(self.interval >= 1, "interval", self.interval, "an integer of at least 1")
        require(self.delay >= 0, "delay", self.delay, "an integer of at least 0")
        require(self.shift in SHIFTS, "shift", self.shift, ", ".join(SHIFTS))


class DKVCache(CachePolicy):
    """Recompute every mask of the sequence and what was just decoded; everything every few steps.

    Decides: full in a block's first two steps and at every `interval`-th one. Recomputed: L then, else
    all masks (of later blocks too) and the tokens of the last `delay` steps. Decision cost: 0.
    Source: dKV-Cache-Decode (arXiv 2505.15781), section 3, and the released decode loop; keys stay in
    place here, where the release reorders them.
    """

    name = "dkv"
    Config = DKVCacheConfig
    lossless = DKVCacheConfig(interval=1)
    REASONS = ("first step", "reuse", "block start", "interval")
    needs_blocks = True

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
    """interval: steps between full passes inside a block (paper: 2). window: masked neighbours recomputed
    around each centre, alternating left and right (paper: 4). tokens: positions decoded a step.
    center: `next` centres on the coming positions (released code), `last` on those just committed.
    random_order: decode in an order drawn once a sequence, as the method does; False leaves the order to
    the unmask rule among the recomputed masks (ours) and then centres on `last`.
    """

    interval: int = 2
    window: int = 4
    tokens: int = 1
    center: str = "next"
    random_order: bool = True

    def check(self) -> None:
        require(self.interval >= 1, "interval", self.interval, "an integer of at least 1")
        require(self.window >= 0, "window", self.window, "an integer of at least 0")
        require(self.tokens >= 1, "tokens", self.tokens, "an integer of at least 1")
        require(self.center in CENTERS, "center", self.center, ", ".join(CENTERS))
        usable = self.random_order or self.center == "last"
        require(usable, "center", self.center, "last, where random_order is false")


class DKVGreedy(CachePolicy):
    """Recompute only what was just committed, what comes next and a few masks around; O(1) rows a step.

    Decides: full at every `interval`-th step of a block. Recomputed: L then, else last + next + window
    rows. Decision cost: one draw of the order a sequence. Source: dKV-Cache-Greedy (arXiv 2505.15781),
    section 3; its random order is this policy's own, see random_order.
    """

    name = "dkv-greedy"
    Config = DKVGreedyConfig
    lossless = DKVGreedyConfig(interval=1, center="last", random_order=False)
    REASONS = ("first step", "reuse", "interval")
    needs_blocks = True

    config: DKVGreedyConfig

    def start(self, state: DecodeState, spec: ModelSpec, generation: GenerationConfig) -> None:
        generator = torch.Generator().manual_seed(generation.seed)
        order = torch.randperm(generation.gen_length, generator=generator).to(state.tokens.device)
        # Kept per generation offset, so a sequence draws the same order in any batch.
        self.order = torch.nn.functional.pad(order, (state.prompt_len, 0))

    def plan(self, state: DecodeState) -> Plan:
        due = state.block_step % self.config.interval == 0
        coming = self.coming(state)
        centers = coming if self.config.center == "next" else state.just_decoded
        around = self.neighbours(state, centers)
        refresh = state.just_decoded | coming | around
        if self.config.random_order:
            decode = coming
        else:
            decode = (refresh & state.window) | due[:, None]
        return Plan(
            refresh=refresh | due[:, None], reason=torch.where(due, 2, 1), decode=decode
        )

    def coming(self, state: DecodeState) -> Tensor:
        """Positions decoded next: the window's first `tokens` in the drawn order, bool [B, L]."""
        if not self.config.random_order:
            return torch.zeros_like(state.window)
        turn = torch.where(state.window, self.order, state.tokens.shape[1])
        last = turn.topk(self.config.tokens, dim=1, largest=False).values[:, -1:]
        return state.window & (turn <= last)

    def neighbours(self, state: DecodeState, centers: Tensor) -> Tensor:
        """The nearest masks left and right of each centre, bool [B, L]."""
        columns, length = state.columns, state.tokens.shape[1]
        masked = state.masked & ~centers
        left = torch.where(masked, columns, -1).cummax(dim=1).values
        right = torch.where(masked, columns, length).flip(1).cummin(dim=1).values.flip(1)
        chosen = torch.zeros(masked.shape[0], length + 2, dtype=torch.bool, device=masked.device)
        steps = ((left, math.ceil(self.config.window / 2), 0), (right, self.config.window // 2, 2))
        for nearest, count, side in steps:
            # One column of margin on each side holds "no such neighbour".
            padded = torch.nn.functional.pad(nearest, (1, 1), value=-1)
            padded[:, -1] = length
            padded[:, 0] = -1
            at = torch.where(centers, columns, -1 if side == 0 else length)
            for _ in range(count):
                at = padded.gather(1, (at + side).clamp(0, length + 1))
                chosen.scatter_(1, at + 1, True)
        return chosen[:, 1:-1] & masked
