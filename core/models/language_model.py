"""LanguageModel: weights, spec and tokenizer of one dLLM, as the engine and the analyses use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import torch
from torch import Tensor

from core.end_of_text import end_of_text
from core.models.spec import ModelSpec
from core.models.tokenizer import encode_text
from core.models.transformer import Transformer


@dataclass(frozen=True)
class LanguageModel:
    """A loaded model. tokenizer is a transformers tokenizer, or None: then prompts are token ids.

    weights_sha256: see `core.models.digest`; None where the weights are of no file.
    """

    ref: str
    spec: ModelSpec
    backbone: Transformer
    tokenizer: Any | None
    weights_sha256: Mapping[str, str] | None = None

    @property
    def device(self) -> torch.device:
        return self.backbone.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.backbone.embedding.weight.dtype

    @property
    def num_bytes(self) -> int:
        """Bytes that the weights take."""
        return self.spec.num_parameters * self.dtype.itemsize

    def facts(self) -> dict[str, Any]:
        """What a trace says of the model and of what computes with it here: plain values only."""
        spec = self.spec
        return {
            "ref": self.ref,
            "family": spec.family,
            "dtype": str(self.dtype).removeprefix("torch."),
            "device": str(self.device),
            "weights_sha256": None if self.weights_sha256 is None else dict(self.weights_sha256),
            "torch": str(torch.__version__),
            "num_threads": torch.get_num_threads(),
            "num_layers": spec.num_layers,
            "hidden_size": spec.hidden_size,
            "intermediate_size": spec.intermediate_size,
            "num_heads": spec.num_heads,
            "num_kv_heads": spec.num_kv_heads,
            "head_dim": spec.head_dim,
            "vocab_size": spec.vocab_size,
            "num_parameters": spec.num_parameters,
            "mask_token_id": spec.mask_token_id,
            "eos_token_ids": list(spec.eos_token_ids),
            "logit_shift": spec.logit_shift,
        }

    @torch.inference_mode()
    def full_logits(self, tokens: Tensor | Sequence[Sequence[int]]) -> Tensor:
        """Raw, unshifted logits [B, L, V] of tokens int [B, L], every position valid, no cache.

        Raises ValueError for another shape and for ids outside the vocabulary.
        """
        grid = torch.as_tensor(tokens, dtype=torch.long)
        if grid.dim() != 2 or not grid.numel():
            raise ValueError(f"tokens has shape {list(grid.shape)}; allowed: [B, L]")
        if grid.min() < 0 or grid.max() >= self.spec.vocab_size:
            raise ValueError(f"tokens holds an id outside the vocabulary of {self.spec.vocab_size}")
        return self.backbone(grid.to(self.device))

    def encode(self, prompt: str | Sequence[int], room: int = 0) -> list[int]:
        """Token ids of a prompt; text is wrapped in the chat template where the tokenizer has one.

        Names of special tokens in a text are plain text.
        room: positions that must be left for a generation. Raises ValueError for an empty prompt, text
        without a tokenizer, ids outside the vocabulary, the mask token itself and a prompt too long.
        """
        if isinstance(prompt, str):
            if not prompt.strip():
                raise ValueError("prompt is empty; give some text or token ids")
            if self.tokenizer is None:
                raise ValueError(f"model {self.ref} has no tokenizer; give the prompt as token ids")
            try:
                prompt.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"prompt is no valid text ({error})") from error
            ids = encode_text(self.tokenizer, prompt)
        else:
            try:
                ids = [index(token) for token in prompt]
            except TypeError as error:
                raise ValueError(f"prompt is {prompt!r}; allowed: text or a list of token ids") from error
        if not ids:
            raise ValueError("prompt is empty; give some text or token ids")
        for token in ids:
            if not 0 <= token < self.spec.vocab_size:
                raise ValueError(f"prompt holds token id {token}; allowed: 0 to {self.spec.vocab_size - 1}")
        if self.spec.mask_token_id in ids:
            raise ValueError(f"prompt holds the mask token {self.spec.mask_token_id}; it can't be a prompt")
        total, limit = len(ids) + room, self.spec.max_positions
        if total > limit:
            raise ValueError(
                f"{len(ids)} tokens and gen_length {room} make {total}, over the model's context of {limit}"
            )
        return ids

    def decode(self, tokens: Sequence[int]) -> str | None:
        """Text up to the first end-of-text, no special tokens, no outer blanks; None without tokenizer."""
        if self.tokenizer is None:
            return None
        tokens = list(tokens)
        kept = tokens[: end_of_text(tokens, self.spec.eos_token_ids)]
        text = self.tokenizer.decode(kept, skip_special_tokens=True)
        return str(text).strip()
