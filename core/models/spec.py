"""ModelSpec: everything the transformer and the engine need to know about a model, as plain numbers."""

from dataclasses import dataclass

# Token ids and positions travel to the host as float32, which counts exactly up to here.
LARGEST_SIZE = 2**24
# Each is an object of its own, made before any weight is read.
MOST_LAYERS = 10_000


@dataclass(frozen=True)
class ModelSpec:
    """Shape and token conventions of one masked diffusion language model.

    Sizes count features, heads, layers or tokens. `logit_shift` is 0 where row i predicts position i
    (LLaDA) and 1 where row i-1 does (Dream and other models adapted from autoregressive ones).
    """

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float
    rms_norm_eps: float
    max_positions: int
    mask_token_id: int
    eos_token_ids: tuple[int, ...]
    pad_token_id: int
    qkv_bias: bool = False
    qk_norm: bool = False
    tied_embeddings: bool = False
    logit_shift: int = 0

    def __post_init__(self) -> None:
        for field in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_layers",
            "num_heads",
            "num_kv_heads",
            "head_dim",
            "max_positions",
        ):
            value = getattr(self, field)
            most = MOST_LAYERS if field == "num_layers" else LARGEST_SIZE
            if type(value) is not int or not 1 <= value <= most:
                raise ValueError(f"{field} is {value!r}; it must be an integer from 1 to {most}")
        for field, largest in (("rope_theta", 1e12), ("rms_norm_eps", 1.0)):
            value = getattr(self, field)
            if type(value) not in (int, float) or not 0 < value <= largest:
                raise ValueError(f"{field} is {value!r}; it must be a number above 0, up to {largest:g}")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads {self.num_kv_heads} does not divide num_heads {self.num_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.head_dim}; rotary embedding needs an even one")
        if self.logit_shift not in (0, 1):
            raise ValueError(f"logit_shift is {self.logit_shift}; allowed are 0 and 1")
        for token in (self.mask_token_id, self.pad_token_id, *self.eos_token_ids):
            if type(token) is not int:
                raise ValueError(f"token id {token!r} is not an integer")
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"token id {token} lies outside the vocabulary of {self.vocab_size}")
        if self.mask_token_id in self.eos_token_ids:
            raise ValueError(f"mask_token_id {self.mask_token_id} is also an end-of-text id")

    @property
    def num_parameters(self) -> int:
        """Weights in the checkpoint, embeddings included."""
        d, f, v = self.hidden_size, self.intermediate_size, self.vocab_size
        q, kv = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        layer = d * (q + 2 * kv) + q * d + 3 * d * f + 2 * d
        layer += (q + 2 * kv) * self.qkv_bias + 2 * self.head_dim * self.qk_norm
        return self.num_layers * layer + d + d * v * (1 if self.tied_embeddings else 2)

    def kv_bytes_per_position(self, bytes_per_value: int) -> int:
        """K and V of one position over all layers, in bytes."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * bytes_per_value
