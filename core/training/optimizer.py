"""Muon for the block matrices, AdamW for embedding and gains, float32 masters, EMA, QK-clip."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.models.transformer import Layer
from core.training.model import TiedModel
from core.training.recipe import Recipe

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
MUON_MOMENTUM = 0.95
ADAM_BETAS = (0.9, 0.98)


def orthogonalise(updates: Tensor, steps: int = 4) -> Tensor:
    """Nearest semi-orthogonal matrices [K, R, C], R >= C, by a quintic Newton-Schulz iteration in bf16.

    Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
    """
    a, b, c = NEWTON_SCHULZ
    x = (updates / (updates.flatten(1).norm(dim=1)[:, None, None] + 1e-7)).bfloat16()
    for _ in range(steps):
        gram = x.transpose(1, 2) @ x
        x = a * x + x @ (b * gram + c * gram @ gram)
    return x.float()


def matrices(weight: Tensor, name: str) -> tuple[Tensor, ...]:
    """Views of the separate matrices inside one weight, each with no fewer rows than columns."""
    if name.endswith("qkv.weight"):
        return weight.chunk(3)
    if name.endswith("gate_up.weight"):
        return weight.chunk(2)
    return (weight.T,) if weight.shape[0] < weight.shape[1] else (weight,)


@dataclass
class Trained:
    """One tensor being trained: what the model computes with, its float32 master and its moments."""

    name: str
    parameter: Tensor
    master: Tensor
    average: Tensor
    first: Tensor
    second: Tensor | None


class Optimizer:
    """Owns the masters; `step` turns the gradients in the model into new weights."""

    def __init__(self, model: TiedModel, recipe: Recipe) -> None:
        self.model, self.recipe, self.count = model, recipe, 0
        self.trained: list[Trained] = []
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                continue
            master = parameter.detach().float().clone()
            is_matrix = parameter.ndim == 2 and parameter is not model.embedding
            second = None if is_matrix else torch.zeros_like(master)
            self.trained.append(
                Trained(name, parameter, master, master.clone(), torch.zeros_like(master), second)
            )

    @torch.no_grad()
    def step(self, factor: float, peaks: Tensor) -> None:
        """One update at `factor` times the peak learning rates; peaks [N, H] are for QK-clip."""
        self.count += 1
        self._move_vectors(self.recipe.vector_lr * factor)
        self._move_matrices(self.recipe.matrix_lr * factor)
        self._clip_attention(peaks)
        keep = min(self.recipe.ema, self.count / (self.count + 10))
        for tensor in self.trained:
            tensor.average.lerp_(tensor.master, 1 - keep)
            tensor.parameter.copy_(tensor.master)
            tensor.parameter.grad = None

    def _move_vectors(self, lr: float) -> None:
        low, high = ADAM_BETAS
        for tensor in self.trained:
            if tensor.second is None or tensor.parameter.grad is None:
                continue
            grad = tensor.parameter.grad.float()
            tensor.first.lerp_(grad, 1 - low)
            tensor.second.lerp_(grad * grad, 1 - high)
            first = tensor.first / (1 - low**self.count)
            second = tensor.second / (1 - high**self.count)
            tensor.master.sub_(lr * first / (second.sqrt() + 1e-8))

    def _move_matrices(self, lr: float) -> None:
        stacks: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}
        for tensor in self.trained:
            if tensor.second is not None or tensor.parameter.grad is None:
                continue
            grad = tensor.parameter.grad.float()
            tensor.first.lerp_(grad, 1 - MUON_MOMENTUM)
            nesterov = grad.lerp(tensor.first, MUON_MOMENTUM)
            halves = zip(matrices(tensor.master, tensor.name), matrices(nesterov, tensor.name), strict=True)
            for master, update in halves:
                stacks.setdefault(tuple(update.shape), []).append((master, update))
        for (rows, columns), pairs in stacks.items():
            updates = orthogonalise(torch.stack([update for _, update in pairs]))
            scale = lr * max(1.0, rows / columns) ** 0.5
            for (master, _), update in zip(pairs, updates, strict=True):
                master.mul_(1 - lr * self.recipe.weight_decay).sub_(update, alpha=scale)

    def _clip_attention(self, peaks: Tensor) -> None:
        """QK-clip: where a head's largest logit passes the bound, its W_q and W_k shrink to meet it.

        Kimi Team 2025, "Kimi K2", section 2.1 (MuonClip).
        """
        shrink = (self.recipe.max_attention_logit / peaks.float()).clamp(max=1).sqrt()
        by_name = {tensor.name: tensor.master for tensor in self.trained}
        for index, layer in enumerate(self.model.layers()):
            assert isinstance(layer, Layer)
            width = layer.num_heads * layer.head_dim
            scale = shrink[index].repeat_interleave(layer.head_dim)[:, None].to(peaks.device)
            fused = by_name[f"body.layers.{index}.qkv.weight"]
            fused[:width].mul_(scale)
            fused[width : 2 * width].mul_(scale)

    def state(self) -> dict[str, object]:
        """Everything a resumed run needs, as tensors and numbers."""
        tensors = {
            tensor.name: (tensor.master, tensor.average, tensor.first, tensor.second)
            for tensor in self.trained
        }
        return {"count": self.count, "tensors": tensors}

    @torch.no_grad()
    def restore(self, count: int, tensors: dict[str, tuple[Tensor, ...]]) -> None:
        self.count = count
        for tensor in self.trained:
            tensor.master, tensor.average, tensor.first, tensor.second = tensors[tensor.name]
            tensor.parameter.copy_(tensor.master)

    def averages(self) -> dict[str, Tensor]:
        """The exponential moving average of every trained tensor, by name in `TiedModel`."""
        return {tensor.name: tensor.average for tensor in self.trained}
