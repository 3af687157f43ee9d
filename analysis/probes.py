"""Probes: how far value vectors move from one refresh to the next, and how wrong a cache is by now."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from analysis.drift import POSITION_CLASSES
from core.cache import KVCache
from core.forward import forward_rows
from core.models.language_model import LanguageModel
from core.rows import gather_rows, to_rows
from core.state import PROMPT, DecodeState


def cosine_distance(new: Tensor, old: Tensor) -> Tensor:
    """1 - cos along the last axis, float32; exactly 0 for equal vectors."""
    # Half the squared chord: unlike 1 - dot product it keeps its precision near 0.
    return (F.normalize(new.float(), dim=-1) - F.normalize(old.float(), dim=-1)).square().sum(dim=-1) / 2


def head_vectors(buffer: Tensor, batch: int) -> Tensor:
    """One layer's K or V buffer [B', G, L, D] as vectors over all heads, [B, L, G * D]."""
    return buffer[:batch].transpose(1, 2).flatten(2)


class ValueDriftProbe:
    """Cosine distance of each position's value vectors between two successive refreshes of them.

    In a run without a cache every position is refreshed every step, so this is the drift of arXiv
    2603.18489 between the forwards of steps t-1 and t. Under a policy only the positions that a step
    refreshes are observed, against what the buffer held, however old; the rest are NaN, never 0. Nothing
    is observed at a sequence's first step.

    Measurements: `value_drift` float [N, C], mean of each layer over the observed positions of each of
    POSITION_CLASSES; `value_drift_count` int [N, C], how many those are; `token_drift` float [Y], layer
    mean of each generated position; `token_changed` bool [Y], the position's token is another one than at
    its last refresh, which moves its vectors by itself. Layer 0 sees no context: its V moves only there.
    """

    def __init__(self) -> None:
        self._values = torch.empty(0)
        self._tokens = torch.empty(0)

    def measure(self, state: DecodeState, cache: KVCache, refreshed: Tensor) -> dict[str, np.ndarray]:
        """One step's measurements, arrays with leading axis B; see the class."""
        batch = len(refreshed)
        if self._values.shape != cache.v.shape:
            self._values, self._tokens = cache.v.clone(), state.tokens.clone()
        written = (refreshed > 0) & state.valid & state.active[:, None]
        known = written & (state.step > 0)[:, None]
        changed = known & (state.tokens != self._tokens)
        drift, observed = [], []
        for new, old in zip(cache.v, self._values, strict=True):
            new, old = head_vectors(new, batch), head_vectors(old, batch)
            drift.append(cosine_distance(new, old))
            # A layerwise policy refreshes a position in some layers only; the untouched keep their bits.
            everywhere = refreshed == cache.v.shape[0]
            observed.append(known & (everywhere | (new != old).any(dim=-1)))
        self._values.copy_(cache.v)
        self._tokens = torch.where(written, state.tokens, self._tokens)
        return _summary(state, torch.stack(drift), torch.stack(observed), changed)


def _summary(state: DecodeState, drift: Tensor, observed: Tensor, changed: Tensor) -> dict[str, np.ndarray]:
    """Means of drift where observed, both [N, B, L], by layer and position class and by token."""
    prompt = state.decoded_at == PROMPT
    masked = state.masked
    of_class = (prompt, ~prompt & ~masked & ~changed, changed, state.window, masked & ~state.window)
    assert len(of_class) == len(POSITION_CLASSES)
    counted = observed[:, None] & torch.stack(of_class)
    count = counted.sum(dim=-1)
    mean = (drift[:, None] * counted).sum(dim=-1) / count
    by_token = (drift * observed).sum(dim=0) / observed.sum(dim=0)
    return {
        "value_drift": _to_numpy(mean.permute(2, 0, 1)),
        "value_drift_count": count.permute(2, 0, 1).cpu().numpy(),
        "token_drift": _to_numpy(by_token[:, state.prompt_len :]),
        "token_changed": changed[:, state.prompt_len :].cpu().numpy(),
    }


class StalenessProbe:
    """How wrong the cache is: the live one against a full pass over the same canvas, every `every` steps.

    Costs a full pass, a partial one and a second K/V buffer a look, in none of the run's seconds.
    Measurements, NaN on the steps that are not looked at: `key_staleness`, `value_staleness` float [N],
    mean cosine distance over all positions; `token_staleness` float [Y], layer mean of V;
    `hidden_staleness` float, the same distance of the final hidden states that predict the window's
    masks; `flipped` float, the share of these masks whose most likely token differs between the two.
    The last two are NaN where a policy did not compute those rows in every layer, and under guidance, whose
    choices are of two copies. What a policy hides from attention is hidden here too, but for the full pass.
    """

    def __init__(self, model: LanguageModel, every: int = 1) -> None:
        if every < 1:
            raise ValueError(f"every is {every}; allowed: an integer of at least 1")
        self.model, self.every = model, every
        self._calls = 0

    def measure(self, state: DecodeState, cache: KVCache, refreshed: Tensor) -> dict[str, np.ndarray]:
        """One step's measurements, arrays with leading axis B; see the class."""
        self._calls += 1
        batch, length = refreshed.shape
        layers = cache.k.shape[0]
        if (self._calls - 1) % self.every:
            widths = {"key_staleness": (layers,), "value_staleness": (layers,), "flipped": ()}
            widths |= {"token_staleness": (length - state.prompt_len,), "hidden_staleness": ()}
            return {name: np.full((batch, *width), np.nan, np.float32) for name, width in widths.items()}
        scratch = self._copy(cache, batch, length)
        hidden, flipped = self._decisions(state, scratch, refreshed, cache.key_masks)
        if cache.k.shape[1] != batch:
            hidden, flipped = torch.full_like(hidden, torch.nan), torch.full_like(flipped, torch.nan)
        key, value = (
            torch.stack(
                [
                    cosine_distance(head_vectors(a, batch), head_vectors(b, batch))
                    for a, b in zip(live, full, strict=True)
                ]
            )
            for live, full in ((cache.k, scratch.k), (cache.v, scratch.v))
        )
        where = state.valid & state.active[:, None]
        return {
            "key_staleness": _to_numpy(((key * where).sum(dim=-1) / where.sum(dim=1)).T),
            "value_staleness": _to_numpy(((value * where).sum(dim=-1) / where.sum(dim=1)).T),
            "token_staleness": _to_numpy(value.mean(dim=0)[:, state.prompt_len :]),
            "hidden_staleness": _to_numpy(hidden),
            "flipped": _to_numpy(flipped),
        }

    def _copy(self, cache: KVCache, batch: int, length: int) -> KVCache:
        scratch = KVCache(self.model.spec, batch, length, cache.k.device, cache.k.dtype)
        scratch.k.copy_(cache.k[:, :batch])
        scratch.v.copy_(cache.v[:, :batch])
        return scratch

    def _decisions(
        self, state: DecodeState, scratch: KVCache, refreshed: Tensor, seen: Sequence[Tensor | None]
    ) -> tuple[Tensor, Tensor]:
        """hidden_staleness and flipped, [B]; leaves the full pass's K/V in `scratch`."""
        spec, backbone, length = self.model.spec, self.model.backbone, scratch.length
        targets = to_rows(state.window, int(state.window.sum(dim=1).max()))
        sources = torch.where(targets < length, targets - spec.logit_shift, length)
        masks = [state.valid[:, None, None]] * spec.num_layers
        as_run = [
            mask if own is None else own[: len(refreshed)] for own, mask in zip(seen, masks, strict=True)
        ]
        # The policy's own rows stand in the copy already, so these come out as they did in its forward.
        rotary = backbone.rotary(state.positions)
        live = forward_rows(backbone, state.tokens, rotary, sources, sources, scratch, as_run)
        everything = to_rows(state.valid, length)
        full = forward_rows(backbone, state.tokens, rotary, everything, sources, scratch, masks)
        computed = gather_rows(refreshed, sources) == spec.num_layers
        where = (targets < length) & computed
        differs = self._choice(live) != self._choice(full)
        distance = cosine_distance(live, full)
        count = where.sum(dim=1)
        return (distance * where).sum(dim=1) / count, (differs & where).sum(dim=1) / count

    def _choice(self, hidden: Tensor) -> Tensor:
        """The most likely token other than the mask, int [B, T]."""
        logits = self.model.backbone.logits(hidden)
        logits[..., self.model.spec.mask_token_id] = -torch.inf
        return logits.argmax(dim=-1)


def _to_numpy(values: Tensor) -> np.ndarray:
    """float32 in four significant digits, which keeps files small and is all that float32 drift holds."""
    array = values.float().cpu().numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (3 - np.floor(np.log10(np.abs(array))))
        rounded = np.round(array * scale) / scale
    return np.where(array == 0, array, rounded).astype(np.float32)
