"""Fast-dLLM's two caches: refresh everything as a block begins, then only part of the canvas."""

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

    def partial(self, state: DecodeState) -> Tensor:
        """Positions recomputed inside a block, bool [B, L]."""
        raise NotImplementedError


class PrefixCache(_BlockCache):
    """Cache the prompt and the finished blocks; recompute the block and everything after it.

    Decides: the block index. Recomputed: L at a block's first step, else L - block_start.
    Decision cost: 0. Source: Fast-dLLM (arXiv 2505.22618), section 3.2, prefix cache. The released loop
    spends one more pass where a block's first pass decodes all of it; this one does not.
    """

    name = "prefix"

    def partial(self, state: DecodeState) -> Tensor:
        return state.columns >= state.block_start[:, None]


class DualCache(_BlockCache):
    """Cache everything outside the active block; recompute the block's b rows, decoded ones included.

    Decides: the block index. Recomputed: L at a block's first step, else b. Decision cost: 0.
    Source: Fast-dLLM (arXiv 2505.22618), section 3.2, DualCache. For shifted models the row before the
    block, which predicts its first token, is recomputed too; the release repeats the first row's logits.
    """

    name = "dual"

    def partial(self, state: DecodeState) -> Tensor:
        return state.in_block
