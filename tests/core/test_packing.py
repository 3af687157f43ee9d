"""Weights laid out for speed give the products of plain ones."""

import copy
from collections.abc import Callable

import pytest
import torch

from core.models import packing
from core.models.packing import PackedLinear, arrange_weights, blocks_are_faster, can_pack
from core.models.spec import ModelSpec
from core.models.transformer import Linear, Transformer
from core.sampling import _argmax

needs_blocks = pytest.mark.skipif(
    not can_pack(torch.bfloat16), reason="no bfloat16 products of oneDNN on this processor"
)


def random_backbone(dtype: torch.dtype, tied: bool = False) -> Transformer:
    spec = ModelSpec("llada", 70, 32, 48, 2, 4, 2, 8, 10000.0, 1e-5, 64, 69, (1,), 1, tied_embeddings=tied)
    torch.manual_seed(1)
    backbone = Transformer(spec).to(dtype).requires_grad_(False)
    # The table is left as memory is: a checkpoint fills it.
    backbone.embedding.weight.normal_()
    if tied:
        backbone.head.weight = backbone.embedding.weight
    return backbone


@needs_blocks
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 37, 300])
def test_packed_products_are_the_plain_ones_bit_by_bit(bias: bool, rows: int) -> None:
    torch.manual_seed(rows)
    plain = Linear(192, 576, bias=bias).bfloat16().requires_grad_(False)
    packed, x = PackedLinear(plain), torch.randn(2, rows, 192).bfloat16()
    assert torch.equal(packed(x), plain(x))
    assert torch.equal(packed.last(x, 192), plain.last(x, 192))
    assert torch.equal(plain.last(x, 192), plain(x)[..., -192:])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_arranged_weights_keep_a_models_logits(dtype: torch.dtype, tied: bool) -> None:
    backbone = random_backbone(dtype, tied)
    tokens = torch.arange(20)[None]
    with torch.inference_mode():
        before = backbone(tokens)
        arrange_weights(backbone)
        torch.testing.assert_close(backbone(tokens), before, rtol=0, atol=1e-5)
    packs = can_pack(dtype) and (dtype == torch.bfloat16 or blocks_are_faster())
    assert isinstance(backbone.layers[0].down, PackedLinear) == packs
    assert isinstance(backbone.head, PackedLinear) == (packs and not tied)
    if tied:
        assert backbone.head.weight is backbone.embedding.weight


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_copied_model_computes_the_same_on_weights_of_its_own(dtype: torch.dtype) -> None:
    backbone = random_backbone(dtype)
    arrange_weights(backbone)
    tokens = torch.arange(20)[None]
    with torch.inference_mode():
        before = backbone(tokens)
        twin = copy.deepcopy(backbone)
        assert twin.layers[0].down is not backbone.layers[0].down
        assert torch.equal(twin(tokens), before)


@pytest.mark.parametrize("faster", [True, False])
def test_float32_weights_lie_in_blocks_only_where_that_is_faster(
    monkeypatch: pytest.MonkeyPatch, faster: bool
) -> None:
    monkeypatch.setattr(packing, "blocks_are_faster", lambda: faster)
    backbone = random_backbone(torch.float32)
    tokens = torch.arange(20)[None]
    with torch.inference_mode():
        before = backbone(tokens)
        arrange_weights(backbone)
        torch.testing.assert_close(backbone(tokens), before, rtol=0, atol=1e-5)
    down = backbone.layers[0].down
    assert isinstance(down, PackedLinear) == (faster and can_pack(torch.float32))
    assert down.weight.shape == (32, 48)
    assert isinstance(down, PackedLinear) or down.weight.T.is_contiguous()


@pytest.mark.parametrize(
    ("plain", "packed", "faster"), [(2.0, 1.0, True), (1.0, 2.0, False), (1.0, 0.95, False)]
)
def test_blocks_are_taken_for_a_tenth_and_no_less(
    monkeypatch: pytest.MonkeyPatch, plain: float, packed: float, faster: bool
) -> None:
    """Of a clock that only the products move."""
    now = [0.0]

    def costs(seconds: float) -> Callable[..., None]:
        return lambda *_: now.__setitem__(0, now[0] + seconds)

    monkeypatch.setattr(packing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(packing.F, "linear", costs(plain))
    monkeypatch.setattr(packing, "_pack", lambda weight: weight)
    monkeypatch.setattr(packing, "_product", costs(packed))
    assert blocks_are_faster.__wrapped__() == faster


@pytest.mark.parametrize("vocab", [10, 64, 128, 200, 1000])
def test_the_largest_score_is_found_where_argmax_finds_it(vocab: int) -> None:
    scores = torch.randint(0, 9, (3, 40, vocab), generator=torch.Generator().manual_seed(vocab)).float()
    assert torch.equal(_argmax(scores), scores.argmax(dim=-1))
    assert torch.equal(_argmax(-torch.arange(vocab).float()[None]), torch.zeros(1, dtype=torch.long))
