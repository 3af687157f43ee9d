"""The transformer and its partial passes, against transformers' own layers and against each other."""

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from core import LanguageModel, load_model
from core.cache import DeltaCache, KVCache
from core.forward import forward_layerwise, forward_rows
from core.rows import to_rows
from tests import tiny
from tests.tiny import LAYERS, reference_logits

LENGTH = 14
CPU = torch.device("cpu")


def canvas(batch: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, tiny.VOCAB, (batch, LENGTH), generator=generator)


class Passes:
    """A cache for one canvas and the two kinds of pass over it."""

    def __init__(self, model: LanguageModel, tokens: Tensor, valid: Tensor | None = None) -> None:
        self.backbone, self.tokens = model.backbone, tokens
        self.valid = torch.ones_like(tokens, dtype=torch.bool) if valid is None else valid
        self.rotary = self.backbone.rotary((self.valid.long().cumsum(dim=1) - 1).clamp(min=0))
        self.cache = KVCache(model.spec, len(tokens), LENGTH, CPU, torch.float32)
        self.deltas = DeltaCache(model.spec, len(tokens), LENGTH, CPU, torch.float32)
        mask = None if valid is None else valid[:, None, None]
        self.masks = [mask] * LAYERS

    def rows(self, wanted: Tensor, num_rows: int) -> tuple[Tensor, Tensor]:
        """Row indices and their logits."""
        rows = to_rows(wanted, num_rows)
        hidden = forward_rows(self.backbone, self.tokens, self.rotary, rows, rows, self.cache, self.masks)
        return rows, self.backbone.logits(hidden)

    def layerwise(self, wanted: Tensor, forced: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of every position and the layers recomputed, `wanted` [N, B, L] by layer."""
        hidden, refreshed = forward_layerwise(
            self.backbone,
            self.tokens,
            self.rotary,
            self.cache,
            self.deltas,
            lambda layer, view: wanted[layer],
            self.valid,
            forced,
            self.masks,
        )
        return self.backbone.logits(hidden), refreshed


@pytest.mark.parametrize("name", tiny.LOADABLE)
def test_a_plain_pass_agrees_with_transformers(name: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    reference = tiny.reference_model(name, seed=3)
    folder = tiny.write_checkpoint(tmp_path / name, name, reference)
    model = load_model(str(folder), device="cpu", dtype="float32")
    torch.testing.assert_close(
        model.full_logits(canvas()), reference_logits(reference, canvas()), rtol=0, atol=1e-4
    )


def test_all_rows_are_a_plain_pass(model: LanguageModel) -> None:
    tokens = canvas()
    _, logits = Passes(model, tokens).rows(torch.ones_like(tokens, dtype=torch.bool), LENGTH)
    torch.testing.assert_close(logits, model.full_logits(tokens), rtol=0, atol=1e-5)


def test_left_padding_agrees_with_transformers(model: LanguageModel, reference: PreTrainedModel) -> None:
    tokens = canvas()
    valid = torch.ones_like(tokens, dtype=torch.bool)
    valid[0, :5] = False
    _, logits = Passes(model, tokens, valid).rows(torch.ones_like(valid), LENGTH)
    wanted = reference_logits(reference, tokens, valid)
    torch.testing.assert_close(logits[valid], wanted[valid], rtol=0, atol=1e-4)


@pytest.mark.parametrize("surplus", [0, 3])
def test_any_rows_after_a_full_pass_repeat_its_logits(model: LanguageModel, surplus: int) -> None:
    passes = Passes(model, canvas())
    full = passes.rows(torch.ones_like(passes.valid), LENGTH)[1]
    wanted = torch.zeros_like(passes.valid)
    wanted[0, [1, 4, 9]], wanted[1, [0, 13]] = True, True
    rows, logits = passes.rows(wanted, 3 + surplus)
    for sequence in range(2):
        for place, row in enumerate(rows[sequence].tolist()):
            if row < LENGTH:
                wanted_row = full[sequence, row]
                torch.testing.assert_close(logits[sequence, place], wanted_row, rtol=1.3e-6, atol=1e-5)


@pytest.mark.parametrize("watched", [False, True])
def test_sources_alone_come_out_as_among_all_rows(model: LanguageModel, watched: bool) -> None:
    """And the K/V of every row is written, whichever rows predict and whoever looks at the attention."""
    tokens, seen = canvas(), []
    valid = torch.ones_like(tokens, dtype=torch.bool)
    valid[0, :5] = False
    whole, some = Passes(model, tokens, valid), Passes(model, tokens, valid)
    rows, logits = whole.rows(valid, LENGTH)
    sources = torch.tensor([[6, 9, LENGTH], [0, 3, 13]])
    hidden = forward_rows(
        some.backbone,
        tokens,
        some.rotary,
        rows,
        sources,
        some.cache,
        some.masks,
        (lambda layer, weights: seen.append(weights.shape[2])) if watched else None,
    )
    for ours, wanted in zip((some.cache.k, some.cache.v), (whole.cache.k, whole.cache.v), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=0, atol=1e-5)
    assert seen == ([LENGTH] * LAYERS if watched else [])
    predicted = some.backbone.logits(hidden)
    for sequence, place in zip(*torch.nonzero(sources < LENGTH, as_tuple=True), strict=True):
        row = int((rows[sequence] == sources[sequence, place]).nonzero())
        torch.testing.assert_close(predicted[sequence, place], logits[sequence, row], rtol=0, atol=1e-5)


def test_a_partial_pass_writes_its_rows_and_no_others(model: LanguageModel) -> None:
    passes = Passes(model, canvas())
    passes.rows(torch.ones_like(passes.valid), LENGTH)
    before = passes.cache.k.clone(), passes.cache.v.clone()
    passes.tokens = (passes.tokens + 1) % tiny.VOCAB
    wanted = torch.zeros_like(passes.valid)
    wanted[0, [2, 5]], wanted[1, 7] = True, True
    passes.rows(wanted, 4)
    for old, new in zip(before, (passes.cache.k, passes.cache.v), strict=True):
        changed = (old != new).any(dim=-1).any(dim=2)[..., :LENGTH]
        assert torch.equal(changed, wanted.expand(LAYERS, -1, -1))


def test_a_partial_pass_attends_to_what_the_cache_holds(model: LanguageModel) -> None:
    """Rows of changed tokens: equal to a plain pass only if the changed rows are among them."""
    passes = Passes(model, canvas(1))
    passes.rows(torch.ones_like(passes.valid), LENGTH)
    passes.tokens = passes.tokens.clone()
    passes.tokens[0, 3] = (passes.tokens[0, 3] + 7) % tiny.VOCAB
    wanted = torch.zeros_like(passes.valid)
    wanted[0, 8] = True
    stale = passes.rows(wanted, 1)[1][0, 0]
    fresh = model.full_logits(passes.tokens)[0, 8]
    assert (stale - fresh).abs().max() > 1e-3
    assert torch.isfinite(stale).all()


def test_layerwise_over_all_rows_is_a_plain_pass(model: LanguageModel) -> None:
    passes = Passes(model, canvas())
    everything = torch.ones_like(passes.valid)
    logits, refreshed = passes.layerwise(everything.expand(LAYERS, -1, -1), ~everything)
    torch.testing.assert_close(logits, model.full_logits(passes.tokens), rtol=0, atol=1e-5)
    assert (refreshed == LAYERS).all()


def test_layerwise_repeats_the_logits_whatever_is_kept(model: LanguageModel) -> None:
    passes = Passes(model, canvas())
    nothing = torch.zeros_like(passes.valid)
    full = passes.layerwise(nothing.expand(LAYERS, -1, -1), ~nothing)[0]
    some = torch.rand(LAYERS, 2, LENGTH, generator=torch.Generator().manual_seed(2)) < 0.4
    some[1] = False
    logits, refreshed = passes.layerwise(some, nothing)
    torch.testing.assert_close(logits, full, rtol=0, atol=1e-5)
    assert torch.equal(refreshed, some.long().sum(dim=0))


def test_a_kept_row_adds_its_cached_increments_to_the_new_embedding(model: LanguageModel) -> None:
    passes = Passes(model, canvas(1))
    nothing = torch.zeros_like(passes.valid)
    passes.layerwise(nothing.expand(LAYERS, -1, -1), ~nothing)
    increments = passes.deltas.increments[:, 0, 6].sum(dim=0)
    passes.tokens = passes.tokens.clone()
    passes.tokens[0, 6] = (passes.tokens[0, 6] + 5) % tiny.VOCAB
    logits = passes.layerwise(nothing.expand(LAYERS, -1, -1), nothing)[0][0, 6]
    hidden = model.backbone.embedding(passes.tokens[0, 6]) + increments
    torch.testing.assert_close(logits, model.backbone.logits(hidden[None, None])[0, 0], rtol=0, atol=1e-5)
