"""The small byte-level tokenizer: trained on generated text, single digits, five special tokens."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from core.files import replacing
from core.training.families import arithmetic
from core.training.problem import Problem
from core.training.problems import FAMILIES, draw, with_shots

EOS, MASK, BOS, USER, ASSISTANT = "<|eos|>", "<|mask|>", "<|bos|>", "<|user|>", "<|assistant|>"
SPECIALS = (EOS, MASK, BOS, USER, ASSISTANT)
EOS_ID, MASK_ID, BOS_ID, USER_ID, ASSISTANT_ID = range(len(SPECIALS))
PIECES = r" ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]+|\s+(?=\S)|\s+"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "<|assistant|> {{ message['content'] | trim }}{{ eos_token }}{% else %}"
    "<|user|> {{ message['content'] | trim }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def sample_text(seed: int, examples: int) -> Iterable[str]:
    """Text of every family in the form training sees it."""
    rng = Random(f"tokenizer|{seed}")
    names = [*FAMILIES, "drill"]
    for index in range(examples):
        name = names[index % len(names)]
        if name == "drill":
            problem: Problem = arithmetic.drill(rng, rng.randint(1, 6))
        else:
            problem = draw(name, rng, held_out=False)
            if rng.random() < 0.1:
                problem = with_shots(problem, rng, 1)
        yield f" {problem.prompt}"
        yield f" {problem.example_response}"


def train_tokenizer(seed: int, vocab_size: int, examples: int = 20_000) -> Tokenizer:
    """Byte-level BPE over generated text; a number costs exactly its digits."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sample_text(seed, examples), trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, directory: Path, max_length: int) -> None:
    """tokenizer.json and the tokenizer_config.json that transformers reads, with the chat template."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": EOS,
        "mask_token": MASK,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
        "chat_template": TEMPLATE,
    }
    text = json.dumps(config, indent=1) + "\n"
    # A run goes on with a tokenizer.json that it finds, so that is the last to take its place.
    with (
        replacing(directory / "tokenizer.json") as merges,
        replacing(directory / "tokenizer_config.json") as said,
    ):
        tokenizer.save(str(merges))
        said.write_text(text, encoding="utf-8")
