"""Denoiser: B slots on one canvas; admit requests into them and take denoising steps, all on the device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from core.cache import DeltaCache, KVCache
from core.config import GenerationConfig
from core.forward import OnRowAttention, forward_layerwise
from core.host_copy import StepCopy, to_host
from core.models.language_model import LanguageModel
from core.policies.base import CachePolicy, Outcome, Plan
from core.probes import Probe
from core.rows import gather_rows, round_up, to_rows
from core.runner import RowRunner, cuda_capture
from core.sampling import GumbelNoise, Proposal, propose
from core.state import DecodeState
from core.timing import Stopwatch
from core.unmask import UNMASK_RULES, best, certainty_density


@dataclass(frozen=True)
class Task:
    """The coming step, on the device: the plan limited to active, valid positions.

    rows, targets: bool [B, L]; reason: int [B]; counts: int64 [3], the largest row and target counts and
    whether the plan looks at attention.
    """

    plan: Plan
    rows: Tensor
    targets: Tensor
    reason: Tensor
    counts: Tensor


class Denoiser:
    """Owns the state, the buffers and the order of one denoising step."""

    def __init__(
        self,
        model: LanguageModel,
        config: GenerationConfig,
        policy: CachePolicy,
        num_slots: int,
        prompt_length: int,
        probes: Sequence[Probe] = (),
        row_bucket: int | None = None,
    ) -> None:
        spec, device = model.spec, model.device
        self.model, self.config, self.policy, self.probes = model, config, policy, probes
        # Kernels and CUDA graphs are made for each row count when it first occurs: let there be few.
        self.row_bucket = row_bucket or (32 if device.type == "cuda" else 8)
        self.state = DecodeState.empty(
            num_slots,
            prompt_length,
            config.gen_length,
            config.block_length,
            config.window == "sliding",
            spec.pad_token_id,
            device,
        )
        self.length = prompt_length + config.gen_length
        self.copies = 2 if config.cfg_scale > 0 else 1
        buffers = (spec, self.copies * num_slots, self.length, device, model.dtype)
        self.cache = KVCache(*buffers, keep_queries=policy.keeps_queries)
        self.deltas = DeltaCache(*buffers) if policy.layerwise else None
        self.runner = RowRunner(model.backbone, self.cache, cuda_capture if device.type == "cuda" else None)
        self.rule = UNMASK_RULES[config.unmask](config)
        self.noise = GumbelNoise(num_slots, device) if config.temperature > 0 else None
        self.padded = [False] * num_slots
        self.ends = torch.tensor(spec.eos_token_ids, device=device) if config.stop_at_eos else None
        self.rotary = model.backbone.rotary(self._copied(self.state.positions))
        self.watch = Stopwatch(device)
        policy.start(self.state, spec, config)
        self.task: Task | None = None
        self._take((0, 0, 0))

    def admit(self, requests: dict[int, list[int]]) -> None:
        """Put prompts into slots (slot -> ids) and plan the coming step anew; one host copy."""
        self.watch.start()
        slots = torch.zeros_like(self.state.active)
        for slot, prompt_ids in requests.items():
            spec = self.model.spec
            self.state.admit(slot, prompt_ids, spec.mask_token_id, spec.pad_token_id)
            self.padded[slot] = len(prompt_ids) < self.state.prompt_len
            slots[slot] = True
            if self.noise is not None:
                self.noise.reset(slot, self.config.seed)
        self.rotary = self.model.backbone.rotary(self._copied(self.state.positions))
        self.policy.reset(self.state, slots)
        self.rule.reset(slots)
        self.task = self._prepare()
        self._take(self.task.counts.tolist())
        self.watch.lap("decode")

    def step(self) -> StepCopy:
        """One denoising step of every active slot."""
        assert self.task is not None, "admit a request first"
        task, state, watch = self.task, self.state, self.watch
        watch.start()
        targets = to_rows(task.targets, round_up(self.num_targets, self.row_bucket, self.length))
        hidden, refreshed = self._forward(task, targets)
        logits = self._guided(self.model.backbone.logits(hidden))
        watch.lap("forward")
        proposal = self._propose(logits, targets)
        chosen = self.rule.select(proposal, state) & proposal.valid
        stuck = ~chosen.any(dim=1, keepdim=True)
        chosen = chosen | (stuck & best(proposal.score) & proposal.valid)
        watch.lap("decode")
        measurements = {
            name: array
            for probe in self.probes
            for name, array in probe.measure(state, self.cache, refreshed).items()
        }
        watch.start()
        clocks = [state.step, (state.block_start - state.prompt_len) // self.config.block_length]
        self._commit(proposal, chosen)
        full = ((refreshed == self.model.spec.num_layers) | ~state.valid).all(dim=1) & state.active
        finished = state.finished(self.ends)
        watch.lap("decode")
        self.policy.observe(state, Outcome(chosen, proposal, full, refreshed))
        watch.lap("plan")
        state.active = state.active & ~finished
        state.advance()
        self.task = self._prepare()
        grids = [proposal.positions, proposal.token, proposal.confidence, proposal.entropy, chosen]
        arrays, counts = to_host([*grids, refreshed, *clocks, task.reason, full, finished], self.task.counts)
        watch.lap("decode")
        self._take(counts)
        return StepCopy(**arrays, seconds=watch.read(), measurements=measurements)

    def _take(self, counts: Sequence[int]) -> None:
        self.num_rows, self.num_targets, self.watched = counts[0], counts[1], bool(counts[2])

    def _prepare(self) -> Task:
        """Plan the coming step; only the policy's own work is timed as `plan`, the rest as `decode`."""
        state = self.state
        self.watch.lap("decode")
        plan = self.policy.plan(state)
        self.watch.lap("plan")
        targets = state.window
        if plan.decode is not None:
            narrowed = state.window & plan.decode
            # A plan that leaves a sequence no target would stop it for ever.
            targets = torch.where(narrowed.any(dim=1, keepdim=True), narrowed, state.window)
        first = (state.step == 0)[:, None]
        rows = plan.refresh | first | self.model.backbone.source(targets)
        rows = rows & state.valid & state.active[:, None]
        looks = state.active if plan.watched is None else plan.watched & state.active
        counts = torch.stack((rows.sum(dim=1).max(), targets.sum(dim=1).max(), looks.any().long()))
        return Task(plan, rows, targets, torch.where(state.step == 0, 0, plan.reason), counts)

    def _forward(self, task: Task, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states [B', T, d] that predict the targets, and layers recomputed per position [B, L]."""
        state, plan = self.state, task.plan
        backbone, tokens = self.model.backbone, self._inputs()
        sources = self._copied((targets - self.model.spec.logit_shift).clamp(min=0))
        masks = self.cache.key_masks = self._key_masks(plan)
        watcher = None
        if plan.on_attention is not None and self.watched:
            callback = self._timed(plan.on_attention)
            watcher = OnRowAttention(callback, len(state.active), self.length)
        if plan.per_layer is None:
            num_rows = round_up(self.num_rows, self.row_bucket, self.length)
            rows = self._copied(to_rows(task.rows, num_rows))
            hook = watcher.at(rows) if watcher else None
            hidden = self.runner(tokens, self.rotary, rows, sources, masks, hook)
            return hidden, task.rows * self.model.spec.num_layers
        assert self.deltas is not None, "a policy with per_layer must say layerwise"
        allowed = state.valid & state.active[:, None]
        forced = (state.step == 0)[:, None].expand_as(allowed)
        if not self.policy.reads_kept_rows:
            forced = forced | backbone.source(task.targets)
        hidden, refreshed = forward_layerwise(
            backbone,
            tokens,
            self.rotary,
            self.cache,
            self.deltas,
            self._timed(plan.per_layer),
            allowed,
            forced,
            masks,
            watcher,
            self.row_bucket,
        )
        return gather_rows(hidden, sources), refreshed

    def _inputs(self) -> Tensor:
        tokens = self.state.tokens
        if self.copies == 1:
            return tokens
        prompt = self.state.columns < self.state.prompt_len
        return torch.cat((tokens, tokens.masked_fill(prompt, self.model.spec.mask_token_id)))

    def _key_masks(self, plan: Plan) -> list[Tensor | None]:
        num_layers = self.model.spec.num_layers
        valid = self.state.valid
        if plan.visible is None:
            mask = self._copied(valid)[:, None, None] if any(self.padded) else None
            return [mask] * num_layers
        return [self._copied(seen & valid)[:, None, None] for seen in plan.visible]

    def _copied(self, grid: Tensor) -> Tensor:
        """A grid [B, X] for conditional and unconditional sequences alike, [B', X]."""
        return grid if self.copies == 1 else grid.repeat(self.copies, 1)

    def _timed(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """A policy's callback inside the forward, its seconds charged to `plan`."""

        def timed(*args: Any) -> Any:
            self.watch.lap("forward")
            result = callback(*args)
            self.watch.lap("plan")
            return result

        return timed

    def _guided(self, logits: Tensor) -> Tensor:
        if self.copies == 1:
            return logits
        conditional, unconditional = logits.float().chunk(2)
        return unconditional + (self.config.cfg_scale + 1) * (conditional - unconditional)

    def _propose(self, logits: Tensor, targets: Tensor) -> Proposal:
        spec, state, gumbel, weight = self.model.spec, self.state, None, None
        if self.noise is not None:
            gumbel = self.noise.draw(state.window, targets, self.config.block_length, spec.vocab_size)
        if self.config.order == "density":
            weight = gather_rows(certainty_density(state), targets)
        valid = targets < self.length
        return propose(
            logits, targets, valid, self.config, spec.mask_token_id, spec.eos_token_ids, gumbel, weight
        )

    def _commit(self, proposal: Proposal, chosen: Tensor) -> None:
        shape = (chosen.shape[0], self.length + 1)
        tokens = torch.zeros(shape, dtype=torch.long, device=chosen.device)
        tokens.scatter_(1, proposal.positions, proposal.token)
        committed = torch.zeros(shape, dtype=torch.bool, device=chosen.device)
        committed.scatter_(1, proposal.positions, chosen)
        self.state.commit(committed[:, : self.length], tokens[:, : self.length])
