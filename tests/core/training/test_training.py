"""Training end to end at toy size: it learns, resumes where it stopped, and exports what it computes."""

import json
from pathlib import Path

import pytest
import torch

from core import load_model
from core.training.__main__ import main
from core.training.model import TiedModel
from core.training.optimizer import Optimizer, orthogonalise
from core.training.problems import read_problems
from core.training.recipe import Recipe
from core.training.trainer import Trainer

TOY = {
    "hidden_size": 32, "intermediate_size": 64, "num_layers": 2, "num_heads": 2,
    "vocab_size": 400, "batch_tokens": 1024, "warmup_steps": 2,
}  # fmt: skip


def trained(directory: Path, tokens: int) -> Trainer:
    trainer = Trainer(Recipe(tokens=tokens, **TOY), directory, "cpu", torch.float32, compile_layers=False)
    trainer.run()
    return trainer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    return trained(tmp_path_factory.mktemp("run"), tokens=30_000)


def test_it_learns_and_logs(run: Trainer) -> None:
    fresh = TiedModel(run.recipe.spec, torch.float32, compile_layers=False)
    before = Trainer.__new__(Trainer)
    before.recipe, before.tokenizer, before.device, before.model = run.recipe, run.tokenizer, "cpu", fresh
    before.optimizer = Optimizer(fresh, run.recipe)
    [last] = (run.directory / "log.jsonl").read_text().splitlines()[-1:]
    record = json.loads(last)
    for family, loss in before.validate().items():
        assert record[family] < 0.8 * loss
    assert record["tokens"] >= 30_000


def test_a_resumed_run_goes_on_from_its_checkpoint(run: Trainer) -> None:
    again = Trainer(Recipe(tokens=32_000, **TOY), run.directory, "cpu", torch.float32, compile_layers=False)
    assert again.tokens_seen == run.tokens_seen
    assert again.optimizer.count == run.optimizer.count
    for left, right in zip(again.optimizer.trained, run.optimizer.trained, strict=True):
        assert torch.equal(left.master, right.master)
        assert torch.equal(left.first, right.first)


def test_the_export_computes_what_the_trained_average_computes(run: Trainer) -> None:
    loaded = load_model(str(run.directory), device="cpu", dtype="float32")
    assert loaded.spec.qk_norm is False
    assert loaded.spec.tied_embeddings is False
    assert loaded.encode("Sort these numbers: 3, 1.")[:2] == [2, 3]
    model = TiedModel(run.recipe.spec, torch.float32, compile_layers=False)
    average = {name: tensor.bfloat16().float() for name, tensor in run.optimizer.averages().items()}
    model.load_state_dict(average, strict=False)
    tokens = torch.randint(5, run.recipe.vocab_size, (1, 24), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours, _ = model(tokens, torch.arange(24))
    # wte is rounded to bf16 after scaling, the embedding before it.
    assert torch.allclose(loaded.full_logits(tokens)[0], ours, atol=0.05)


def test_orthogonalised_updates_have_singular_values_near_one() -> None:
    updates = torch.randn(3, 48, 32, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(updates))
    assert float(values.min()) > 0.3
    assert float(values.max()) < 1.5


def test_qk_clip_brings_a_head_back_to_the_bound() -> None:
    recipe = Recipe(
        tokens=1, matrix_lr=1e-9, vector_lr=1e-9, weight_decay=0.0, max_attention_logit=2.0, **TOY
    )
    torch.manual_seed(0)
    model = TiedModel(recipe.spec, torch.float32, compile_layers=False)
    optimizer = Optimizer(model, recipe)
    tokens, rows = torch.randint(0, 400, (2, 32)), torch.arange(64)
    logits, peaks = model(tokens, rows)
    assert float(peaks[0].max()) > 2
    logits.square().mean().backward()
    optimizer.step(1.0, peaks)
    _, after = model(tokens, rows)
    assert float(after[0].max()) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize(
    "field", [{"tokens": 0}, {"num_heads": 5}, {"ema": 1.0}, {"batch_tokens": 10}], ids=str
)
def test_bad_recipes_name_the_field(field: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(field))):
        Recipe(**{"tokens": 1, **field})


def test_command_line_reports_bad_input_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--family", "chess"]) == 2
    assert capsys.readouterr().err == "error: family is 'chess'; allowed are math, code, table\n"


def test_command_line_writes_problems_and_shows_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["problems", "--out", str(tmp_path / "p.jsonl"), "--n", "2"]) == 0
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 6
    few = ["problems", "--family", "math", "--shots", "3", "--n", "2", "--out", str(tmp_path / "few.jsonl")]
    assert main(few) == 0
    assert [problem.shots for problem in read_problems(tmp_path / "few.jsonl")] == [3, 3]
    assert main([*few, "--n", "0"]) == 2
    assert capsys.readouterr().err == "error: n is 0; it must be at least 1\n"
    assert main(["data", "--n", "3"]) == 0
    assert capsys.readouterr().out.count("PROMPT") == 3
