"""Fast-dLLM's two caches: refresh everything as a block begins, then only part of the canvas."""

from abc import abstractmethod

import torch
from torch import Tensor

from core.policies.base import CachePolicy, Plan
from core.state import DecodeState


class _BlockCache(CachePolicy):
    REASONS = ("first step", "reuse", "block start")
    needs_blocks = True

    def plan(self, state: DecodeState) -> Plan:
        refresh = self.partial(state) | state.block_is_new[:, None]
        return Plan(refresh=refresh, reason=torch.where(state.block_is_new, 2, 1))

    @abstractmethod
    def partial(self, state: DecodeState) -> Tensor:
        """Positions recomputed inside a block, bool [B, L]."""


class PrefixCache(_BlockCache):
    """Cache the prompt and the finished blocks; recompute the block and everything after it.

    Decides: the block index.
    Recomputes: L at a block's first step, else L - block_start.
    Cost: 0.
    Source: Fast-dLLM (arXiv 2505.22618), section 3.2, and its released prefix cache.
    Differs: the release spends one more pass where a block's first pass decodes all of it; in shifted
    models the row before the block, which predicts its first token, is recomputed too.
    """

    name = "prefix"

    def partial(self, state: DecodeState) -> Tensor:
        return state.columns >= state.block_start[:, None]


class DualCache(_BlockCache):
    """Cache everything outside the active block; recompute the block's rows, decoded ones included.

    Decides: the block index.
    Recomputes: L at a block's first step, else the block's b rows.
    Cost: 0.
    Source: Fast-dLLM (arXiv 2505.22618), section 3.2, and its released dual cache.
    Differs: the release spends one more pass where a block's first pass decodes all of it; in shifted
    models the row before the block, which predicts its first token, is recomputed too, where the release
    commits that token from the full pass and repeats the first row's logits.
    """

    name = "dual"

    def partial(self, state: DecodeState) -> Tensor:
        return state.in_block
