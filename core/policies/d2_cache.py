"""d2Cache: certain masks first, then what attention rollout says the rest depends on."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.config import GenerationConfig, one_of, require
from core.models.spec import ModelSpec
from core.policies.base import CachePolicy, Outcome, Plan, PolicyConfig
from core.state import DecodeState
from core.unmask import certainty_density


@dataclass(frozen=True)
class D2CacheConfig(PolicyConfig):
    """Defaults of the release. current_k: masks recomputed a step (32). rollout_p: share of the remaining
    rollout importance that is recomputed (0.1). sigma: width of the certainty density in positions (10).
    inflate: positions between two successive chosen ones are recomputed too if the columns of these differ by
    at most this, so that 4 fills gaps of up to 3 (4, the release's with blocks of 32).
    rollout: `vector` evaluates the importance in O(N |C| L), `matrix` multiplies the L x L matrices as the
    release does; both give the same numbers.
    """

    current_k: int = 32
    rollout_p: float = 0.1
    sigma: float = 10.0
    inflate: int = 4
    rollout: str = one_of("vector", "matrix", default="vector")

    def check(self) -> None:
        require(self.current_k >= 1, "current_k", self.current_k, "an integer of at least 1")
        require(0 <= self.rollout_p <= 1, "rollout_p", self.rollout_p, "a number from 0 to 1")
        require(0 < self.sigma <= 10_000, "sigma", self.sigma, "a number above 0 and up to 10000")
        require(0 <= self.inflate <= 1_000_000, "inflate", self.inflate, "an integer from 0 to 1000000")


class D2Cache(CachePolicy):
    """Recompute the most certain masks, the tokens just committed and a nucleus of attention rollout.

    Decides: every step, confidence times certainty density picks the masks, attention rollout the rest.
    Recomputes: current_k masks, the tokens just committed, a nucleus of rollout_p of the other positions'
    importance, and what lies between two of these at most `inflate` apart; no other may be decoded. L at
    the first step alone.
    Cost: attention weights of every row, then O(N |C| L) (`vector`) or O(N L^3) (`matrix`, as released).
    Source: d2Cache (arXiv 2509.23094), section 4, and its released code.
    Differs: three faults of the release are not repeated: its confidence cache keeps the first step's
    values, rows that were not computed may be committed, and short rows are topped up, so that a sequence
    depends on its batch. In a shifted model the row left of a chosen mask is added, not put in its place.
    Logits exist for the window's masks alone; others rank behind them, those never seen by position. The
    density order of decoding is `order=density` of the generation settings, apart from the cache.
    """

    name = "d2cache"
    Config = D2CacheConfig
    lossless = D2CacheConfig(current_k=2**30, rollout_p=1.0)
    REASONS = ("first step", "rollout")

    config: D2CacheConfig

    def start(self, state: DecodeState, spec: ModelSpec, generation: GenerationConfig) -> None:
        shape = state.tokens.shape
        self.confidence = torch.zeros(shape, device=state.tokens.device)
        self.importance = torch.zeros(shape, device=state.tokens.device)
        self.attention: list[tuple[Tensor, Tensor]] = []

    def reset(self, state: DecodeState, slots: Tensor) -> None:
        self.confidence = self.confidence.masked_fill(slots[:, None], 0)
        self.importance = self.importance.masked_fill(slots[:, None], 0)

    def plan(self, state: DecodeState) -> Plan:
        refresh = self.certain_masks(state) | state.just_decoded
        refresh = refresh | self.nucleus(state.valid & ~refresh)
        refresh = self.inflated(refresh)
        return Plan(
            refresh=refresh,
            reason=torch.ones_like(state.step),
            decode=refresh | (state.step == 0)[:, None],
            on_attention=self.keep_attention,
        )

    def certain_masks(self, state: DecodeState) -> Tensor:
        """The current_k masks of highest confidence x density in the search range, bool [B, L].

        The range ends with the block that holds the current_k-th mask left.
        """
        masked, columns, length = state.masked, state.columns, state.tokens.shape[1]
        enough = masked.cumsum(dim=1) >= self.config.current_k
        kth = torch.where(enough.any(dim=1), enough.int().argmax(dim=1), length - 1)
        blocks = (kth - state.prompt_len) // state.block_length + 1
        stop = state.prompt_len + blocks * state.block_length
        search = masked & (columns >= state.block_start[:, None]) & (columns < stop[:, None])
        score = self.confidence * certainty_density(state, self.config.sigma)
        # The window's masks come first, so that something can be decoded.
        score = torch.where(state.window, score + 2, score).masked_fill(~search, -1)
        order = score.sort(dim=1, descending=True, stable=True).indices[:, : self.config.current_k]
        return torch.zeros_like(search).scatter(1, order, True) & search

    def nucleus(self, rest: Tensor) -> Tensor:
        """Positions of `rest` that hold up to rollout_p of its importance, one at least, bool [B, L]."""
        ranked, order = self.importance.masked_fill(~rest, -1).sort(dim=1, descending=True, stable=True)
        held = ranked.clamp(min=0).cumsum(dim=1)
        # Against the sum's own last entry, so that a share of 1 is everything in any rounding.
        inside = held <= self.config.rollout_p * held[:, -1:]
        inside[:, 0] = True
        return torch.zeros_like(rest).scatter(1, order, inside) & rest

    def inflated(self, chosen: Tensor) -> Tensor:
        """Fill gaps: positions between two chosen ones at most `inflate` apart, bool [B, L]."""
        length = chosen.shape[1]
        columns = torch.arange(length, device=chosen.device)
        # Beyond either end the next chosen position is too far away to count.
        far = length + self.config.inflate + 1
        before = torch.where(chosen, columns, -far).cummax(dim=1).values
        after = torch.where(chosen, columns, far).flip(1).cummin(dim=1).values.flip(1)
        return chosen | (after - before <= self.config.inflate)

    def keep_attention(self, layer: int, weights: Tensor, rows: Tensor) -> None:
        self.attention.append((weights.mean(dim=1), rows))

    def observe(self, state: DecodeState, outcome: Outcome) -> None:
        proposal = outcome.proposal
        seen = torch.nn.functional.pad(self.confidence, (0, 1))
        values = torch.where(proposal.valid, proposal.confidence, 0)
        self.confidence = seen.scatter(1, proposal.positions, values)[:, :-1]
        rollout = vector_rollout if self.config.rollout == "vector" else matrix_rollout
        self.importance = rollout(self.attention, state.tokens.shape[1])
        self.attention = []


def vector_rollout(attention: list[tuple[Tensor, Tensor]], length: int) -> Tensor:
    """Column sums of the rollout A'_N ... A'_1, float [B, L], without building it.

    attention: per layer, head-mean weights [B, R, L] and rows int [B, R] (surplus entries equal L, their
    weights 0). A'_l = rownorm(A_l + I), the identity for rows that were not queries (Abnar & Zuidema
    2020, as used by d2Cache). The row vector of ones is multiplied from the last layer backwards.
    """
    batch = attention[0][0].shape[0]
    total = torch.ones(batch, length + 1, device=attention[0][0].device)
    total[:, length] = 0
    for weights, rows in reversed(attention):
        weights = weights.float()
        share = total.gather(1, rows) / (weights.sum(dim=2) + 1)
        kept = total.scatter(1, rows, share)
        spread = (share[:, None] @ weights)[:, 0]
        total = kept + torch.nn.functional.pad(spread, (0, 1))
        total[:, length] = 0
    return total[:, :length]


def matrix_rollout(attention: list[tuple[Tensor, Tensor]], length: int) -> Tensor:
    """The same importance by multiplying the [L, L] matrices layer by layer, as the release does."""
    batch, device = attention[0][0].shape[0], attention[0][0].device
    rollout = torch.eye(length, device=device).expand(batch, -1, -1)
    for weights, rows in attention:
        matrix = torch.eye(length + 1, device=device).repeat(batch, 1, 1)
        index = rows[:, :, None].expand(-1, -1, length + 1)
        matrix.scatter_(1, index, torch.nn.functional.pad(weights.float(), (0, 1)))
        matrix = matrix[:, :length, :length] + torch.eye(length, device=device)
        rollout = matrix / matrix.sum(dim=2, keepdim=True) @ rollout
    return rollout.sum(dim=1)
