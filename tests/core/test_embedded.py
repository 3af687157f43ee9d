"""The embedded model: loads from the repository without a network, and has really been trained."""

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from core import GenerationConfig, LanguageModel, create_policy, generate, load_model

EMBEDDED = Path(__file__).parents[2] / "assets" / "model"
PROBLEMS = EMBEDDED / "problems.jsonl"


@pytest.fixture(scope="module")
def embedded() -> LanguageModel:
    return load_model("embedded", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def problems() -> list[dict]:
    return [json.loads(line) for line in PROBLEMS.read_text(encoding="utf-8").splitlines()]


def test_text_survives_the_tokenizer(embedded: LanguageModel, problems: list[dict]) -> None:
    for problem in problems[::15]:
        text = problem["example_response"]
        ids = embedded.tokenizer.encode(" " + text, add_special_tokens=False)
        assert embedded.decode(ids) == text.strip()
        prompt = embedded.encode(problem["prompt"])
        assert prompt[0] == embedded.tokenizer.bos_token_id
        assert embedded.spec.mask_token_id not in prompt


def test_it_predicts_held_out_answers_far_better_than_chance(
    embedded: LanguageModel, problems: list[dict]
) -> None:
    """Mean surprise at half-masked held-out answers, in nats; knowing nothing would be ln V."""
    dice, surprise, count = torch.Generator().manual_seed(0), 0.0, 0
    for problem in problems[::10]:
        prompt = embedded.encode(problem["prompt"])
        answer = embedded.tokenizer.encode(" " + problem["example_response"], add_special_tokens=False)
        tokens = torch.tensor([prompt + answer])
        hidden = torch.rand(tokens.shape, generator=dice) < 0.5
        hidden[:, : len(prompt)] = False
        seen = tokens.masked_fill(hidden, embedded.spec.mask_token_id)
        log_probs = embedded.full_logits(seen).log_softmax(dim=-1)
        right = log_probs.gather(-1, tokens[..., None])[..., 0][hidden]
        surprise, count = surprise - float(right.sum()), count + len(right)
    assert surprise / count < 0.4 * math.log(embedded.spec.vocab_size)


def test_it_writes_with_entropy_cache(embedded: LanguageModel, problems: list[dict]) -> None:
    config = GenerationConfig(gen_length=64, block_length=32)
    [done] = generate(embedded, [problems[0]["prompt"]], config, create_policy("entropy"))
    assert done.text
    assert "<|" not in done.text
    assert done.num_steps < 64


def test_loading_does_not_import_the_compiler() -> None:
    """It takes longer to import than the model to load, and nothing compiles here."""
    code = "import sys, core; core.load_model('embedded'); sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=PROBLEMS.parents[2], check=False).returncode == 0


def test_card_is_of_these_weights() -> None:
    card = (EMBEDDED / "README.md").read_text(encoding="utf-8")
    assert hashlib.sha256((EMBEDDED / "model.safetensors").read_bytes()).hexdigest() in card
    words = json.loads((EMBEDDED / "config.json").read_text(encoding="utf-8"))["embedding_size"]
    assert f"| vocabulary | {words}:" in card
