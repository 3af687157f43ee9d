"""Models: sizes are told before a weight is read, what will not fit is refused, few are held."""

from pathlib import Path

import pytest

from app.loading import load_in_turn
from app.models import CATALOG, Estimate, ModelShelf, estimate
from app.workshop import Workshop
from core import LanguageModel
from core.models.loading import EMBEDDED


def test_estimate_of_the_embedded_model_agrees_with_its_file() -> None:
    told = estimate("embedded", "bfloat16")
    assert told.weights == pytest.approx((EMBEDDED / "model.safetensors").stat().st_size, rel=0.02)
    assert told.fits
    assert "it fits" in told.sentence("embedded")


def test_estimate_needs_no_weights(checkpoint: object, tmp_path: Path) -> None:
    folder = checkpoint("llada")  # type: ignore[operator]
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    assert estimate(str(folder)).spec.num_layers == 3


@pytest.mark.parametrize(
    ("ref", "sentence"),
    [("nowhere", "no such folder"), ("no-one/has-this-model", "could not be reached on the hub")],
)
def test_model_that_is_not_there_is_one_sentence(ref: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        estimate(ref)
    assert "\n" not in str(caught.value)


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


def test_only_one_model_besides_the_embedded_is_held(worded: LanguageModel) -> None:
    loaded = []
    shelf = ModelShelf(loader=lambda ref, dtype: loaded.append(ref) or worded)
    for ref in ("embedded", "a", "b", "embedded", "b"):
        shelf.get(ref)
    assert loaded == ["embedded", "a", "b"]
    assert not shelf.holds("a")


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
