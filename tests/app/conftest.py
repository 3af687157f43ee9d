"""Fixtures of the page's tests: a tiny workshop and a job for it."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

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


@pytest.fixture(scope="module", autouse=True)
def closed_loops() -> Iterator[None]:
    """Gradio makes event loops for the locks of every page that is built, runs none and closes none."""
    made: list[asyncio.AbstractEventLoop] = []
    new = asyncio.new_event_loop

    def noted() -> asyncio.AbstractEventLoop:
        made.append(new())
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", noted)
        yield
    for loop in made:
        # A browser's, which outlives the module, is closed by those who run it.
        if not loop.is_running():
            loop.close()


@pytest.fixture
def worded(models: dict[str, LanguageModel]) -> LanguageModel:
    """The tiny LLaDA with a tokenizer whose words are markup."""
    return replace(models["llada"], tokenizer=WordTokenizer())


@pytest.fixture
def workshop(worded: LanguageModel) -> Workshop:
    return Workshop(ModelShelf(loader=lambda ref, dtype: worded), problems=Problems([PROBLEM]))


@pytest.fixture
def job() -> Callable[..., Job]:
    """Builds a job: job("entropy", "none", observe="off")."""

    def make(*policies: str, observe: str = "off", generation: GenerationConfig = GENERATION) -> Job:
        return Job("one two three", tuple(LaneSpec(name, ()) for name in policies), generation, observe)

    return make
