"""EntropyScope's engine: masked diffusion language models under exchangeable KV-cache policies.

Dimension letters: B sequences (slots), B' = 2 B under guidance, else B, L canvas positions, Y generated
ones, b of a block, R rows computed this step, T targets, S steps, N layers, H heads, G key/value heads,
D head dimension, d model dimension, V vocabulary.
"""

from core.config import GenerationConfig
from core.engine import NotFiniteError, generate, stream
from core.events import Event, Generation, Request, RunFinished, RunStarted, StepEvent
from core.models.language_model import LanguageModel
from core.models.loading import load_model
from core.models.spec import ModelSpec
from core.policies import POLICIES, CachePolicy, create_policy
from core.probes import Probe
from core.unmask import UNMASK_RULES

__all__ = [
    "POLICIES",
    "UNMASK_RULES",
    "CachePolicy",
    "Event",
    "Generation",
    "GenerationConfig",
    "LanguageModel",
    "ModelSpec",
    "NotFiniteError",
    "Probe",
    "Request",
    "RunFinished",
    "RunStarted",
    "StepEvent",
    "create_policy",
    "generate",
    "load_model",
    "stream",
]
