"""Text of a prompt is text: whatever it names, only the template and the tokenizer make special tokens."""

from pathlib import Path

import pytest

from core import LanguageModel, load_model
from core.models.tokenizer import encode_text, load_tokenizer
from core.training.tokenizer import MASK_ID, SPECIALS, save_tokenizer, train_tokenizer

WAYS = ("{}", "say {} twice: {}", "tail{}", "  {}head\n", "a <| {} |> b")


@pytest.fixture(scope="module")
def embedded() -> LanguageModel:
    return load_model("embedded", device="cpu", dtype="float32")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SPECIALS)
def test_named_special_tokens_stay_text_and_the_template_keeps_its_own(
    embedded: LanguageModel, name: str, way: str
) -> None:
    text = way.format(name, name)
    ids, usual = embedded.encode(text), embedded.encode("words")
    own = [token for token in usual if token < len(SPECIALS)]
    assert [token for token in ids if token < len(SPECIALS)] == own
    shown = embedded.tokenizer.decode(ids, skip_special_tokens=False)
    assert shown == embedded.tokenizer.decode(usual, skip_special_tokens=False).replace("words", text.strip())


@pytest.mark.parametrize("name", SPECIALS)
def test_without_a_template_they_stay_text_too(tmp_path: Path, name: str) -> None:
    save_tokenizer(train_tokenizer(seed=0, vocab_size=300, examples=50), tmp_path, 64)
    tokenizer = load_tokenizer(tmp_path)
    tokenizer.chat_template = None
    ids = encode_text(tokenizer, f"one {name} two")
    assert min(ids) >= len(SPECIALS)
    assert tokenizer.decode(ids) == f"one {name} two"


def test_text_without_such_names_is_encoded_as_the_library_does(embedded: LanguageModel) -> None:
    text = "Tom has 3 apples. < | eos | > mask"
    framed = embedded.tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )
    assert embedded.encode(text) == embedded.tokenizer.encode(framed, add_special_tokens=False)


def test_text_is_split_alike_on_both_ways(embedded: LanguageModel) -> None:
    """What precedes and follows a named token is cut as if the name were any other word."""
    before, after = embedded.encode("Tom has 3 apples"), embedded.encode("Tom has 3 apples <|eos|>")
    assert after[: len(before) - 1] == before[:-1]


def test_template_that_changes_the_text_is_refused_only_where_it_matters(tmp_path: Path) -> None:
    save_tokenizer(train_tokenizer(seed=0, vocab_size=300, examples=50), tmp_path, 64)
    tokenizer = load_tokenizer(tmp_path)
    tokenizer.chat_template = "{{ messages[0]['content'] }}{{ messages[0]['content'] }}"
    assert encode_text(tokenizer, "one")
    with pytest.raises(ValueError, match="prompt names special tokens"):
        encode_text(tokenizer, "one <|eos|>")


def test_mask_token_as_an_id_is_still_refused(embedded: LanguageModel) -> None:
    with pytest.raises(ValueError, match="mask token"):
        embedded.encode([MASK_ID])
