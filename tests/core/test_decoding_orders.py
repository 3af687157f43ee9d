"""The sliding window and the density order, apart from any cache: in batches, and against plain loops."""

import math

import pytest
import torch
from transformers import PreTrainedModel

from core import POLICIES, GenerationConfig, LanguageModel, create_policy
from core.state import DecodeState
from core.unmask import certainty_density
from tests.invariants.runs import config, decode, eager_policy
from tests.tiny import MASK, PROMPTS, SHIFT, reference_logits

SLIDING = [name for name, policy in POLICIES.items() if not policy.needs_blocks]


def density(decoded: list[bool], at: int, sigma: float = 10.0) -> float:
    """Share of decoded positions around `at`; before the generation all are, after it as its last token."""
    radius, hit, total = math.ceil(4 * sigma), 0.0, 0.0
    for other in range(at - radius, at + radius + 1):
        weight = math.exp(-0.5 * ((other - at) / sigma) ** 2)
        hit += weight * (other < 0 or decoded[min(other, len(decoded) - 1)])
        total += weight
    return hit / total


def loop(
    model: PreTrainedModel, shift: int, prompt: list[int], generation: GenerationConfig
) -> list[list[int]]:
    """Generated positions committed at each step: a plain loop over transformers' model, no cache."""
    start, canvas, steps = len(prompt), prompt + [MASK] * generation.gen_length, []
    while MASK in canvas:
        masks = [at for at in range(start, len(canvas)) if canvas[at] == MASK]
        width = generation.block_length
        block = [at for at in masks if (at - start) // width == (masks[0] - start) // width]
        logits = reference_logits(model, torch.tensor([canvas]))[0]
        sure: dict[int, float] = {}
        tokens: dict[int, int] = {}
        for at in masks[:width] if generation.window == "sliding" else block:
            p = logits[at - shift].softmax(dim=-1)
            p[MASK] = -1
            sure[at], tokens[at] = float(p.max()), int(p.argmax())
        score = dict(sure)
        if generation.order == "density":
            decoded = [canvas[at] != MASK for at in range(start, len(canvas))]
            score = {at: sure[at] * density(decoded, at - start) for at in sure}
        best = min(score, key=lambda at: (-score[at], at))
        chosen = [at for at in sorted(sure) if at == best or sure[at] >= generation.threshold]
        for at in chosen:
            canvas[at] = tokens[at]
        steps.append([at - start for at in chosen])
    return steps


@pytest.mark.parametrize("threshold", [0.35, 1.0])
@pytest.mark.parametrize(
    ("window", "order"), [("sliding", "confidence"), ("block", "density"), ("sliding", "density")]
)
def test_no_cache_decodes_in_the_order_of_a_plain_loop(
    model: LanguageModel, reference: PreTrainedModel, family: str, window: str, order: str, threshold: float
) -> None:
    generation = GenerationConfig(
        gen_length=16, block_length=8, threshold=threshold, window=window, order=order
    )
    for run in decode(model, PROMPTS[:2], generation, create_policy("none")):
        assert run.committed == loop(reference, SHIFT[family], list(run.prompt_ids), generation)


@pytest.mark.parametrize("family", ["llada", "dream"])
@pytest.mark.parametrize("name", SLIDING)
def test_a_sliding_window_decodes_alike_in_any_batch(model: LanguageModel, name: str) -> None:
    generation = config("threshold", window="sliding", order="density")
    together = decode(model, PROMPTS, generation, eager_policy(name), slots=2)
    for prompt, run in zip(PROMPTS, together, strict=True):
        alone = decode(model, [prompt], generation, eager_policy(name))[0]
        assert (run.tokens, run.committed, run.computed) == (alone.tokens, alone.committed, alone.computed)


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in SLIDING])
def test_policies_defined_by_blocks_refuse_a_sliding_window(
    models: dict[str, LanguageModel], name: str
) -> None:
    with pytest.raises(ValueError, match=f"policy {name} works block by block"):
        decode(models["llada"], PROMPTS[:1], config(window="sliding"), create_policy(name))


def test_equal_densities_stay_equal_whatever_the_padding() -> None:
    """Far from anything decoded the density is 0 alike, and a shifted canvas gives the same bits."""
    seen = []
    for prompt_len in (1, 2, 9):
        state = DecodeState.empty(2, prompt_len, 200, 200, False, 0, torch.device("cpu"))
        state.admit(0, [3], MASK, 0)
        state.admit(1, [3] * prompt_len, MASK, 0)
        committed = torch.zeros(2, prompt_len + 200, dtype=torch.bool)
        committed[:, prompt_len + 60] = True
        state.commit(committed, torch.full_like(state.tokens, 3))
        values = certainty_density(state)[:, prompt_len:]
        seen.append(values)
        assert torch.equal(values[0], values[1])
        assert values[0, 120:].unique().numel() == 1
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])
