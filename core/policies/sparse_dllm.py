"""Sparse-dLLM: dual caching with half of the cached positions evicted until the next block."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.config import GenerationConfig, require
from core.models.spec import ModelSpec
from core.policies.base import CachePolicy, Plan, PolicyConfig
from core.state import DecodeState


@dataclass(frozen=True)
class SparseDLLMConfig(PolicyConfig):
    """keep_ratio: share of the positions outside the block that stay visible (0.5). kernel: width of the
    max-pooling of their scores along positions (3, odd).
    """

    keep_ratio: float = 0.5
    kernel: int = 3

    def check(self) -> None:
        require(0 < self.keep_ratio <= 1, "keep_ratio", self.keep_ratio, "above 0 and up to 1")
        odd = 1 <= self.kernel <= 10_001 and self.kernel % 2 == 1
        require(odd, "kernel", self.kernel, "an odd integer from 1 to 10001")


class SparseDLLM(CachePolicy):
    """Recompute the block; outside it only the positions that the block's queries score highest are seen.

    Decides: once a block, at its second step, which keys each layer keeps.
    Recomputes: L in a block's first two steps, else the block's b rows. Visible are the block and
    keep_ratio of the rest; other keys are evicted until the next block.
    Cost: O(N b L d) once a block, and the attention weights of that step.
    Source: Sparse-dLLM (arXiv 2508.02558), section 3, and its released cache.
    Differs: scores are read off the attention weights (the mean of their logs differs from that of q.k by
    a constant); a maximum over neighbours does not reach across the block; batches and padding work,
    where the release takes one sequence.
    """

    name = "sparse"
    Config = SparseDLLMConfig
    REASONS = ("first step", "reuse", "block start")
    needs_blocks = True

    config: SparseDLLMConfig

    def start(self, state: DecodeState, spec: ModelSpec, generation: GenerationConfig) -> None:
        shape = (spec.num_layers, *state.tokens.shape)
        self.kept = torch.ones(shape, dtype=torch.bool, device=state.tokens.device)

    def plan(self, state: DecodeState) -> Plan:
        starting = state.block_step <= 1
        visible = self.kept | state.in_block | starting[:, None]
        building = state.block_step == 1

        def on_attention(layer: int, weights: Tensor, rows: Tensor) -> None:
            kept = self.best(weights, rows, state)
            self.kept[layer] = torch.where(building[:, None], kept, self.kept[layer])

        return Plan(
            refresh=state.in_block | starting[:, None],
            reason=torch.where(starting, 2, 1),
            visible=visible,
            on_attention=on_attention,
            watched=building,
        )

    def best(self, weights: Tensor, rows: Tensor, state: DecodeState) -> Tensor:
        """The keep_ratio of valid positions outside the block with the highest pooled score, bool [B, L]."""
        outside = state.valid & ~state.in_block
        queries = torch.nn.functional.pad(state.in_block, (0, 1)).gather(1, rows)
        logs = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        score = (logs.mean(dim=1) * queries[..., None]).sum(dim=1)
        score = score.masked_fill(~outside, float("-inf"))[:, None]
        width = self.config.kernel
        pooled = torch.nn.functional.max_pool1d(score, width, stride=1, padding=width // 2)[:, 0]
        ranked = pooled.masked_fill(~outside, float("-inf")).sort(dim=1, descending=True, stable=True)
        place = ranked.indices.argsort(dim=1)
        count = (outside.sum(dim=1, keepdim=True) * self.config.keep_ratio).floor()
        return outside & (place < count)
