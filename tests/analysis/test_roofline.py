"""Roofline: the arithmetic of a step against counts made another way and against known totals."""

from collections.abc import Callable

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from analysis.bench_roofline import H200, Experts, ModelCost, generation_seconds
from analysis.shapes import SHAPES, parse_shape, random_model
from core import LanguageModel
from core.cache import KVCache
from core.forward import forward_rows

LLADA = ModelCost.of(SHAPES["llada-8b"])
MIXTURE = ModelCost(32, 60e6, 21e6, 4096, 1024, 640e6, Experts(256, 8, 12.6e6))
SMALL = "small:num_layers=3,hidden_size=64,vocab_size=90"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> LanguageModel:
    # The counter does not know products on packed weights.
    monkeypatch.setattr("analysis.shapes.arrange_weights", lambda backbone: None)
    return random_model(SMALL, torch.device("cpu"), torch.float32)


def counted(work: Callable[[], object]) -> int:
    """What torch counts. Attention is written out: the counter does not know the CPU's fused kernel."""
    plain = sdpa_kernel(SDPBackend.MATH)
    with torch.no_grad(), plain, FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def test_a_full_pass_counts_what_torch_counts(model: LanguageModel) -> None:
    tokens = torch.arange(40).expand(3, -1)
    found = counted(lambda: model.backbone(tokens))
    assert found == ModelCost.of(parse_shape(SMALL)).flops(40, 40, 40, batch=3)


@pytest.mark.parametrize(("num_rows", "num_targets"), [(40, 40), (40, 7), (12, 7), (5, 5)])
def test_a_step_counts_what_torch_counts(model: LanguageModel, num_rows: int, num_targets: int) -> None:
    tokens = torch.arange(40).expand(3, -1)
    backbone, spec = model.backbone, model.spec
    cache = KVCache(spec, 3, 40, model.device, torch.float32)
    rows, targets = (tokens[:, :count].contiguous() for count in (num_rows, num_targets))
    masks = [None] * spec.num_layers

    def step() -> object:
        return backbone.logits(
            forward_rows(backbone, tokens, backbone.rotary(tokens), rows, targets, cache, masks)
        )

    assert counted(step) == ModelCost.of(spec).flops(num_rows, num_targets, 40, batch=3)


def test_known_totals() -> None:
    assert LLADA.flops(1, 1, 0) - 2 * LLADA.head_weights == pytest.approx(14.0e9, rel=0.01)
    assert LLADA.weight_bytes == pytest.approx(16.0e9, rel=0.01)
    assert LLADA.kv_bytes(1) == 512 * 1024
    assert ModelCost.of(SHAPES["dream-7b"]).kv_bytes(1) == 56 * 1024


def test_few_rows_wait_for_the_weights_and_many_for_the_arithmetic() -> None:
    few, more = (LLADA.seconds(H200, rows, 32, 1024) for rows in (32, 96))
    assert few == pytest.approx(more, rel=0.02)
    assert LLADA.seconds(H200, 1024, 32, 1024) == pytest.approx(LLADA.flops(1024, 32, 1024) / H200.flops)
    assert LLADA.seconds(H200.times(8), 1024, 32, 1024) == pytest.approx(
        LLADA.seconds(H200, 1024, 32, 1024) / 8
    )


def test_rows_reach_experts_until_all_are_reached() -> None:
    experts = MIXTURE.experts
    assert experts is not None
    assert experts.touched(1) == pytest.approx(8)
    assert experts.touched(4) < 32
    assert experts.touched(10_000) == pytest.approx(256)
    assert MIXTURE.bytes_moved(512, 32, 1024) > 2 * MIXTURE.bytes_moved(8, 8, 1024)
    # The last layer's experts see only the rows that predict.
    spared = MIXTURE.bytes_moved(512, 512, 1024) - MIXTURE.bytes_moved(512, 32, 1024)
    assert spared == pytest.approx(2 * experts.weights * (experts.touched(512) - experts.touched(32)))
    assert MIXTURE.flops(1, 1, 0) == pytest.approx(2 * 32 * (60e6 + 8 * 12.6e6) + 2 * 640e6)


def test_sequences_fit_until_their_keys_fill_the_memory() -> None:
    batch = LLADA.largest_batch(H200, 1024)
    assert LLADA.weight_bytes + LLADA.kv_bytes(1024) * batch <= 0.9 * H200.memory
    assert LLADA.weight_bytes + LLADA.kv_bytes(1024) * (batch + 1) > 0.9 * H200.memory


def test_a_generation_lies_between_all_partial_and_all_full() -> None:
    times = [generation_seconds(LLADA, H200, 1024, 100, share, rows=64) for share in (0, 0.1, 1)]
    assert times == sorted(times)
    assert times[2] == pytest.approx(100 * LLADA.seconds(H200, 1024, 32, 1024))
