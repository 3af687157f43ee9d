"""`none` against a plain loop over transformers' own model, which shares no code with the engine."""

import pytest
import torch
from transformers import PreTrainedModel

from core import LanguageModel, create_policy
from tests.invariants.runs import BLOCK, GEN, config, decode, with_eos
from tests.tiny import MASK, PROMPTS, SHIFT, reference_logits


def reference_decode(
    model: PreTrainedModel, shift: int, prompt: list[int], threshold: float | None, per_step: int, block: int
) -> tuple[list[int], list[list[int]]]:
    """Tokens and the positions committed at each step, greedy, block by block."""
    canvas, committed = prompt + [MASK] * GEN, []
    for start in range(len(prompt), len(canvas), block):
        while MASK in canvas[start : start + block]:
            logits = reference_logits(model, torch.tensor([canvas]))[0]
            best: dict[int, tuple[float, int]] = {}
            for i in range(start, start + block):
                if canvas[i] == MASK:
                    p = logits[i - shift].softmax(dim=-1)
                    p[MASK] = -1
                    best[i] = (float(p.max()), int(p.argmax()))
            order = sorted(best, key=lambda i: (-best[i][0], i))
            if threshold is None:
                chosen = order[:per_step]
            else:
                chosen = order[:1] + [i for i in order[1:] if best[i][0] >= threshold]
            for i in chosen:
                canvas[i] = best[i][1]
            committed.append(sorted(i - len(prompt) for i in chosen))
    return canvas[len(prompt) :], committed


@pytest.mark.parametrize("block", [BLOCK, GEN])
@pytest.mark.parametrize("prompt", PROMPTS, ids=len)
@pytest.mark.parametrize(("rule", "threshold", "per_step"), [
    ("one a step", None, 1),
    ("quota", None, 3),
    ("threshold", 0.35, 0),
])  # fmt: skip
def test_no_cache_decodes_as_the_reference_loop(
    model: LanguageModel,
    reference: PreTrainedModel,
    family: str,
    rule: str,
    threshold: float | None,
    per_step: int,
    prompt: list[int],
    block: int,
) -> None:
    tokens, committed = reference_decode(reference, SHIFT[family], prompt, threshold, per_step, block)
    run = decode(model, [prompt], config(rule, block_length=block), create_policy("none"))[0]
    assert run.tokens == tokens
    assert run.committed == committed


def test_a_batch_decodes_as_the_reference_loop(
    model: LanguageModel, reference: PreTrainedModel, family: str
) -> None:
    runs = decode(model, PROMPTS, config("threshold"), create_policy("none"))
    for prompt, run in zip(PROMPTS, runs, strict=True):
        assert run.committed == reference_decode(reference, SHIFT[family], prompt, 0.35, 0, BLOCK)[1]


def test_guidance_is_llada_s_formula(model: LanguageModel, reference: PreTrainedModel, family: str) -> None:
    """The first step's entropy under cfg_scale 1.5: uncond + 2.5 (cond - uncond), prompt masked in uncond."""
    prompt = PROMPTS[0]
    canvas = torch.tensor([prompt + [MASK] * GEN])
    blind = torch.tensor([[MASK] * len(prompt) + [MASK] * GEN])
    cond, uncond = reference_logits(reference, canvas), reference_logits(reference, blind)
    logits = (uncond + 2.5 * (cond - uncond))[0]
    p = logits.log_softmax(dim=-1)
    entropy = -(p.exp() * p).sum(dim=-1)
    first = len(prompt) - SHIFT[family]
    run = decode(model, [prompt], config(cfg_scale=1.5), create_policy("none"))[0]
    measured = run.steps[0].entropy[len(prompt) : len(prompt) + BLOCK]
    assert measured == pytest.approx(entropy[first : first + BLOCK].numpy(), abs=1e-4)


def test_stop_at_eos_ends_once_no_mask_is_left_before_it(
    model: LanguageModel, reference: PreTrainedModel, family: str
) -> None:
    tokens, committed = reference_decode(reference, SHIFT[family], PROMPTS[0], 0.35, 0, BLOCK)
    eos = tokens[10]
    first, left = tokens.index(eos), set(range(tokens.index(eos) + 1))
    num_steps = 0
    while left:
        left -= set(committed[num_steps])
        num_steps += 1
    generation = config("threshold", stop_at_eos=True)
    run = decode(with_eos(model, eos), PROMPTS[:1], generation, create_policy("none"))[0]
    assert run.committed == committed[:num_steps]
    assert num_steps < len(committed)
    assert run.tokens[: first + 1] == tokens[: first + 1]
    kept = set(run.order)
    assert run.tokens == [tokens[i] if i in kept else eos for i in range(GEN)]
    assert [i for i, at in enumerate(run.generation.decoded_at) if at == -1] == sorted(set(range(GEN)) - kept)
