"""Shared fixtures: tiny models of every family, in float32 on one thread so that results are exact."""

import os

# Read when the libraries are imported: whoever reaches for the hub must fail at once, not wait for a network.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from core import LanguageModel, load_model
from tests import tiny


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def references() -> dict[str, PreTrainedModel]:
    """transformers' own model for each family, the weights behind `models`."""
    return {family: tiny.reference_model(family) for family in tiny.FAMILIES}


@pytest.fixture(scope="session")
def models(
    references: dict[str, PreTrainedModel], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, LanguageModel]:
    """Our model of each family, loaded from a checkpoint with the published names."""
    folder = tmp_path_factory.mktemp("checkpoints")
    return {
        family: load_model(
            str(tiny.write_checkpoint(folder / family, family, reference)), device="cpu", dtype="float32"
        )
        for family, reference in references.items()
    }


@pytest.fixture(params=tiny.FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def model(models: dict[str, LanguageModel], family: str) -> LanguageModel:
    return models[family]


@pytest.fixture
def reference(references: dict[str, PreTrainedModel], family: str) -> PreTrainedModel:
    return references[family]


@pytest.fixture
def checkpoint(references: dict[str, PreTrainedModel], tmp_path: Path) -> Callable[..., Path]:
    """Writes a family's tiny checkpoint; keyword `config` replaces its config.json."""

    def write(family: str, config: dict | None = None) -> Path:
        return tiny.write_checkpoint(tmp_path / family, family, references[family], config)

    return write
