"""The hub: asked once, and said to be asked before anybody waits for it."""

from pathlib import Path

import gradio as gr
import pytest
from huggingface_hub.errors import HTTPError

from app.loading import load_in_turn
from app.models import HUB_SECONDS, Estimate, ModelShelf, estimate
from app.problems import Problems
from app.tabs.models import ModelsTab
from app.workshop import Workshop
from core import LanguageModel
from core.models.loading import EMBEDDED


def test_hub_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The download's own tries would take half a minute; what the cache holds does as well."""
    asked: list[float] = []
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))

    def silent(url: str, timeout: float) -> None:
        asked.append(timeout)
        raise HTTPError("[Errno -2] Name or service not known")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("downloaded without a line")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", silent)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", never)
    with pytest.raises(ValueError, match=r"some/model could not be reached on the hub: \[Errno -2\] Name"):
        estimate("some/model")
    assert asked == [HUB_SECONDS]
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda ref, name: str(EMBEDDED / name))
    assert estimate("some/model").weights == estimate("embedded").weights


def test_page_says_whom_it_asks_before_it_waits(
    worded: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was told of the last model, a button that waits for the hub says so first."""
    waits: list[str] = []

    def slow(ref: str, dtype: str) -> Estimate:
        waits.append(ref)
        raise ValueError(f"model {ref}: no")

    shop = Workshop(ModelShelf(loader=lambda ref, dtype: worded, estimator=slow), Problems([]))
    monkeypatch.setattr("app.tabs.models.estimate", slow)
    with gr.Blocks() as page, gr.Tabs() as tabs:
        tab = ModelsTab(shop, page, tabs, gr.HTML(), gr.State("embedded"))
    asking = tab._estimate(" some/model ", "auto")
    assert "running: asking the hub for some/model" in next(asking)
    assert waits == []
    assert "error: model some/model: no" in next(asking)
    loading = load_in_turn(shop, "some/model", "auto", shop.turns.join("me"))
    assert next(loading).text == "running: asking the hub for some/model"
    assert waits.pop() == "some/model"
    assert waits == []
    with pytest.raises(ValueError, match="no"):
        next(loading)
    assert "asking" not in str(next(tab._estimate("nowhere", "auto")))
