"""Models: sizes are told before a weight is read, what will not fit is refused, few are held."""

import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from app.catalog import CATALOG, catalog_estimates, catalog_table
from app.loading import LOOK_SECONDS, load_in_turn, stored_bytes
from app.models import Estimate, ModelShelf, container_bytes, estimate
from app.problems import Problems
from app.tabs.models import ModelsTab
from app.workshop import Workshop
from core import LanguageModel
from core.models.loading import EMBEDDED


def test_estimate_of_the_embedded_model_agrees_with_its_file() -> None:
    told = estimate("embedded", "bfloat16")
    assert told.weights == pytest.approx((EMBEDDED / "model.safetensors").stat().st_size, rel=0.02)
    assert told.fits
    assert "it fits" in told.sentence("embedded")


def test_estimate_names_no_dtype_that_only_loading_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    told = estimate("embedded")
    assert all(dtype in told.sentence("embedded") for dtype in ("float32", "bfloat16"))
    assert told.weights == 2 * estimate("embedded", "bfloat16").weights


def test_estimate_needs_no_weights(checkpoint: object, tmp_path: Path) -> None:
    folder = checkpoint("llada")  # type: ignore[operator]
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    assert estimate(str(folder)).spec.num_layers == 3


@pytest.mark.parametrize(
    ("changes", "said"), [({"eos_token_id": 0, "pad_token_id": 0}, None), ({"n_heads": 0}, "zero")]
)
def test_estimate_reads_what_loading_reads(
    checkpoint: object, changes: dict[str, int], said: str | None
) -> None:
    """The mask may be the tokenizer's to name, and a damaged config is one sentence."""
    folder = checkpoint("llada")  # type: ignore[operator]
    config = json.loads((folder / "config.json").read_text()) | changes
    config.pop("mask_token_id", None)
    (folder / "config.json").write_text(json.dumps(config))
    if said is None:
        assert estimate(str(folder)).spec.num_layers == 3
    else:
        with pytest.raises(ValueError, match=said):
            estimate(str(folder))


@pytest.mark.parametrize(
    ("ref", "sentence"),
    [("nowhere", "no such folder"), ("no-one/has-this-model", "could not be reached on the hub")],
)
def test_model_that_is_not_there_is_one_sentence(ref: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        estimate(ref)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        '{"model_type": [1]}',
        '{"model_type": {}}',
        '{"model_type": "llada", "mask_token_id": Infinity}',
        f'{{"model_type": "llada", "d_model": {10**30}}}',
        "[" * 100_000,
    ],
)
def test_config_of_nonsense_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path))):
        estimate(str(tmp_path))


def test_model_that_will_not_fit_is_refused_before_loading(
    monkeypatch: pytest.MonkeyPatch, workshop: Workshop
) -> None:
    monkeypatch.setattr("app.models.free_bytes", lambda: 1000)
    ticket = workshop.turns.join("me")
    with pytest.raises(ValueError, match="it will not fit"):
        list(load_in_turn(workshop, "embedded", "float32", ticket))
    assert len(workshop.turns) == 0


def test_loading_tells_how_far_it_is_and_ends_done(workshop: Workshop) -> None:
    told = list(load_in_turn(workshop, "embedded", "float32", workshop.turns.join("me")))
    assert any("in memory" in moment.text for moment in told)
    assert told[-1].text == "done: model embedded is ready"
    again = list(load_in_turn(workshop, "embedded", "float32", workshop.turns.join("me")))
    assert len(again) == 1


def test_download_is_told_too(workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    blobs = tmp_path / "models--some--model" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "old").write_bytes(bytes(100))
    assert stored_bytes("some/model") == 100
    assert stored_bytes("embedded") == stored_bytes("/some/folder") == 0

    def fetch(ref: str, dtype: str) -> LanguageModel:
        (blobs / "new.incomplete").write_bytes(bytes(2**25))
        time.sleep(2 * LOOK_SECONDS)
        raise RuntimeError("CUDA out of memory\nmore")

    shelf = ModelShelf(fetch, estimator=lambda ref, dtype: taking(1, 1000))
    shop = Workshop(shelf, problems=workshop.problems)
    moments, told = load_in_turn(shop, "some/model", "auto", shop.turns.join("me")), []
    with pytest.raises(ValueError, match=r"some/model could not be loaded: CUDA out of memory$"):
        list(map(told.append, moments))
    assert any("0.03 GiB downloaded" in moment.text for moment in told)
    assert len(shop.turns) == 0


def taking(weights: int, free: int) -> Estimate:
    return replace(estimate("embedded"), weights=weights, cache=0, free=free, device="cpu")


def test_only_one_model_besides_the_embedded_is_held(worded: LanguageModel) -> None:
    loaded = []
    shelf = ModelShelf(
        loader=lambda ref, dtype: loaded.append(ref) or worded, estimator=lambda ref, dtype: taking(1, 1000)
    )
    for ref in ("embedded", "a", "b", "embedded", "b"):
        shelf.get(ref)
    assert loaded == ["embedded", "a", "b"]
    assert not shelf.holds("a")
    assert shelf.held("b") is worded


def test_nothing_is_loaded_past_the_memory_there_is(worded: LanguageModel) -> None:
    """However a model is asked for; what would leave counts as free, and stays where that is not enough."""
    size = worded.num_bytes
    shelf = ModelShelf(
        loader=lambda ref, dtype: worded,
        estimator=lambda ref, dtype: taking({"a": 1, "b": size // 2, "c": 2 * size}[ref], 100),
    )
    shelf.get("a")
    with pytest.raises(ValueError, match=r"c: .* it will not fit"):
        shelf.get("c")
    assert shelf.holds("a")
    shelf.get("b")
    assert not shelf.holds("a")


def test_another_dtype_is_loaded_anew(worded: LanguageModel) -> None:
    loaded = []
    shelf = ModelShelf(loader=lambda ref, dtype: loaded.append(dtype) or worded)
    for dtype in ("auto", "float32", "bfloat16"):
        shelf.get("embedded", dtype)
    assert loaded == ["auto", "bfloat16"]


@pytest.mark.parametrize(
    ("limit", "left"), [("max", None), ("1000", 450), ("500", 0), ("soon", None), (None, None)]
)
def test_container_has_what_its_limit_leaves(tmp_path: Path, limit: str | None, left: int | None) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit + "\n")
        (tmp_path / "memory.current").write_text("600\n")
        (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 50\n")
    assert container_bytes(tmp_path) == left


@pytest.mark.parametrize(
    ("query", "said", "loaded"),
    [
        ({}, "", None),
        ({"model": "embedded", "seed": "3"}, "", None),
        ({"model": "some/model"}, "ready: the link's model some/model is not loaded; press Load", None),
        ({"model": "/etc"}, "error: link: model is '/etc'; allowed here: embedded", None),
        ({"model": "held"}, "ready: the link's model held is loaded and answers", "held"),
    ],
)
def test_link_loads_nothing(
    worded: LanguageModel, query: dict[str, str], said: str, loaded: str | None
) -> None:
    asked: list[str] = []
    shelf = ModelShelf(
        loader=lambda ref, dtype: asked.append(ref) or worded,
        allowed=("embedded", "some/model", "held"),
        estimator=lambda ref, dtype: taking(1, 1000),
    )
    shelf.get("held")
    with gr.Blocks() as page, gr.Tabs() as tabs:
        tab = ModelsTab(Workshop(shelf, Problems([])), page, tabs, gr.HTML(), gr.State("embedded"))
    shown = tab._follow_link(SimpleNamespace(query_params=query))
    assert asked == ["held"]
    assert shown.get(tab.chosen) == loaded
    assert said in str(shown[tab.status])


def test_space_offers_its_list_only(worded: LanguageModel) -> None:
    shelf = ModelShelf(loader=lambda ref, dtype: worded, allowed=CATALOG)
    with pytest.raises(ValueError, match="allowed here: embedded"):
        shelf.get("/etc")
    shelf.get("embedded")


def test_large_model_is_said_in_gib() -> None:
    spec = estimate("embedded").spec
    told = Estimate(spec, "bfloat16", "cpu", weights=16 * 2**30, cache=0, free=8 * 2**30)
    assert not told.fits
    assert "16.00 GiB" in told.sentence("x")


def test_catalog_says_what_each_offered_model_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published sizes within a tenth of what the names promise, and nothing is fetched for them."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("app.models.free_bytes", lambda: 8 * 2**30)
    told = catalog_estimates("bfloat16")
    assert tuple(told) == CATALOG
    billions = {ref: one.spec.num_parameters / 1e9 for ref, one in told.items()}
    assert billions["GSAI-ML/LLaDA-8B-Instruct"] == pytest.approx(8, rel=0.1)
    assert billions["Dream-org/Dream-v0-Instruct-7B"] == pytest.approx(7.6, rel=0.1)
    lines = [line for line in catalog_table().splitlines() if line.startswith("|")]
    fits = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in lines}
    assert fits["GSAI-ML/LLaDA-1.5"] == "no"
    assert fits["dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1"] == "yes"
    monkeypatch.setattr("app.models.free_bytes", lambda: 20 * 2**30)
    assert catalog_table().count("| in bfloat16 |") == 3
    assert catalog_estimates("float32")["embedded"].weights == 2 * told["embedded"].weights


def test_asking_for_room_while_models_come_and_go(worded: LanguageModel) -> None:
    shelf = ModelShelf(loader=lambda ref, dtype: worded, estimator=lambda ref, dtype: taking(1, 1000))
    failures: list[BaseException] = []

    def ask() -> None:
        for turn in range(3000):
            try:
                shelf.expect(f"model {turn}")
            except Exception as error:  # noqa: BLE001
                failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    for turn in range(3000):
        shelf.get(f"other {turn % 5}")
    asking.join()
    assert not failures
