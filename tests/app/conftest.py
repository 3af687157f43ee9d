"""Fixtures of the page's tests: a tiny workshop and a job for it."""

from collections.abc import Callable

import pytest

from app.job import Job, LaneSpec
from app.models import ModelShelf
from app.problems import Problems
from app.workshop import Workshop
from core import GenerationConfig, LanguageModel
from core.training.problems import Problem

PROBLEM = Problem("list", "sort three words", "#### 3", answer="3")
GENERATION = GenerationConfig(gen_length=16, block_length=8)


class WordTokenizer:
    """One word a token id, so that a tiny model without a tokenizer can be given text."""

    chat_template = None

    def encode(self, text: str) -> list[int]:
        return [2 + sum(map(ord, word)) % 50 for word in text.split()]

    def decode(self, tokens: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(f" <b>{token}</b>" for token in tokens)


@pytest.fixture
def worded(models: dict[str, LanguageModel]) -> LanguageModel:
    """The tiny LLaDA with a tokenizer whose words are markup."""
    model = models["llada"]
    return LanguageModel(model.ref, model.spec, model.backbone, WordTokenizer())


@pytest.fixture
def workshop(worded: LanguageModel) -> Workshop:
    return Workshop(ModelShelf(loader=lambda ref, dtype: worded), problems=Problems([PROBLEM]))


@pytest.fixture
def job() -> Callable[..., Job]:
    """Builds a job: job("entropy", "none", observe="off")."""

    def make(*policies: str, observe: str = "off", generation: GenerationConfig = GENERATION) -> Job:
        return Job("one two three", tuple(LaneSpec(name, ()) for name in policies), generation, observe)

    return make
