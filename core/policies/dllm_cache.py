"""dLLM-Cache: long-interval prompt caching, and a response whose most changed rows are recomputed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.config import require
from core.policies.base import CachePolicy, LayerView, Plan, PolicyConfig
from core.state import DecodeState


@dataclass(frozen=True)
class DLLMCacheConfig(PolicyConfig):
    """kp: steps between refreshes of the prompt (50). kr: steps between refreshes of the response (7).
    ratio: share of the response recomputed in between (0.25).

    The numbers are those released for LLaDA-Instruct on GSM8K.
    """

    kp: int = 50
    kr: int = 7
    ratio: float = 0.25

    def check(self) -> None:
        require(self.kp >= 1, "kp", self.kp, "an integer of at least 1")
        require(self.kr >= 1, "kr", self.kr, "an integer of at least 1")
        require(0 <= self.ratio <= 1, "ratio", self.ratio, "a number from 0 to 1")


class DLLMCache(CachePolicy):
    """Reuse each layer's outputs; refresh the response rows whose value vectors moved most.

    Decides: the step (t mod kp for the prompt, t mod kr for the response, t from 0), and in each layer
    the lowest cosine between the response's fresh and cached V.
    Recomputes: the prompt every kp steps, the response every kr; in between ratio * Y response rows a
    layer and the whole first layer. All other rows add their cached attention and MLP outputs.
    Cost: O(N Y d), V of every response row at every step.
    Source: dLLM-Cache (arXiv 2506.06295), section 4, and its released hooks.
    Differs: one cached increment a row replaces two feature caches, since attention and MLP outputs are
    always refreshed together; padding is never attended to nor part of the prompt; under guidance the
    unconditional copy refreshes the conditional one's rows, where the release has an interval of its own.
    """

    name = "dllm-cache"
    Config = DLLMCacheConfig
    lossless = DLLMCacheConfig(kp=1, kr=1)
    REASONS = ("first step", "reuse", "prompt interval", "response interval", "both intervals")
    layerwise = True
    reads_kept_rows = True

    config: DLLMCacheConfig

    def plan(self, state: DecodeState) -> Plan:
        prompt_due = state.step % self.config.kp == 0
        response_due = state.step % self.config.kr == 0
        reason = 1 + prompt_due.long() + 2 * response_due.long()
        response = (state.columns >= state.prompt_len).expand_as(state.valid)
        whole = torch.where(response, response_due[:, None], prompt_due[:, None])

        def per_layer(layer: int, view: LayerView) -> Tensor:
            if layer == 0:
                return torch.ones_like(whole)
            # Without adaptive updates the release leaves V alone too.
            if not self.config.ratio:
                return whole
            before = view.values(state.prompt_len).clone()
            return whole | self.most_changed(state, before, view.swap_values(state.prompt_len))

        return Plan(refresh=whole, reason=reason, per_layer=per_layer)

    def most_changed(self, state: DecodeState, before: Tensor, fresh: Tensor) -> Tensor:
        """The ratio * G response rows of lowest cosine between V [B, G, R, D] before and now, bool [B, L]."""
        similarity = torch.nn.functional.cosine_similarity(
            before.transpose(1, 2).flatten(2).float(), fresh.transpose(1, 2).flatten(2).float(), dim=-1
        )
        count = int(self.config.ratio * similarity.shape[1])
        order = similarity.sort(dim=1, stable=True).indices[:, :count]
        chosen = torch.zeros_like(state.valid)
        return chosen.scatter(1, order + state.prompt_len, True)
