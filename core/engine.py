"""stream and generate: prompts in, a stream of frozen events or the finished generations out."""

import copy
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from core.config import GenerationConfig
from core.denoiser import Denoiser
from core.events import Event, Generation, Request, RunFinished, RunStarted, StepEvent
from core.host_copy import StepCopy
from core.models.language_model import LanguageModel
from core.policies.base import CachePolicy
from core.probes import Probe

Prompt = str | Sequence[int]


class NotFiniteError(FloatingPointError, ValueError):
    """The model's logits are no finite numbers, so that nothing can be chosen by them."""


def stream(
    model: LanguageModel,
    prompts: Iterable[Prompt],
    config: GenerationConfig,
    policy: CachePolicy,
    probes: Sequence[Probe] = (),
    *,
    slots: int | None = None,
    row_bucket: int | None = None,
) -> Iterator[Event]:
    """Denoise prompts together and yield RunStarted, one StepEvent a step, RunFinished.

    prompts: text or token ids; left-padded onto one canvas. slots: how many are denoised at a time (all
    by default); the rest enter as others finish. row_bucket: row counts are rounded up to a multiple of it
    (32 on CUDA, 8 on a CPU). A request's tokens do not depend on its neighbours. Closing the iterator
    stops the run after the current step. Raises ValueError before any work for input that can't run;
    NotFiniteError in the first step whose logits are NaN or infinite, as of a dtype too narrow for a model.
    """
    listed = [] if isinstance(prompts, str) else list(prompts)
    if not listed:
        raise ValueError(f"prompts is {prompts!r}; allowed: a list of at least one prompt")
    if not isinstance(policy, CachePolicy):
        raise ValueError(f"policy is {policy!r}; allowed: what create_policy makes")
    if slots is not None and slots < 1:
        raise ValueError(f"slots is {slots}; allowed: at least 1")
    if row_bucket is not None and row_bucket < 1:
        raise ValueError(f"row_bucket is {row_bucket}; allowed: at least 1")
    policy.check_decoding(config)
    requests = [_request(model, index, prompt, config) for index, prompt in enumerate(listed)]
    prompt_length = max(len(request.prompt_ids) for request in requests)
    num_slots = min(slots or len(requests), len(requests))
    started = RunStarted(
        requests=tuple(requests),
        canvas_length=prompt_length + config.gen_length,
        prompt_length=prompt_length,
        model=model.facts(),
        policy=policy.name,
        policy_config=policy.config.to_dict(),
        generation=config.to_dict(),
    )
    # A copy: a policy keeps what it knows of a run, and the caller may use it for two at once.
    denoiser = Denoiser(model, config, copy.copy(policy), num_slots, prompt_length, probes, row_bucket)
    return _run(denoiser, started)


def generate(
    model: LanguageModel,
    prompts: Iterable[Prompt],
    config: GenerationConfig,
    policy: CachePolicy,
    probes: Sequence[Probe] = (),
    *,
    slots: int | None = None,
    row_bucket: int | None = None,
) -> list[Generation]:
    """Run `stream` to its end; one Generation a prompt, in order."""
    finished: list[Generation] = []
    for event in stream(model, prompts, config, policy, probes, slots=slots, row_bucket=row_bucket):
        if isinstance(event, RunFinished):
            finished = list(event.generations)
    return finished


def _request(model: LanguageModel, index: int, prompt: Prompt, config: GenerationConfig) -> Request:
    try:
        ids = model.encode(prompt, config.gen_length)
    except ValueError as error:
        raise ValueError(f"prompt {index}: {error}") from error
    return Request(index, tuple(ids), prompt if isinstance(prompt, str) else None)


# The decorator, not a `with` block: the block would leave inference mode on in the consumer.
@torch.inference_mode()
def _run(denoiser: Denoiser, started: RunStarted) -> Iterator[Event]:
    yield started
    ledger = Ledger(denoiser, started)
    ledger.fill_slots()
    while ledger.busy:
        event = ledger.record(denoiser.step())
        ledger.fill_slots()
        yield event
    yield RunFinished(tuple(ledger.generations[request.index] for request in started.requests))


class Ledger:
    """The host's side of a run: which slot works on which request, and what each has decoded."""

    def __init__(self, denoiser: Denoiser, started: RunStarted) -> None:
        self.denoiser, self.model = denoiser, denoiser.model
        self.waiting, self.several = deque(started.requests), len(started.requests) > 1
        self.slots: list[Request | None] = [None] * denoiser.state.tokens.shape[0]
        shape = (len(self.slots), denoiser.config.gen_length)
        self.tokens = np.zeros(shape, dtype=np.int64)
        self.decoded_at = np.full(shape, -1, dtype=np.int64)
        self.generations: dict[int, Generation] = {}

    @property
    def busy(self) -> bool:
        return any(self.slots)

    def fill_slots(self) -> None:
        """Admit waiting requests into free slots."""
        admitted = {}
        for slot, current in enumerate(self.slots):
            if current is None and self.waiting:
                request = self.slots[slot] = self.waiting.popleft()
                self.tokens[slot] = self.model.spec.mask_token_id
                self.decoded_at[slot] = -1
                admitted[slot] = list(request.prompt_ids)
        if admitted:
            self.denoiser.admit(admitted)

    def record(self, done: StepCopy) -> StepEvent:
        """The step's event; finished slots are freed. Raises NotFiniteError before anything is kept of it."""
        length = self.denoiser.length
        positions = done.positions.astype(np.int64)
        self._check_finite(done, positions < length)

        def spread(values: np.ndarray, empty: float, dtype: type) -> np.ndarray:
            grid: np.ndarray = np.full((len(self.slots), length + 1), empty, dtype=dtype)
            np.put_along_axis(grid, positions, values.astype(dtype), axis=1)
            return grid[:, :length]

        tokens = spread(np.where(positions < length, done.token, -1), -1, np.int64)
        committed = spread(done.committed, 0, np.bool_)
        steps = done.step.astype(np.int64)
        generated = committed[:, self.denoiser.state.prompt_len :]
        self.tokens = np.where(generated, tokens[:, self.denoiser.state.prompt_len :], self.tokens)
        self.decoded_at = np.where(generated, steps[:, None], self.decoded_at)
        busy = [request.index if request else -1 for request in self.slots]
        finished = tuple(self._finish(int(slot), int(steps[slot])) for slot in np.flatnonzero(done.finished))
        return StepEvent(
            request=np.array(busy),
            step=steps,
            block=done.block.astype(np.int64),
            full=done.full.astype(bool),
            reason=tuple(self.denoiser.policy.REASONS[int(code)] for code in done.reason),
            targets=spread(positions < length, 0, np.bool_),
            committed=committed,
            tokens=tokens,
            confidence=spread(done.confidence, np.nan, np.float32),
            entropy=spread(done.entropy, np.nan, np.float32),
            refreshed=done.refreshed.astype(np.int64),
            seconds=done.seconds,
            measurements=done.measurements,
            finished=finished,
        )

    def _check_finite(self, done: StepCopy, valid: np.ndarray) -> None:
        # Any logit that is NaN or infinite makes the entropy NaN.
        for slot in np.flatnonzero((np.isnan(done.entropy) & valid).any(axis=1)):
            request = self.slots[slot]
            if request is not None:
                whose = f"prompt {request.index}: " if self.several else ""
                raise NotFiniteError(
                    f"{whose}the model's logits are no finite numbers at step "
                    f"{int(done.step[slot]) + 1}, in {self.model.facts()['dtype']} on {self.model.device}; "
                    "another dtype or other weights may do"
                )

    def _finish(self, slot: int, step: int) -> Generation:
        request = self.slots[slot]
        assert request is not None
        undecoded = self.decoded_at[slot] < 0
        tokens = np.where(undecoded, self.model.spec.eos_token_ids[0], self.tokens[slot])
        generation = Generation(
            request=request,
            tokens=tuple(tokens.tolist()),
            decoded_at=tuple(self.decoded_at[slot].tolist()),
            num_steps=step + 1,
            text=self.model.decode(tokens.tolist()),
        )
        self.slots[slot] = None
        self.generations[request.index] = generation
        return generation
