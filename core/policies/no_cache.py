"""No cache: every position is recomputed at every step."""

import torch

from core.policies.base import CachePolicy, Plan, PolicyConfig
from core.state import DecodeState


class NoCache(CachePolicy):
    """Recompute everything: the exact baseline of every other policy.

    Decides: nothing.
    Recomputes: all L positions in all N layers, every step.
    Cost: 0.
    Source: LLaDA's generate.py (arXiv 2502.09992) and Dream's sampler.
    Differs: logits are computed for the masks that may be decoded, not for all L positions.
    """

    name = "none"
    lossless = PolicyConfig()
    REASONS = ("first step", "no cache")

    def plan(self, state: DecodeState) -> Plan:
        return Plan(refresh=state.valid, reason=torch.ones_like(state.step))
