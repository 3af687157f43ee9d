"""Unmask rules: which proposals are committed this step. Every rule commits the best one at least."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from core.config import GenerationConfig
from core.sampling import Proposal
from core.state import DecodeState


class UnmaskRule(ABC):
    """Base of the rules; `select` returns bool [B, T], the targets to commit."""

    name: ClassVar[str]

    def __init__(self, config: GenerationConfig) -> None:
        self.config = config

    def reset(self, slots: Tensor) -> None:
        """New sequences in these slots, bool [B]."""

    @abstractmethod
    def select(self, proposal: Proposal, state: DecodeState) -> Tensor:
        """The targets to commit among the valid ones, bool [B, T]."""


def rank(score: Tensor) -> Tensor:
    """Place of each target in descending score, int64 [B, T]; ties go to the earlier position."""
    order = score.sort(dim=-1, descending=True, stable=True).indices
    return order.argsort(dim=-1)


def best(score: Tensor) -> Tensor:
    """The target of rank 0 alone, bool [B, T]."""
    first = score.argmax(dim=-1, keepdim=True)
    return torch.zeros_like(score, dtype=torch.bool).scatter_(-1, first, True)


def certainty_density(state: DecodeState, sigma: float = 10.0) -> Tensor:
    """Share of decoded positions around each one under a Gaussian of width sigma, float [B, L].

    Positions left of the response count as decoded, those right of it as its last token does
    (d2Cache, arXiv 2509.23094, certainty density).
    """
    radius = math.ceil(4 * sigma)
    # Double, so that rounding, which may vary with the batch, does not order equal densities.
    offsets = torch.arange(-radius, radius + 1, device=state.tokens.device, dtype=torch.double)
    kernel = torch.exp(-0.5 * (offsets / sigma) ** 2)
    decoded = (~state.masked).double()
    left = torch.ones(decoded.shape[0], radius, device=decoded.device, dtype=torch.double)
    right = decoded[:, -1:].expand(-1, radius)
    padded = torch.cat((left, decoded, right), dim=1)[:, None]
    return torch.nn.functional.conv1d(padded, (kernel / kernel.sum())[None, None])[:, 0].float()


def scheduled(config: GenerationConfig, state: DecodeState) -> Tensor:
    """LLaDA's schedule: tokens to commit this step, int64 [B].

    A block's masks are spread evenly over its steps, the first ones taking one more
    (get_num_transfer_tokens of LLaDA's generate.py).
    """
    if state.sliding:
        masks, steps, step = config.gen_length, config.quota_steps, state.step
    else:
        masks, steps = config.block_length, config.quota_steps // config.num_blocks
        step = state.block_step
    return masks // steps + (step < masks % steps).long()


class Quota(UnmaskRule):
    """A fixed number of the most confident tokens a step (LLaDA, arXiv 2502.09992)."""

    name = "quota"

    def select(self, proposal: Proposal, state: DecodeState) -> Tensor:
        return rank(proposal.score) < scheduled(self.config, state)[:, None]


class Threshold(UnmaskRule):
    """Every token of confidence >= threshold (Fast-dLLM, arXiv 2505.22618, section 3.3)."""

    name = "threshold"

    def select(self, proposal: Proposal, state: DecodeState) -> Tensor:
        sure = (proposal.confidence >= self.config.threshold) & ~proposal.deferred
        return sure | best(proposal.score)


class Factor(UnmaskRule):
    """The largest n with (n + 1)(1 - c_n) < factor, c_n the n-th best confidence (Fast-dLLM)."""

    name = "factor"

    def select(self, proposal: Proposal, state: DecodeState) -> Tensor:
        place = rank(proposal.score)
        sure = ((place + 2) * (1 - proposal.confidence) < self.config.factor) & ~proposal.deferred
        # A prefix of the order: nothing after the first that fails.
        failed = torch.where(sure | ~proposal.valid, place.shape[1], place).amin(dim=1, keepdim=True)
        return (place < failed) | (place == 0)


class EntropyBound(UnmaskRule):
    """The largest prefix with sum(entropy) - max(entropy) <= bound (EB-Sampler, arXiv 2505.24857)."""

    name = "entropy-bound"

    def select(self, proposal: Proposal, state: DecodeState) -> Tensor:
        order = proposal.score.sort(dim=-1, descending=True, stable=True).indices
        entropy = proposal.entropy.masked_fill(~proposal.valid | proposal.deferred, float("inf"))
        entropy = entropy.gather(1, order)
        excess = entropy.cumsum(dim=1) - entropy.cummax(dim=1).values
        fits = (excess <= self.config.entropy_bound).cumprod(dim=1).bool()
        fits[:, 0] = True
        return torch.zeros_like(fits).scatter(1, order, fits)


class Klass(UnmaskRule):
    """Confident and stable tokens, else LLaDA's schedule (KLASS, arXiv 2511.05664).

    Stable: KL(p_t || p_t-1) < kl_threshold in the last kl_history comparisons. A row that was not a
    target in the previous step has nothing to compare with and is not stable, so that a block commits by
    stability from its step kl_history + 1 on.
    """

    name = "klass"

    def __init__(self, config: GenerationConfig) -> None:
        super().__init__(config)
        self.previous: tuple[Tensor, Tensor] | None = None
        self.run: Tensor | None = None

    def reset(self, slots: Tensor) -> None:
        if self.run is not None:
            self.run = self.run.masked_fill(slots[:, None], 0)
        if self.previous is not None:
            index, log_probs = self.previous
            self.previous = index.masked_fill(slots[:, None], -1), log_probs

    def select(self, proposal: Proposal, state: DecodeState) -> Tensor:
        stable = self._stable(proposal, state.tokens.shape[1])
        chosen = stable & (proposal.confidence > self.config.threshold) & ~proposal.deferred
        fallback = rank(proposal.score) < scheduled(self.config, state)[:, None]
        return torch.where(chosen.any(dim=1, keepdim=True), chosen, fallback)

    def _stable(self, proposal: Proposal, length: int) -> Tensor:
        positions, log_probs = proposal.positions, proposal.log_probs
        batch, count = positions.shape
        run = torch.zeros(batch, length + 1, dtype=torch.long, device=positions.device)
        if self.previous is not None and self.run is not None:
            index, before = self.previous
            at = index.gather(1, positions)
            rows = at.clamp(min=0)[..., None].expand(-1, -1, log_probs.shape[-1])
            kl = (log_probs.exp() * (log_probs - before.gather(1, rows))).sum(dim=-1)
            close = (at >= 0) & (kl < self.config.kl_threshold)
            longer = torch.where(close, self.run.gather(1, positions) + 1, 0)
            run.scatter_(1, positions, longer)
        index = torch.full((batch, length + 1), -1, dtype=torch.long, device=positions.device)
        index.scatter_(1, positions, torch.arange(count, device=positions.device).expand_as(positions))
        index[:, length] = -1
        self.previous, self.run = (index, log_probs), run
        return (run.gather(1, positions) >= self.config.kl_history) & proposal.valid


UNMASK_RULES: dict[str, type[UnmaskRule]] = {
    rule.name: rule for rule in (Quota, Threshold, Factor, EntropyBound, Klass)
}
