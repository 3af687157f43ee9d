"""Elastic-Cache: watch the most attended token of each layer; refresh the deeper layers once it drifts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.config import GenerationConfig, require
from core.models.spec import ModelSpec
from core.policies.base import CachePolicy, LayerView, Plan, PolicyConfig
from core.rows import row_index
from core.state import DecodeState


@dataclass(frozen=True)
class ElasticCacheConfig(PolicyConfig):
    """gamma: cosine similarity of the tracked token's attention below which the deeper layers are
    refreshed (0.9).

    The paper decodes the leftmost 16 masks: `window=sliding, block_length=16` of the generation config,
    apart from the cache.
    """

    gamma: float = 0.9

    def check(self) -> None:
        require(self.gamma >= 0, "gamma", self.gamma, "a number from 0 up (above 1 always refreshes)")


class ElasticCache(CachePolicy):
    """Recompute the window, the last commits and the tracked tokens; everything after a layer that drifted.

    Decides: in each layer, the cosine between the tracked token's attention from past and from current Q
    and K, averaged over heads. Below gamma at layer l, all rows of the layers after l are recomputed.
    Recomputes: the window's masks, the tokens just committed and the tracked token of every layer (the
    decoded one that received most attention from the window); L from some layer on.
    Cost: O(N L H D) and attention weights of every row; Q, K, V and the increments stay in memory, about
    four d-wide tensors a layer.
    Source: Elastic-Cache (arXiv 2510.14973), section 3 and algorithm 1.
    Differs: masks to the right of an end-of-text stay (`stop_at_eos` ends a sequence for every policy
    alike); the release has no shifted models, here the row that predicts a target is always recomputed.
    Its sliding window of 16 is `window=sliding, block_length=16` of the generation settings.
    """

    name = "elastic"
    Config = ElasticCacheConfig
    lossless = ElasticCacheConfig(gamma=1.1)
    REASONS = ("first step", "window", "gamma above 1")
    layerwise = True
    keeps_queries = True

    config: ElasticCacheConfig

    def start(self, state: DecodeState, spec: ModelSpec, generation: GenerationConfig) -> None:
        shape, device = state.step.shape, state.step.device
        # The last prompt token is tracked until attention has been seen.
        self.tracked = torch.full((spec.num_layers, *shape), state.prompt_len - 1, device=device)
        self.always = self.config.gamma > 1
        self.refreshing = torch.zeros(shape, dtype=torch.bool, device=device)
        self.past: Tensor | None = None

    def reset(self, state: DecodeState, slots: Tensor) -> None:
        self.tracked = self.tracked.masked_fill(slots, state.prompt_len - 1)

    def plan(self, state: DecodeState) -> Plan:
        # A bound above 1 asks for refreshes from the first layer, which is no cache at all.
        self.refreshing = torch.full_like(state.active, self.always) | (state.step == 0)
        followed = torch.zeros_like(state.valid).scatter(1, self.tracked.T, True)
        queries = state.window | state.just_decoded | followed

        def per_layer(layer: int, view: LayerView) -> Tensor:
            self.past = view.attention_rows(self.tracked[layer])
            return queries | self.refreshing[:, None]

        def on_attention(layer: int, weights: Tensor, rows: Tensor) -> None:
            self.compare(layer, weights, rows)
            self.follow(layer, weights, rows, state)

        return Plan(
            refresh=queries,
            reason=torch.full_like(state.step, 2 if self.always else 1),
            per_layer=per_layer,
            on_attention=on_attention,
        )

    def compare(self, layer: int, weights: Tensor, rows: Tensor) -> None:
        """Refresh from the next layer on where the tracked token's attention has drifted."""
        assert self.past is not None
        at = row_index(rows, self.tracked[layer][:, None])
        index = at[:, None, :, None].expand(-1, weights.shape[1], 1, weights.shape[3])
        now = weights.gather(2, index)[:, :, 0]
        similarity = torch.nn.functional.cosine_similarity(self.past, now, dim=-1).mean(dim=1)
        self.refreshing = self.refreshing | (similarity < self.config.gamma)

    def follow(self, layer: int, weights: Tensor, rows: Tensor, state: DecodeState) -> None:
        """Track the decoded token that the window's queries attend to most."""
        windowed = torch.nn.functional.pad(state.window, (0, 1)).gather(1, rows)
        received = (weights.mean(dim=1) * windowed[..., None]).sum(dim=1)
        decoded = state.valid & ~state.masked
        best = received.masked_fill(~decoded, -1).argmax(dim=1)
        self.tracked = self.tracked.clone()
        self.tracked[layer] = torch.where(windowed.any(dim=1), best, self.tracked[layer])
