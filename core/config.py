"""How to decode: one frozen, validated config shared by every cache policy."""

import math
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

UNMASK_NAMES = ("quota", "threshold", "factor", "entropy-bound", "klass")
# Which unmask rules read a setting; those not named here are read under every rule.
READ_BY = {
    "threshold": ("threshold", "klass"),
    "steps": ("quota", "klass"),
    "factor": ("factor",),
    "entropy_bound": ("entropy-bound",),
    "kl_threshold": ("klass",),
    "kl_history": ("klass",),
}
# Below it, log-probabilities divided by the temperature may leave float32's range.
LEAST_TEMPERATURE = 1e-6
TYPE_NAMES = {type(None): "none", float: "a number", int: "an integer", str: "text", bool: "true or false"}


def require(condition: bool, field: str, got: object, allowed: str) -> None:
    """Raise the one kind of error a config knows: field, what was got, what is allowed."""
    if not condition:
        raise ValueError(f"{field} is {got!r}; allowed: {allowed}")


def one_of(*choices: str, default: str) -> Any:
    """A config field that takes one of these words: `check_fields` holds it to them, forms offer them."""
    return field(default=default, metadata={"choices": choices})


def check_fields(config: object) -> None:
    """Raise ValueError unless every field of a dataclass holds its annotated plain type and allowed word.

    An int is accepted where a float is expected, within 64 bits as tensors hold them; a bool is never taken
    for a number and a NaN never for a value.
    """
    hints = get_type_hints(type(config))
    for one in fields(config):  # type: ignore[arg-type]
        value, hint = getattr(config, one.name), hints[one.name]
        allowed = getattr(hint, "__args__", (hint,))
        numeric = float in allowed and isinstance(value, int) and not isinstance(value, bool)
        plain = type(value) in allowed or (value is None and type(None) in allowed)
        names = one.metadata.get("allowed", " or ".join(TYPE_NAMES.get(t, t.__name__) for t in allowed))
        require(numeric or plain, one.name, value, names)
        require(not (isinstance(value, float) and math.isnan(value)), one.name, value, names)
        if isinstance(value, int):
            require(-(2**63) <= value < 2**63, one.name, value, "an integer of 64 bits")
        choices = one.metadata.get("choices", (value,))
        require(value in choices, one.name, value, ", ".join(map(str, choices)))


@dataclass(frozen=True)
class GenerationConfig:
    """Decoding settings; defaults follow LLaDA's blocks and Fast-dLLM's threshold.

    gen_length: tokens to generate.
    block_length: tokens of a block, the semi-autoregressive window; it must divide gen_length.
    unmask: which proposals a step commits: `quota` a fixed number, `threshold` all that are confident enough,
    `factor` the more the surer they are, `entropy-bound` as many as their entropies allow, `klass` those that
    are confident and stable; every rule at least one.
    threshold: the confidence, 0 to 1, that a proposal needs: at least this under `threshold` (Fast-dLLM,
    arXiv 2505.22618), more than this under `klass`.
    steps: denoising steps of `quota` and of the fallback of `klass`; none is one token a step.
    temperature: 0 takes the likeliest token, else tokens are sampled from softmax(logits / temperature);
    confidence and entropy always describe the raw distribution.
    seed: the seed of every request, whatever its batch; greedy decoding draws nothing, except the order of
    `dkv-greedy`.
    stop_at_eos: whether a sequence ends once an end-of-text token is committed with no mask before it.
    factor: f of Fast-dLLM's `factor` rule (arXiv 2505.22618); the larger, the more is committed.
    entropy_bound: gamma in nats of EB-Sampler's `entropy-bound` rule (arXiv 2505.24857); a larger one commits
    more.
    kl_threshold: the divergence in nats below which `klass` takes a proposal for stable (KLASS, arXiv
    2511.05664).
    kl_history: steps in a row for which a proposal of `klass` must have been stable.
    window: which masks are in play, by `block` those of one block after another, by `sliding` always the
    leftmost block_length (Elastic-Cache, arXiv 2510.14973).
    order: which proposals count as best, by `confidence` or by confidence times certainty `density`
    (d2Cache, arXiv 2509.23094), a decoding order apart from any cache.
    top_k: how many of the likeliest tokens sampling draws from; none is all.
    top_p: sampling draws from the fewest likeliest tokens whose probabilities sum to this; none is 1.
    cfg_scale: LLaDA's classifier-free guidance, uncond + (scale + 1)(cond - uncond); 0 is off.
    eos: when end-of-text may be committed, by `allow` whenever it is proposed, by `last` only once it is all
    that the window's targets propose or where `quota` asks for more than the rest (LLaDA's
    confidence_eos_eot_inf), by `never` not at all (LLaDA's logits_eos_inf).

    Settings of another rule, or of sampling where decoding is greedy, are accepted, so that a config can be
    varied one by one; `unread` names them.
    """

    gen_length: int = 128
    block_length: int = 32
    unmask: str = one_of(*UNMASK_NAMES, default="threshold")
    threshold: float = 0.9
    steps: int | None = None
    temperature: float = 0.0
    seed: int = 0
    stop_at_eos: bool = False
    factor: float = 1.0
    entropy_bound: float = 0.1
    kl_threshold: float = 0.01
    kl_history: int = 2
    window: str = one_of("block", "sliding", default="block")
    order: str = one_of("confidence", "density", default="confidence")
    top_k: int | None = None
    top_p: float | None = None
    cfg_scale: float = 0.0
    eos: str = one_of("allow", "last", "never", default="allow")

    def __post_init__(self) -> None:
        check_fields(self)
        require(self.gen_length >= 1, "gen_length", self.gen_length, "an integer of at least 1")
        require(self.block_length >= 1, "block_length", self.block_length, "an integer of at least 1")
        require(
            self.gen_length % self.block_length == 0,
            "block_length",
            self.block_length,
            f"a divisor of gen_length {self.gen_length}",
        )
        require(0 <= self.threshold <= 1, "threshold", self.threshold, "a number from 0 to 1")
        if self.steps is not None:
            blocks = 1 if self.window == "sliding" else self.gen_length // self.block_length
            require(
                0 < self.steps <= self.gen_length and self.steps % blocks == 0,
                "steps",
                self.steps,
                f"a multiple of {blocks} (the number of blocks) up to gen_length {self.gen_length}",
            )
        require(self.factor > 0, "factor", self.factor, "a number above 0")
        require(self.entropy_bound >= 0, "entropy_bound", self.entropy_bound, "a number from 0 up")
        require(self.kl_threshold >= 0, "kl_threshold", self.kl_threshold, "a number from 0 up")
        require(self.kl_history >= 1, "kl_history", self.kl_history, "an integer of at least 1")
        require(
            self.temperature == 0 or LEAST_TEMPERATURE <= self.temperature < math.inf,
            "temperature",
            self.temperature,
            f"0 (greedy) or a finite number from {LEAST_TEMPERATURE:g} up",
        )
        require(self.top_k is None or self.top_k >= 1, "top_k", self.top_k, "none or at least 1")
        require(self.top_p is None or 0 < self.top_p <= 1, "top_p", self.top_p, "none or above 0 and up to 1")
        require(0 <= self.cfg_scale <= 1000, "cfg_scale", self.cfg_scale, "a number from 0 to 1000")
        require(0 <= self.seed < 2**63, "seed", self.seed, "an integer from 0 to 2**63 - 1")

    @property
    def num_blocks(self) -> int:
        return self.gen_length // self.block_length

    @property
    def quota_steps(self) -> int:
        """Denoising steps of the `quota` rule over the whole generation."""
        return self.gen_length if self.steps is None else self.steps

    @property
    def unread(self) -> dict[str, str]:
        """Settings that have no effect beside the others, and what would read them."""
        rules = {name: rules for name, rules in READ_BY.items() if self.unmask not in rules}
        sampling = ("top_k", "top_p") if self.temperature == 0 else ()
        return {
            **{name: f"unmask {' or '.join(found)}" for name, found in rules.items()},
            **dict.fromkeys(sampling, "a temperature above 0"),
        }

    def to_dict(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}
