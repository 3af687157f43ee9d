"""Floor: what a step costs beside its own matrix products, run alone at the same row counts."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

import pandas as pd
import torch
from torch import Tensor

from analysis.spread import spread
from core import GenerationConfig, LanguageModel
from core.cache import KVCache, RowStore
from core.denoiser import Denoiser
from core.models.attention import attend as attend_rows
from core.models.transformer import Layer
from core.policies.base import Outcome, Plan
from core.policies.entropy_cache import EntropyCache, EntropyCacheConfig
from core.rows import gather_rows, row_index, to_rows
from core.state import DecodeState
from core.timing import CLOCKS

WINDOW = 32  # targets of a step: the sliding window keeps their number
WARM_UP = 3
PRODUCTS = ("projections", "attention", "mlp", "head")
PARTS = ("gather", *PRODUCTS, "plan")


@dataclass(frozen=True)
class FloorPoint:
    """A step of `rows` rows and `targets` targets against its matrix products: medians of `repeats` rounds.

    Every round runs the step, each part and each product once, one after another. step_seconds,
    floor_seconds (all products); ratio: their quotient, round by round, with its quartiles. parts:
    seconds of each part of a step run alone, `rest` what they leave of the step: residual sums, the proposal,
    the commit, the host copy. products: seconds of the bare products inside a part, over all layers.
    """

    model: str
    dtype: str
    device: str
    threads: int
    clock: str
    length: int
    batch: int
    rows: int
    targets: int
    repeats: int
    step_seconds: float
    floor_seconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    parts: dict[str, float]
    products: dict[str, float]

    @property
    def plan_share(self) -> float:
        """The decision's share of the step."""
        return self.parts["plan"] / self.step_seconds


def to_frame(points: Sequence[FloorPoint]) -> pd.DataFrame:
    """One row a point, parts and products as columns of their own."""
    return pd.json_normalize([vars(point) for point in points])


class FixedRows(EntropyCache):
    """EntropyCache's decision, with the window and so many other positions recomputed whatever it says."""

    def __init__(self, rows: int) -> None:
        super().__init__(EntropyCacheConfig(entropy_threshold=math.inf))
        self.rows = rows
        self.outcome: Outcome | None = None

    def plan(self, state: DecodeState) -> Plan:
        others = ~state.window
        room = self.rows - state.window.sum(dim=1, keepdim=True)
        refresh = state.window | (others & (others.cumsum(dim=1) <= room))
        return replace(super().plan(state), refresh=refresh)

    def observe(self, state: DecodeState, outcome: Outcome) -> None:
        self.outcome = outcome
        super().observe(state, outcome)

    def decide(self, state: DecodeState) -> Plan:
        """EntropyCache's work of one step alone: hear the last outcome again and plan."""
        assert self.outcome is not None
        super().observe(state, self.outcome)
        return super().plan(state)


@torch.inference_mode()
def measure_floor(
    model: LanguageModel,
    length: int,
    row_counts: Sequence[int],
    *,
    batch: int = 1,
    repeats: int = 20,
    gen_length: int = 256,
    clock: str = "wall",
) -> Iterator[FloorPoint]:
    """A FloorPoint for each row count at canvas `length`, with 32 targets; `length` rows are a full step.

    Raises ValueError for rows below 32 or above length, and for more rounds than there are tokens.
    """
    if clock not in CLOCKS:
        raise ValueError(f"clock is {clock!r}; allowed: {', '.join(CLOCKS)}")
    if repeats + WARM_UP > gen_length - WINDOW:
        raise ValueError(f"repeats is {repeats}; allowed: up to {gen_length - WINDOW - WARM_UP}")
    if not gen_length < length <= model.spec.max_positions:
        limit = model.spec.max_positions
        raise ValueError(f"length is {length}; allowed: above gen_length {gen_length}, up to {limit}")
    for rows in row_counts:
        if not WINDOW <= rows <= length:
            raise ValueError(f"rows is {rows}; allowed: {WINDOW} to length {length}")
    for rows in row_counts:
        policy = FixedRows(rows)
        denoiser = make_denoiser(model, length, policy, batch, gen_length)
        actions = _actions(model, denoiser, policy)
        seconds: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(repeats + WARM_UP):
            for name, action in actions.items():
                seconds[name].append(_seconds(action, model.device, CLOCKS[clock]))
        yield _point(model, denoiser, clock, {name: times[WARM_UP:] for name, times in seconds.items()})


def make_denoiser(
    model: LanguageModel, length: int, policy: FixedRows, batch: int, gen_length: int
) -> Denoiser:
    """Past its first step, at which everything is recomputed."""
    config = GenerationConfig(
        gen_length=gen_length, block_length=WINDOW, window="sliding", unmask="quota", steps=gen_length
    )
    prompt_length = length - gen_length
    denoiser = Denoiser(model, config, policy, batch, prompt_length)
    # What is measured is a step of many.
    denoiser.runner.record_after = 0
    special = {model.spec.mask_token_id, model.spec.pad_token_id, *model.spec.eos_token_ids}
    known = [token for token in range(min(model.spec.vocab_size, 1000)) if token not in special]
    prompt = (known * (prompt_length // len(known) + 1))[:prompt_length]
    denoiser.admit(dict.fromkeys(range(batch), prompt))
    denoiser.step()
    return denoiser


def _actions(model: LanguageModel, denoiser: Denoiser, policy: FixedRows) -> dict[str, Callable[[], object]]:
    """step, the parts, and the bare products under `floor NAME`; all over every layer of the model."""
    backbone, spec, state = model.backbone, model.spec, denoiser.state
    layers = cast("list[Layer]", backbone.layers)
    assert denoiser.task is not None
    rows = to_rows(denoiser.task.rows, denoiser.num_rows)
    targets = to_rows(denoiser.task.targets, denoiser.num_targets)
    batch = rows.shape[0]
    cache = KVCache(spec, batch, denoiser.length, model.device, model.dtype)

    def noise(*shape: int) -> Tensor:
        return torch.randn(batch, *shape, device=model.device).to(model.dtype)

    for buffer in (cache.k, cache.v):
        buffer.copy_(noise(*buffer.shape[2:]).expand_as(buffer))
    store, rotary = RowStore(cache, rows), denoiser.rotary.at(rows)
    hidden, logit_rows = noise(rows.shape[1], spec.hidden_size), noise(targets.shape[1], spec.hidden_size)
    q_width, inner = spec.num_heads * spec.head_dim, noise(rows.shape[1], spec.intermediate_size)
    mixed = noise(rows.shape[1], q_width)
    q, k, v = layers[0].project(hidden, rotary)
    last_q = q[:, :, : targets.shape[1]].contiguous()

    def finished(layer: int, values: Tensor) -> Tensor:
        """Of [B, R, ...] the rows that go through all of a layer: in the last one those that predict."""
        return values if layer < spec.num_layers - 1 else values[:, : targets.shape[1]]

    def attend(layer: int, keys: Tensor, values: Tensor) -> Tensor:
        return attend_rows(q if layer < spec.num_layers - 1 else last_q, keys, values)

    def gather() -> Tensor:
        denoiser.rotary.at(to_rows(denoiser.task.rows, denoiser.num_rows))  # type: ignore[union-attr]
        backbone.embedding(gather_rows(state.tokens, rows))
        return gather_rows(hidden, row_index(rows, targets))

    def over_layers(work: Callable[[int, Layer], object]) -> Callable[[], object]:
        return lambda: [work(index, layer) for index, layer in enumerate(layers)]

    return {
        "step": denoiser.step,
        "gather": gather,
        "plan": lambda: policy.decide(state),
        "projections": over_layers(
            lambda i, layer: (layer.project(hidden, rotary), layer.attn_out(finished(i, mixed)))
        ),
        "attention": over_layers(lambda i, layer: attend(i, *store.update(i, q, k, v)).transpose(1, 2)),
        "mlp": over_layers(lambda i, layer: layer.mlp(finished(i, hidden))),
        "head": lambda: backbone.logits(logit_rows),
        "floor projections": over_layers(
            lambda i, layer: (layer.qkv(hidden), layer.attn_out(finished(i, mixed)))
        ),
        "floor attention": over_layers(lambda i, layer: attend(i, *cache.read(i))),
        "floor mlp": over_layers(
            lambda i, layer: (layer.gate_up(finished(i, hidden)), layer.down(finished(i, inner)))
        ),
        "floor head": lambda: backbone.head(logit_rows),
    }


def _seconds(action: Callable[[], object], device: torch.device, clock: Callable[[], float]) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    begin = clock()
    action()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock() - begin


def _point(
    model: LanguageModel, denoiser: Denoiser, clock: str, seconds: dict[str, list[float]]
) -> FloorPoint:
    floors = [sum(times) for times in zip(*(seconds[f"floor {name}"] for name in PRODUCTS), strict=True)]
    ratios = [step / floor for step, floor in zip(seconds["step"], floors, strict=True)]
    low, high = spread(ratios)
    parts = {name: median(seconds[name]) for name in PARTS}
    step = median(seconds["step"])
    return FloorPoint(
        model=model.ref,
        dtype=str(model.dtype).removeprefix("torch."),
        device=str(model.device),
        threads=torch.get_num_threads(),
        clock=clock,
        length=denoiser.length,
        batch=denoiser.state.tokens.shape[0],
        rows=denoiser.num_rows,
        targets=denoiser.num_targets,
        repeats=len(ratios),
        step_seconds=step,
        floor_seconds=median(floors),
        ratio=median(ratios),
        ratio_low=low,
        ratio_high=high,
        parts=parts | {"rest": step - sum(parts.values())},
        products={name: median(seconds[f"floor {name}"]) for name in PRODUCTS},
    )
