"""From logits to a Proposal: token, confidence and entropy out of one float32 log-softmax."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.config import GenerationConfig


@dataclass(frozen=True)
class Proposal:
    """What the model would commit at each target, all [B, T]; T pads to the batch's largest count.

    positions: int64, canvas positions, ascending, surplus entries equal L. valid: bool, False on surplus.
    token: int64, never the mask token. confidence: probability of the token, entropy: nats, both of the
    raw float32 distribution at temperature 1. score: the order in which tokens are preferred (the
    confidence unless the config says otherwise; -inf on surplus). deferred: bool, end-of-text that waits
    while a sequence has any other proposal. log_probs: float32 [B, T, V].
    """

    positions: Tensor
    valid: Tensor
    token: Tensor
    confidence: Tensor
    entropy: Tensor
    score: Tensor
    deferred: Tensor
    log_probs: Tensor


def propose(
    logits: Tensor,
    positions: Tensor,
    valid: Tensor,
    config: GenerationConfig,
    mask_token_id: int,
    eos_token_ids: Sequence[int],
    gumbel: Tensor | None = None,
    weight: Tensor | None = None,
) -> Proposal:
    """Read a proposal off logits [B, T, V], already shifted onto the targets.

    gumbel: Gumbel noise [B, T, V] where the config samples, else None (greedy). weight: [B, T], factor of
    the confidence in `score`; None is 1.
    """
    log_probs = logits.float().log_softmax(dim=-1)
    entropy = log_probs.exp().mul_(log_probs).sum(dim=-1).neg_()
    excluded = (mask_token_id, *(eos_token_ids if config.eos == "never" else ()))
    kept = [log_probs[..., column].clone() for column in excluded]
    for column in excluded:
        log_probs[..., column] = float("-inf")
    choice = log_probs
    if gumbel is not None:
        choice = _truncate(choice / config.temperature, config) + gumbel
    token = _argmax(choice)
    for column, values in zip(excluded, kept, strict=True):
        log_probs[..., column] = values
    confidence = log_probs.gather(-1, token[..., None])[..., 0].exp()
    deferred = torch.zeros_like(valid)
    if config.eos == "last":
        ends = torch.isin(token, torch.tensor(eos_token_ids, device=logits.device))
        deferred = ends & (valid & ~ends).any(dim=1, keepdim=True)
    score = confidence if weight is None else confidence * weight
    # Deferred tokens rank below every other one and keep their order among themselves.
    score = torch.where(deferred, score - 2, score).masked_fill(~valid, float("-inf"))
    return Proposal(positions, valid, token, confidence, entropy, score, deferred, log_probs)


def _argmax(scores: Tensor, width: int = 64) -> Tensor:
    """Index of the first largest of [..., V], int64 [...].

    In two steps, over spans and inside the best one: argmax is not vectorised on a CPU, amax is.
    """
    whole = scores.shape[-1] // width * width
    if scores.is_cuda or not whole:
        return scores.argmax(dim=-1)
    spans = scores[..., :whole].unflatten(-1, (-1, width))
    span = spans.amax(dim=-1).argmax(dim=-1, keepdim=True)
    inside = spans.gather(-2, span[..., None].expand(*span.shape, width))[..., 0, :]
    best = inside.argmax(dim=-1, keepdim=True)
    token = span * width + best
    if whole < scores.shape[-1]:
        rest = scores[..., whole:]
        value, index = rest.max(dim=-1, keepdim=True)
        token = torch.where(value > inside.gather(-1, best), whole + index, token)
    return token[..., 0]


def _truncate(log_probs: Tensor, config: GenerationConfig) -> Tensor:
    """-inf outside the top_k tokens and outside the smallest set of probability top_p."""
    if config.top_k is not None and config.top_k < log_probs.shape[-1]:
        smallest = log_probs.topk(config.top_k, dim=-1).values[..., -1:]
        log_probs = log_probs.masked_fill(log_probs < smallest, float("-inf"))
    if config.top_p is not None and config.top_p < 1:
        probs, order = log_probs.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
        dropped = probs.cumsum(dim=-1) - probs >= config.top_p
        log_probs = log_probs.masked_fill(dropped.scatter(-1, order, dropped), float("-inf"))
    return log_probs


class GumbelNoise:
    """Standard Gumbel noise, one generator a slot, so a request's noise ignores batch and padding."""

    def __init__(self, num_slots: int, device: torch.device) -> None:
        self.generators = [torch.Generator(device) for _ in range(num_slots)]
        self.device = device

    def reset(self, slot: int, seed: int) -> None:
        self.generators[slot].manual_seed(seed)

    def draw(self, window: Tensor, positions: Tensor, width: int, vocab_size: int) -> Tensor:
        """Noise [B, T, V] for positions [B, T] of window bool [B, L], `width` rows drawn a sequence.

        A fixed number of rows is drawn per step and the i-th window position takes row i, whatever
        subset of the window is targeted.
        """
        uniform = torch.stack(
            [torch.rand(width, vocab_size, generator=g, device=self.device) for g in self.generators]
        )
        rank = torch.nn.functional.pad(window.cumsum(dim=1) - 1, (0, 1)).gather(1, positions)
        rows = rank.clamp(0, width - 1)[..., None].expand(-1, -1, vocab_size)
        tiny = torch.finfo(torch.float32).tiny
        return -(-uniform.gather(1, rows).clamp(min=tiny).log()).clamp(min=tiny).log()
