"""Recipe: every number of a training run, and what is trained on when."""

from dataclasses import dataclass
from random import Random

from core.models.spec import ModelSpec
from core.training.families import arithmetic
from core.training.problem import Problem
from core.training.problems import draw
from core.training.tokenizer import EOS_ID, MASK_ID, SPECIALS

WIDTHS = (64, 96, 128, 192, 256, 384, 640, 1024, 1280)
EARLY = {"drill": 0.35, "math": 0.25, "table": 0.2, "code": 0.2}
MIDDLE = {"drill": 0.2, "math": 0.35, "table": 0.2, "code": 0.25}
LATE = {"drill": 0.04, "math": 0.3, "table": 0.28, "code": 0.38}
FEW_SHOT = 0.08
MOST_SHOTS = 12
SMALLEST_VOCAB = 256 + len(SPECIALS)


@dataclass(frozen=True)
class Recipe:
    """One training run. Lengths in tokens; learning rates are peaks, reached after `warmup_steps`."""

    tokens: int
    seed: int = 0
    hidden_size: int = 192
    intermediate_size: int = 512
    num_layers: int = 6
    num_heads: int = 4
    vocab_size: int = 1280
    batch_tokens: int = 4096
    matrix_lr: float = 0.01
    vector_lr: float = 0.0015
    weight_decay: float = 0.2
    warmup_steps: int = 50
    decay_from: float = 0.2
    ema: float = 0.995
    max_attention_logit: float = 40.0
    min_mask_rate: float = 0.08
    block_states: float = 0.5
    block_length: int = 32

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"tokens is {self.tokens}; it must be at least 1")
        if self.hidden_size % (2 * self.num_heads):
            raise ValueError(f"hidden_size is {self.hidden_size}; allowed: multiples of 2 * num_heads")
        if self.vocab_size < SMALLEST_VOCAB:
            raise ValueError(f"vocab_size is {self.vocab_size}; it must be at least {SMALLEST_VOCAB}")
        if self.batch_tokens < WIDTHS[-1]:
            raise ValueError(f"batch_tokens is {self.batch_tokens}; it must be at least {WIDTHS[-1]}")
        for field in ("decay_from", "ema", "min_mask_rate", "block_states"):
            if not 0 <= getattr(self, field) < 1:
                raise ValueError(f"{field} is {getattr(self, field)}; it must be at least 0 and below 1")

    @property
    def spec(self) -> ModelSpec:
        """LLaDA-8B's architecture at this size; trained with tied, exported with untied embeddings."""
        return ModelSpec(
            family="llada",
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            num_kv_heads=self.num_heads,
            head_dim=self.hidden_size // self.num_heads,
            rope_theta=10000.0,
            rms_norm_eps=1e-5,
            max_positions=1280,
            mask_token_id=MASK_ID,
            eos_token_ids=(EOS_ID,),
            pad_token_id=EOS_ID,
        )

    def lr_factor(self, step: int, progress: float) -> float:
        """Linear warm-up, constant, then linear to zero over everything after `decay_from`."""
        decay = min(1.0, (1.0 - progress) / (1.0 - self.decay_from))
        return max(0.0, decay) * min(1.0, (step + 1) / max(1, self.warmup_steps))


@dataclass(frozen=True)
class Lesson:
    """A problem and the worked examples before it."""

    problem: Problem
    examples: tuple[Problem, ...] = ()


def share_of(name: str, progress: float) -> float:
    """Share of a family's lessons: early, then from 0.3 to 0.6 of the run the middle mix, late at its end."""
    if progress < 0.3:
        return EARLY[name] + (MIDDLE[name] - EARLY[name]) * progress / 0.3
    late = max(0.0, (progress - 0.6) / 0.4)
    return MIDDLE[name] + (LATE[name] - MIDDLE[name]) * late


def draw_lesson(rng: Random, progress: float) -> Lesson:
    """What is trained on after `progress` (0..1) of the run: short things first, few-shot prompts late."""
    names = list(EARLY)
    weights = [share_of(name, progress) for name in names]
    name = rng.choices(names, weights)[0]
    largest = min(1.0, max(0.0, (progress - 0.03) / 0.3))
    if name == "drill":
        return Lesson(arithmetic.drill(rng, rng.randint(1, 2 + round(4 * largest))))
    # A random cap on top of the random size: simple problems stay frequent to the end.
    problem = draw(name, rng, held_out=False, largest=largest * rng.random())
    if progress < 0.3 or rng.random() > FEW_SHOT:
        return Lesson(problem)
    # The larger of two draws: what is lost behind many examples is more than behind few.
    shots = max(rng.randint(1, MOST_SHOTS), rng.randint(1, MOST_SHOTS))
    return Lesson(problem, tuple(draw(name, rng, held_out=False, largest=0.5) for _ in range(shots)))
