"""Golden files: logits by the models' published code, generations by independent implementations.

See tests/golden: four-layer random checkpoints with the published tensor names and config keys.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from core import POLICIES, GenerationConfig, LanguageModel, create_policy, load_model
from tests.invariants.runs import decode

GOLDEN = Path(__file__).parents[1] / "golden"
MODELS = ("llada-micro", "dream-micro", "a2d-qwen3-micro")
CASES = json.loads((GOLDEN / "generations.json").read_text())

# How the reference's settings are called here; its dLLM-Cache refreshes at steps t from 0 with t mod K = 0.
SETTINGS = {"kp": "kp", "kr": "kr", "rou": "ratio"}


@pytest.fixture(scope="module")
def golden_models() -> dict[str, LanguageModel]:
    return {name: load_model(str(GOLDEN / name), device="cpu", dtype="float32") for name in MODELS}


@pytest.mark.parametrize("seed", ["7", "8"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_agree_with_the_published_code(
    golden_models: dict[str, LanguageModel], name: str, seed: str
) -> None:
    golden = load_file(GOLDEN / "logits.safetensors")
    ours = golden_models[name].full_logits(golden[f"{name}/{seed}/input_ids"][None])[0]
    torch.testing.assert_close(ours, golden[f"{name}/{seed}/logits"], rtol=0, atol=1e-4)


def label(case: dict[str, Any]) -> str:
    return f"{case['model']}-{case['cache']}-{case['threshold']}-{len(case['prompt'])}"


def settings(case: dict[str, Any]) -> GenerationConfig:
    shape = {"gen_length": case["gen_length"], "block_length": case["block_length"]}
    if case["threshold"] is None:
        return GenerationConfig(**shape, unmask="quota")
    return GenerationConfig(**shape, unmask="threshold", threshold=case["threshold"])


def check(model: LanguageModel, case: dict[str, Any], policy: str, **config: Any) -> None:
    run = decode(model, [case["prompt"]], settings(case), create_policy(policy, **config))[0]
    assert run.committed == [sorted(step) for step in case["decoded_per_step"]]
    assert run.tokens == case["tokens"]


def test_every_kind_of_golden_generation_is_there() -> None:
    kinds = {(case["model"], case["cache"], case["threshold"]) for case in CASES}
    assert kinds >= {
        (model, cache, threshold)
        for model, caches in (
            ("llada-micro", ("none", "prefix", "dual", "dllm-cache")),
            ("dream-micro", ("none", "dllm-cache")),
        )
        for cache in caches
        for threshold in (None, 0.6)
    }


@pytest.mark.parametrize("case", [case for case in CASES if case["cache"] in POLICIES], ids=label)
def test_generations_agree_with_independent_implementations(
    golden_models: dict[str, LanguageModel], case: dict[str, Any]
) -> None:
    config = {SETTINGS[key]: value for key, value in case["params"].items() if key in SETTINGS}
    check(golden_models[case["model"]], case, case["cache"], **config)


@pytest.mark.parametrize("case", [case for case in CASES if case["cache"] == "none"], ids=label)
def test_entropy_that_always_triggers_is_no_cache(
    golden_models: dict[str, LanguageModel], case: dict[str, Any]
) -> None:
    check(golden_models[case["model"]], case, "entropy", entropy_threshold=-1)


@pytest.mark.parametrize("case", [case for case in CASES if case["cache"] == "dual"], ids=label)
def test_entropy_refreshed_by_block_alone_is_the_dual_cache(
    golden_models: dict[str, LanguageModel], case: dict[str, Any]
) -> None:
    config = {"entropy_threshold": float("inf"), "refresh_on_block_start": True, "recent": 64}
    check(golden_models[case["model"]], case, "entropy", **config)
