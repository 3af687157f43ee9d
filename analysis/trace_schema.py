"""What a trace file of schema 1 may hold, field by field."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# Upper ends that nothing real reaches, so that sums and arrays of what is read can be made.
Count = Annotated[int, Field(ge=0, lt=2**31)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1.0001)]
Nats = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Run = Annotated[list[Count], Field(min_length=2, max_length=2)]


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class StepSeconds(Strict):
    plan: Seconds
    forward: Seconds
    decode: Seconds


class FileStep(Strict):
    step: Count
    full: bool
    reason: str
    committed: list[Count]
    tokens: list[Count]
    confidence: list[Probability]
    entropy: list[Nats]
    max_entropy: Nats | None
    refreshed: Annotated[float, Field(ge=0)]
    refreshed_positions: list[Count | Run]
    refreshed_layers: list[Annotated[int, Field(ge=1)]] | None = None
    seconds: StepSeconds
    measurements: dict[str, Any] = {}


class FileModel(Strict, extra="allow"):
    ref: str
    family: str
    dtype: str
    device: str
    num_layers: Annotated[int, Field(ge=1, le=10_000)]
    mask_token_id: Count
    eos_token_ids: list[Count]


class FileGeneration(Strict, extra="allow"):
    block_length: Annotated[int, Field(ge=1)]


class FilePolicy(Strict):
    name: str
    config: dict[str, Any]


class TraceFile(Strict):
    schema_: Literal[1] = Field(alias="schema")
    model: FileModel
    policy: FilePolicy
    generation: FileGeneration
    prompt: str | None
    prompt_ids: Annotated[list[Count], Field(min_length=1)]
    tokens: Annotated[list[Count], Field(min_length=1)]
    text: str | None
    steps: list[FileStep]
    totals: dict[str, float | None]
    batch_size: Annotated[int, Field(ge=1)] = 1
