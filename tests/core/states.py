"""Hand-made decoding histories: what a policy is asked at a given moment, and what it answers."""

import torch
from torch import Tensor

from core import CachePolicy, GenerationConfig, ModelSpec
from core.policies.base import Outcome, Plan
from core.sampling import Proposal
from core.state import DecodeState

SPEC = ModelSpec(
    family="hand-made",
    vocab_size=16,
    hidden_size=8,
    intermediate_size=8,
    num_layers=3,
    num_heads=2,
    num_kv_heads=2,
    head_dim=4,
    rope_theta=10000.0,
    rms_norm_eps=1e-6,
    max_positions=64,
    mask_token_id=15,
    eos_token_ids=(0,),
    pad_token_id=0,
)


class Story:
    """One or more sequences told step by step: which positions are committed, how uncertain they were."""

    def __init__(
        self, policy: CachePolicy, prompts: list[int], gen_length: int, block_length: int, **settings: object
    ) -> None:
        config = GenerationConfig(gen_length=gen_length, block_length=block_length, **settings)  # type: ignore[arg-type]
        self.policy, self.prompt_len = policy, max(prompts)
        sliding = config.window == "sliding"
        self.state = DecodeState.empty(
            len(prompts), self.prompt_len, gen_length, block_length, sliding, 0, torch.device("cpu")
        )
        policy.start(self.state, SPEC, config)
        for slot, length in enumerate(prompts):
            self.state.admit(slot, list(range(1, 1 + length)), SPEC.mask_token_id, SPEC.pad_token_id)
        policy.reset(self.state, self.state.active)

    def plan(self) -> Plan:
        return self.policy.plan(self.state)

    def rows(self) -> Tensor:
        """bool [B, L]: what the policy asks for, with the engine's own rule for step 0 and padding."""
        return (self.plan().refresh | (self.state.step == 0)[:, None]) & self.state.valid

    def refresh(self, slot: int = 0) -> list[int]:
        """Canvas positions recomputed in the coming step."""
        return self.rows()[slot].nonzero().flatten().tolist()

    def reason(self, slot: int = 0) -> str:
        return self.policy.REASONS[int(self.plan().reason[slot])]

    def step(self, *commits: dict[int, float]) -> None:
        """One step: for each sequence, generated positions -> entropy in nats of the token committed."""
        length, rows = self.state.tokens.shape[1], self.rows()
        full = (rows | ~self.state.valid).all(dim=1)
        committed, entropy = torch.zeros_like(rows), torch.zeros(rows.shape)
        for slot, chosen in enumerate(commits):
            for position, nats in chosen.items():
                committed[slot, self.prompt_len + position] = True
                entropy[slot, self.prompt_len + position] = nats
        self.state.commit(committed, torch.full_like(self.state.tokens, 3))
        outcome = Outcome(committed, proposal(entropy, length), full, rows * SPEC.num_layers)
        self.policy.observe(self.state, outcome)
        self.state.advance()


def proposal(entropy: Tensor, length: int) -> Proposal:
    """Every position a target, position by position; only the entropies matter."""
    positions = torch.arange(length).expand_as(entropy)
    flat = torch.full_like(entropy, 0.5)
    return Proposal(
        positions=positions,
        valid=torch.ones_like(positions, dtype=torch.bool),
        token=torch.full_like(positions, 3),
        confidence=flat,
        entropy=entropy,
        score=flat,
        deferred=torch.zeros_like(positions, dtype=torch.bool),
        log_probs=torch.zeros(*entropy.shape, SPEC.vocab_size),
    )
