"""Classifier-free guidance against two passes of transformers' own model, and under every cache policy."""

import pytest
import torch
from transformers import PreTrainedModel

from core import POLICIES, LanguageModel, create_policy
from tests.invariants.runs import config, decode, eager_policy, lossless_policy
from tests.tiny import MASK, PROMPTS, SHIFT, reference_logits

SCALE = 1.5
LOSSLESS = [name for name, policy in POLICIES.items() if policy.lossless]


def guided_decode(
    model: PreTrainedModel, shift: int, prompt: list[int], gen_length: int, block: int, threshold: float
) -> list[list[tuple[int, int]]]:
    """Positions and tokens committed at each step by a loop of two plain passes a step."""
    canvas, steps = prompt + [MASK] * gen_length, []
    for start in range(len(prompt), len(canvas), block):
        while MASK in canvas[start : start + block]:
            blind = [MASK] * len(prompt) + canvas[len(prompt) :]
            cond, uncond = reference_logits(model, torch.tensor([canvas, blind]))
            logits = uncond + (SCALE + 1) * (cond - uncond)
            found: dict[int, tuple[float, int]] = {}
            for at in range(start, start + block):
                if canvas[at] == MASK:
                    p = logits[at - shift].softmax(dim=-1)
                    p[MASK] = -1
                    found[at] = (float(p.max()), int(p.argmax()))
            best = min(found, key=lambda at: (-found[at][0], at))
            chosen = [at for at in sorted(found) if at == best or found[at][0] >= threshold]
            for at in chosen:
                canvas[at] = found[at][1]
            steps.append([(at - len(prompt), found[at][1]) for at in chosen])
    return steps


@pytest.mark.parametrize("prompt", PROMPTS, ids=len)
def test_guidance_decodes_as_two_plain_passes(
    model: LanguageModel, reference: PreTrainedModel, family: str, prompt: list[int]
) -> None:
    generation = config("threshold", gen_length=16, block_length=8, cfg_scale=SCALE)
    run = decode(model, [prompt], generation, create_policy("none"))[0]
    expected = guided_decode(reference, SHIFT[family], prompt, 16, 8, generation.threshold)
    assert [[(at, run.tokens[at]) for at in step] for step in run.committed] == expected


def test_guidance_changes_what_is_decoded_and_a_vanishing_scale_does_not(model: LanguageModel) -> None:
    tokens = {}
    for scale in (0.0, 1e-6, SCALE):
        runs = decode(model, PROMPTS, config("threshold", cfg_scale=scale), create_policy("none"))
        tokens[scale] = [run.committed for run in runs], [run.tokens for run in runs]
    assert tokens[0.0] == tokens[1e-6]
    assert tokens[0.0] != tokens[SCALE]


@pytest.mark.parametrize("name", LOSSLESS)
def test_the_lossless_limit_holds_under_guidance(model: LanguageModel, name: str) -> None:
    generation = config("threshold", gen_length=16, block_length=8, cfg_scale=SCALE)
    plain = decode(model, PROMPTS[:2], generation, create_policy("none"))
    cached = decode(model, PROMPTS[:2], generation, lossless_policy(name))
    assert [run.tokens for run in cached] == [run.tokens for run in plain]
    assert [run.committed for run in cached] == [run.committed for run in plain]


@pytest.mark.parametrize("name", POLICIES)
def test_a_guided_batch_decodes_as_each_request_alone(model: LanguageModel, name: str) -> None:
    generation = config("threshold", gen_length=16, block_length=8, cfg_scale=SCALE)
    together = decode(model, PROMPTS[1:], generation, eager_policy(name))
    for prompt, run in zip(PROMPTS[1:], together, strict=True):
        alone = decode(model, [prompt], generation, eager_policy(name))[0]
        assert (run.tokens, run.committed, run.computed) == (alone.tokens, alone.committed, alone.computed)
