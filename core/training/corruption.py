"""LLaDA's objective: which positions are masked, and the weight of each in the loss."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.training.batches import Batch
from core.training.recipe import Recipe
from core.training.tokenizer import MASK_ID


@dataclass(frozen=True)
class Corrupted:
    """tokens int [B, T] with masks; targets int [M] and weights float [M] at the flat `rows` int [M]."""

    tokens: Tensor
    rows: Tensor
    targets: Tensor
    weights: Tensor


def corrupt(batch: Batch, recipe: Recipe, generator: torch.Generator) -> Corrupted:
    """Mask each response token with probability t ~ U(min_mask_rate, 1), stratified, loss weighted 1/t.

    Half of the rows with worked examples also mask the examples' answers. Of all other rows a share
    `block_states` takes the canvases that block-wise decoding visits: left of a random block clean,
    right of it all masked, the block itself masked with t and weighted by (blocks / t).
    """
    tokens = batch.tokens
    count, width = tokens.shape
    column = torch.arange(width)
    start, stop = batch.response_start[:, None], batch.response_stop[:, None]
    response = column >= start
    rate = (torch.arange(count) + torch.rand(count, generator=generator)) / count
    rate = rate[torch.randperm(count, generator=generator)]
    rate = (recipe.min_mask_rate + (1 - recipe.min_mask_rate) * rate)[:, None]
    hit = torch.rand(count, width, generator=generator) < rate
    dense = batch.shown.any(1, keepdim=True) & (torch.rand(count, 1, generator=generator) < 0.5)
    blockwise = ~dense & (torch.rand(count, 1, generator=generator) < recipe.block_states)

    blocks = (stop - start + recipe.block_length - 1) // recipe.block_length
    chosen = (torch.rand(count, 1, generator=generator) * blocks).long()
    block_of = (column - start).div(recipe.block_length, rounding_mode="floor")
    in_block = response & (block_of == chosen)
    beyond = response & (block_of > chosen)

    eligible = torch.where(blockwise, in_block, response | (batch.shown & dense))
    scored = eligible & hit
    masked = scored | (blockwise & beyond)
    real = (response & (column < stop)) | (batch.shown & dense)
    weight = torch.where(blockwise, blocks, 1) / rate / real.sum(1, keepdim=True) / count
    rows = scored.flatten().nonzero().squeeze(1)
    return Corrupted(
        tokens=tokens.masked_fill(masked, MASK_ID),
        rows=rows,
        targets=tokens.flatten()[rows],
        weights=weight.expand(count, width).flatten()[rows],
    )
