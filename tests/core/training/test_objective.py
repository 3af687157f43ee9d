"""The objective: only answers are masked, weights are unbiased, text is encoded as the model will see it."""

from random import Random

import pytest
import torch
from tokenizers import Tokenizer

from core.training.batches import BatchStream, collate, encode
from core.training.corruption import corrupt
from core.training.families import code
from core.training.problems import FAMILIES, held_out
from core.training.recipe import WIDTHS, Lesson, Recipe, draw_lesson
from core.training.tokenizer import ASSISTANT_ID, BOS_ID, EOS_ID, MASK_ID, USER_ID, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(seed=0, vocab_size=600, examples=500)


def lessons(count: int) -> list[Lesson]:
    rng = Random(0)
    return [draw_lesson(rng, 1.0) for _ in range(count)]


def test_pieces_are_encoded_as_the_whole_text_is(tokenizer: Tokenizer) -> None:
    rng = Random(1)
    for family in FAMILIES:
        shown = held_out(family, 2, seed=5)
        lesson = Lesson(held_out(family, 1, seed=rng.randint(0, 99))[0], tuple(shown))
        prompt = "".join(f"Question: {e.prompt}\nAnswer: {e.example_response}\n\n" for e in shown)
        prompt += f"Question: {lesson.problem.prompt}"
        response = tokenizer.encode(f" {lesson.problem.example_response}").ids
        whole = [BOS_ID, USER_ID, *tokenizer.encode(f" {prompt}").ids, ASSISTANT_ID, *response, EOS_ID]
        sequence = encode(tokenizer, lesson)
        assert sequence.tokens == whole
        assert len(sequence.answers) == 3
        for (start, stop), example in zip(sequence.answers, shown, strict=False):
            assert tokenizer.decode(whole[start:stop]).strip() == example.example_response


def test_a_number_costs_its_digits(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(" 2048 + 7").tokens == ["Ġ2", "0", "4", "8", "Ġ+", "Ġ7"]


def test_every_change_of_a_number_costs_as_many_tokens(tokenizer: Tokenizer) -> None:
    rng = Random(0)
    for variable in code.ARGUMENTS.values():
        changes = [code.draw_map(rng).expression.format(v=variable) for _ in range(60)]
        assert len(set(changes)) > 10
        assert len({len(tokenizer.encode(f"        out.append({change})").ids) for change in changes}) == 1


@pytest.mark.parametrize("block_states", [0.0, 0.99])
def test_prompts_stay_clean_and_targets_are_what_was_masked(
    tokenizer: Tokenizer, block_states: float
) -> None:
    sequences = [s for s in (encode(tokenizer, lesson) for lesson in lessons(20)) if len(s.tokens) <= 640]
    batch = collate(sequences, 640)
    recipe = Recipe(tokens=1, block_states=block_states)
    corrupted = corrupt(batch, recipe, torch.Generator().manual_seed(0))
    masked = corrupted.tokens == MASK_ID
    answers = (torch.arange(640) >= batch.response_start[:, None]) | batch.shown
    assert not (masked & ~answers).any()
    assert torch.equal(corrupted.tokens[~masked], batch.tokens[~masked])
    assert masked.flatten()[corrupted.rows].all()
    assert torch.equal(corrupted.targets, batch.tokens.flatten()[corrupted.rows])


def test_worked_examples_are_answered_too_in_half_of_their_rows(tokenizer: Tokenizer) -> None:
    """Whatever the share of block states: a row hides some of its examples' answers or none of them."""
    few_shot = next(lesson for lesson in lessons(400) if 2 <= len(lesson.examples) <= 5)
    sequence = encode(tokenizer, few_shot)
    batch = collate([sequence] * 200, len(sequence.tokens))
    for block_states in (0.0, 0.5, 0.99):
        recipe = Recipe(tokens=1, block_states=block_states)
        corrupted = corrupt(batch, recipe, torch.Generator().manual_seed(0))
        hidden = ((corrupted.tokens == MASK_ID) & batch.shown).any(1)
        assert 60 < int(hidden.sum()) < 140


def test_canvases_as_long_as_few_shot_decoding_needs_are_trained_on() -> None:
    assert WIDTHS[-1] == Recipe(tokens=1).spec.max_positions


def test_weights_are_unbiased(tokenizer: Tokenizer) -> None:
    """Without an empty tail the expected weight of a batch is one, block states or not."""
    sequence = encode(tokenizer, Lesson(held_out("math", 1, seed=4)[0]))
    batch = collate([sequence] * 64, len(sequence.tokens))
    for block_states in (0.0, 0.5):
        recipe, generator = Recipe(tokens=1, block_states=block_states), torch.Generator().manual_seed(0)
        totals = [float(corrupt(batch, recipe, generator).weights.sum()) for _ in range(200)]
        assert sum(totals) / len(totals) == pytest.approx(1.0, abs=0.05)


def test_batches_have_one_width_and_the_budget(tokenizer: Tokenizer) -> None:
    recipe = Recipe(tokens=1, batch_tokens=WIDTHS[-1])
    for batch, _ in zip(BatchStream(recipe, tokenizer, Random(0)), range(20), strict=False):
        width = batch.tokens.shape[1]
        assert width in WIDTHS
        assert batch.tokens.shape[0] == WIDTHS[-1] // width
        assert (batch.response_stop <= width).all()
