"""Roofline: the operations and bytes of a step, and the least time they take on a device."""

from dataclasses import dataclass

from core import ModelSpec


@dataclass(frozen=True)
class Device:
    """Peak dense bfloat16 operations and memory bytes a second, and memory bytes."""

    name: str
    flops: float
    bandwidth: float
    memory: float

    def times(self, count: int) -> "Device":
        """That many of them, work split evenly and communication free."""
        return Device(
            f"{count} x {self.name}", count * self.flops, count * self.bandwidth, count * self.memory
        )


# NVIDIA's data sheet of the H200 SXM.
H200 = Device("H200", flops=989e12, bandwidth=4.8e12, memory=141e9)


@dataclass(frozen=True)
class Experts:
    """A mixture in place of the MLP: per layer `count` experts of `weights` each, `chosen` for a row."""

    count: int
    chosen: int
    weights: float

    def touched(self, rows: float) -> float:
        """Experts that `rows` rows are expected to reach when they choose evenly and independently."""
        return self.count * (1 - (1 - self.chosen / self.count) ** rows)


@dataclass(frozen=True)
class ModelCost:
    """What a model costs by row, key and logit; sizes in weights and values, `width` bytes each.

    layer_weights: of one layer, the experts left out; qkv_weights: those of them that make q, K and V.
    attention_width: num_heads x head_dim. kv_width: K and V values of a position in one layer.
    head_weights: hidden size x vocabulary.
    """

    num_layers: int
    layer_weights: float
    qkv_weights: float
    attention_width: int
    kv_width: int
    head_weights: float
    experts: Experts | None = None
    width: int = 2

    @classmethod
    def of(cls, spec: ModelSpec, width: int = 2) -> "ModelCost":
        d, q = spec.hidden_size, spec.num_heads * spec.head_dim
        kv = 2 * spec.num_kv_heads * spec.head_dim
        qkv = d * (q + kv)
        layer = qkv + q * d + 3 * d * spec.intermediate_size
        return cls(spec.num_layers, layer, qkv, q, kv, d * spec.vocab_size, width=width)

    @property
    def weight_bytes(self) -> float:
        """All weights with embedding and head."""
        experts = self.experts.count * self.experts.weights if self.experts else 0
        return self.width * (self.num_layers * (self.layer_weights + experts) + 2 * self.head_weights)

    def kv_bytes(self, positions: int) -> float:
        return self.width * self.num_layers * self.kv_width * positions

    def flops(self, rows: int, targets: int, length: int, batch: int = 1) -> float:
        """Operations of a step in which each of `batch` sequences recomputes `rows` of `length` positions.

        Exact for `core.forward.forward_rows`: the last layer makes q, K and V of all rows, and the rest only
        of the `targets` rows that predict.
        """
        experts = self.experts.chosen * self.experts.weights if self.experts else 0
        rest = 2 * (self.layer_weights - self.qkv_weights + experts) + 4 * length * self.attention_width
        stack = self.num_layers * 2 * rows * self.qkv_weights
        stack += ((self.num_layers - 1) * rows + targets) * rest
        return batch * (stack + 2 * targets * self.head_weights)

    def bytes_moved(self, rows: int, targets: int, length: int, batch: int = 1) -> float:
        """Weights read once, K/V of every sequence read once and written at its rows.

        Of the experts only those that some row chooses: in the last layer a row that predicts.
        """
        weights = self.num_layers * self.layer_weights + self.head_weights
        if self.experts:
            touched = (self.num_layers - 1) * self.experts.touched(batch * rows)
            weights += (touched + self.experts.touched(batch * targets)) * self.experts.weights
        return self.width * weights + batch * self.kv_bytes(length + rows)

    def seconds(self, device: Device, rows: int, targets: int, length: int, batch: int = 1) -> float:
        """The larger of arithmetic and memory time at the device's peaks."""
        arithmetic = self.flops(rows, targets, length, batch) / device.flops
        return max(arithmetic, self.bytes_moved(rows, targets, length, batch) / device.bandwidth)

    def largest_batch(self, device: Device, length: int) -> int:
        """Sequences whose K/V fit beside the weights, a tenth of the memory kept for activations."""
        return int((0.9 * device.memory - self.weight_bytes) // self.kv_bytes(length))


def generation_seconds(
    cost: ModelCost,
    device: Device,
    length: int,
    steps: float,
    full_share: float,
    rows: int,
    targets: int = 32,
    batch: int = 1,
) -> float:
    """`steps` steps, the share `full_share` of them recomputing everything and the rest `rows` rows."""
    full = cost.seconds(device, length, targets, length, batch)
    partial = cost.seconds(device, rows, targets, length, batch)
    return steps * (full_share * full + (1 - full_share) * partial)
