"""RowRunner with a recorder in place of CUDA graphs: it calls the recorded work again."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from core import LanguageModel, create_policy
from core.cache import KVCache
from core.denoiser import Denoiser
from core.forward import forward_rows
from core.runner import RowRunner
from tests.invariants.runs import config
from tests.tiny import LAYERS, MASK, PROMPTS, VOCAB

LENGTH = 12
CPU = torch.device("cpu")


class Recorder:
    """Runs the work once when it records it, and again at every replay."""

    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def __call__(self, work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        self.recorded += 1
        work()

        def replay() -> Tensor:
            self.replayed += 1
            return work()

        return replay


class Pair:
    """A recording runner and an eager pass over caches of their own."""

    def __init__(self, model: LanguageModel, batch: int) -> None:
        self.model, self.recorder = model, Recorder()
        self.caches = [KVCache(model.spec, batch, LENGTH, CPU, torch.float32) for _ in range(2)]
        self.runner = RowRunner(model.backbone, self.caches[0], self.recorder, record_after=0)
        self.generator = torch.Generator().manual_seed(4)

    def step(self, batch: int, num_rows: int, padded: bool = False, num_sources: int = 2) -> None:
        """One pass over random tokens, positions and rows by both; results and K/V must be equal."""
        tokens = torch.randint(0, VOCAB, (batch, LENGTH), generator=self.generator)
        order = torch.rand(batch, LENGTH, generator=self.generator).argsort(dim=1)
        rows = order[:, :num_rows].sort(dim=1).values
        sources = order[:, :num_sources].sort(dim=1).values
        start = int(torch.randint(0, 9, (1,), generator=self.generator))
        rotary = self.model.backbone.rotary(torch.arange(start, start + LENGTH).expand(batch, -1))
        mask = None
        if padded:
            mask = torch.ones(batch, 1, 1, LENGTH, dtype=torch.bool)
            mask[0, ..., : 1 + start % 3] = False
        masks = [mask] * LAYERS
        ours = self.runner(tokens, rotary, rows, sources, masks)
        wanted = forward_rows(self.model.backbone, tokens, rotary, rows, sources, self.caches[1], masks)
        assert torch.equal(ours, wanted)
        assert torch.equal(self.caches[0].k, self.caches[1].k)
        assert torch.equal(self.caches[0].v, self.caches[1].v)


@pytest.mark.parametrize("batch", [1, 2])
def test_replays_read_what_each_step_brings(model: LanguageModel, batch: int) -> None:
    pair = Pair(model, batch)
    for num_rows in (LENGTH, 4, 4, 7, 4, 7):
        pair.step(batch, num_rows)
    assert (pair.recorder.recorded, pair.recorder.replayed) == (2, 5)


def test_a_kind_is_recorded_once_it_has_come_often(model: LanguageModel) -> None:
    """What comes seldom costs more to record than it gains: graphs end with their run."""
    pair = Pair(model, 1)
    pair.runner.record_after = 3
    recorded = []
    for num_rows in (4, 7, 4, 4, 7, 4, 4, 7):
        pair.step(1, num_rows)
        recorded.append(pair.recorder.recorded)
    assert recorded == [0, 0, 0, 0, 0, 1, 1, 1]
    assert pair.recorder.replayed == 2


def test_masked_and_unmasked_passes_are_recorded_apart(model: LanguageModel) -> None:
    pair = Pair(model, 2)
    for padded in (False, True, True, False):
        pair.step(2, 5, padded)
    assert (pair.recorder.recorded, pair.recorder.replayed) == (2, 4)


def test_passes_of_another_number_of_sources_are_recorded_apart(model: LanguageModel) -> None:
    pair = Pair(model, 2)
    for num_sources in (1, 3, 3, 1):
        pair.step(2, 5, num_sources=num_sources)
    assert (pair.recorder.recorded, pair.recorder.replayed) == (2, 4)


def test_watched_passes_and_layers_of_their_own_masks_run_eagerly(model: LanguageModel) -> None:
    recorder = Recorder()
    cache = KVCache(model.spec, 1, LENGTH, CPU, torch.float32)
    runner = RowRunner(model.backbone, cache, recorder, record_after=0)
    tokens, rows = torch.arange(LENGTH)[None], torch.tensor([[1, 5]])
    rotary, seen = model.backbone.rotary(torch.arange(LENGTH)[None]), []
    runner(tokens, rotary, rows, rows, [None] * LAYERS, lambda layer, weights: seen.append(layer))
    masks = [torch.ones(1, 1, 1, LENGTH, dtype=torch.bool) for _ in range(LAYERS)]
    runner(tokens, rotary, rows, rows, masks)
    assert seen == list(range(LAYERS))
    assert recorder.recorded == 0


@pytest.mark.parametrize("policy", ["entropy", "dual", "d2cache"])
def test_a_generation_is_the_same_with_recorded_passes(model: LanguageModel, policy: str) -> None:
    def tokens(capture: Recorder | None) -> list[int]:
        settings = {"entropy_threshold": math.inf} if policy == "entropy" else {}
        chosen = create_policy(policy, **settings)
        denoiser = Denoiser(model, config(), chosen, 1, len(PROMPTS[0]))
        denoiser.runner = RowRunner(model.backbone, denoiser.cache, capture, record_after=0)
        denoiser.admit({0: list(PROMPTS[0])})
        while not denoiser.step().finished.all():
            pass
        return denoiser.state.tokens[0].tolist()

    recorder = Recorder()
    with torch.inference_mode():
        decoded = tokens(None)
        assert tokens(recorder) == decoded
    assert MASK not in decoded
    assert (recorder.replayed > 0) == (policy != "d2cache")
