"""Training end to end at toy size: it learns, resumes where it stopped, and exports what it computes."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch

from core import load_model
from core.files import hold
from core.training.__main__ import main
from core.training.batches import Batch
from core.training.model import TiedModel
from core.training.optimizer import Optimizer, orthogonalise
from core.training.problems import read_problems
from core.training.recipe import Recipe
from core.training.tokenizer import save_tokenizer
from core.training.trainer import Trainer
from tests.refusals import refusal

TOY = {
    "hidden_size": 32, "intermediate_size": 64, "num_layers": 2, "num_heads": 2,
    "vocab_size": 400, "batch_tokens": 1280, "warmup_steps": 2,
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


@pytest.mark.parametrize("file", ["checkpoint.pt", "model.safetensors", "config.json"])
def test_a_save_that_is_cut_off_leaves_whole_files_that_fit(
    file: str, run: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any moment of a save, what stands in the folder is what a save before or after it left."""
    shutil.copytree(run.directory, tmp_path, dirs_exist_ok=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def cut_off(name: str, path: Path) -> None:
        Path(path).write_bytes(b"half")
        if name == file:
            raise KeyboardInterrupt

    monkeypatch.setattr(run, "directory", tmp_path)
    monkeypatch.setattr("torch.save", lambda state, path: cut_off("checkpoint.pt", path))
    monkeypatch.setattr(
        "core.training.export.save_file", lambda tensors, path, metadata: cut_off("model.safetensors", path)
    )
    monkeypatch.setattr(Path, "write_text", lambda path, *_, **__: cut_off("config.json", path))
    with pytest.raises(KeyboardInterrupt):
        run.save()
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    # Reached only once the checkpoint is written in full.
    if file != "checkpoint.pt":
        assert after.pop("checkpoint.pt") == b"half"
        del before["checkpoint.pt"]
    assert after == before


def test_a_tokenizer_that_is_cut_off_is_none(
    run: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(path: Path, text: str, encoding: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", cut_off)
    with pytest.raises(KeyboardInterrupt):
        save_tokenizer(run.tokenizer, tmp_path, 1280)
    assert not list(tmp_path.iterdir())


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
    few = ["problems", "--family", "math", "--shots", "3", "--out", str(tmp_path / "few.jsonl"), "--n"]
    assert main([*few, "2"]) == 0
    assert [problem.shots for problem in read_problems(tmp_path / "few.jsonl")] == [3, 3]
    assert main([*few, "0"]) == 2
    assert capsys.readouterr().err == "error: n is 0; allowed: from 1 to 10000\n"
    assert main(["data", "--n", "3"]) == 0
    assert capsys.readouterr().out.count("PROMPT") == 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["data", "--n", "0"], "n is 0"),
        (["data", "--n", "-1"], "n is -1"),
        (["data", "--n", "nan"], "--n"),
        *((["data", "--progress", value], "progress is") for value in ("nan", "inf", "-0.1", "1.01")),
        *(([name, "--n", "9999999999", *out], "n is 9999999999") for name, out in
          (("data", []), ("problems", ["--out", "p"]), ("evaluate", []))),
        (["problems", "--out", "p", "--shots", "99999999"], "shots is 99999999"),
        (["problems", "--out", "p", "--shots", "-1"], "shots is -1"),
        (["problems", "--out", "p", "--family", "math", "--family", "math"], "math twice"),
        (["evaluate", "--family", "math", "--family", "code", "--family", "math"], "math twice"),
        (["evaluate", "--threads", "99999999"], "threads is"),
        (["evaluate", "--seed", "-1"], "seed is -1"),
        (["data", "--seed", "9" * 5000], "--seed"),
        (["data", "--see", "1"], "--see"),
        *((["problems", "--n", "9999", "--out", out], out) for out in ("/", "/nowhere/p", "/dev/null/p", "")),
        (["problems", "--out", "\0"], "out holds a zero byte"),
        (["train", "--tokens", "9", "--out", "/dev/null"], "/dev/null"),
        (["data", "--n", "1", "--n", "2"], "--n is given twice"),
        (["train", "--out", "a", "--out", "b"], "--out is given twice"),
        (["fly"], "fly"),
        ([], "command"),
    ],
)  # fmt: skip
def test_odd_options_are_refused_in_one_line(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert named in refusal(main, arguments, capsys)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("device", ["nonsense", "meta", "mps", "", "cuda:99"]),
        ("minutes", ["nan", "-1", "0"]),
        ("threads", ["-1", "99999999"]),
        ("seed", ["-1", "9" * 30]),
        ("tokens", ["0", "-1", "1e6"]),
        *((name, ["nan", "inf", "-1"]) for name in ("matrix-lr", "vector-lr", "weight-decay")),
        *((name, ["nan", "-0.1", "1"]) for name in ("decay-from", "ema", "min-mask-rate", "block-states")),
        *((name, ["0", "-1", "99999999999"]) for name in ("hidden-size", "intermediate-size", "num-layers")),
        *((name, ["0", "-1", "99999999999"]) for name in ("num-heads", "vocab-size", "block-length")),
        ("hidden-size", ["12"]),
        ("vocab-size", ["260"]),
        ("max-attention-logit", ["nan", "0", "-1"]),
        ("warmup-steps", ["-1", "nan"]),
        ("batch-tokens", ["0", "-5"]),
    ],
)
def test_a_run_is_refused_before_it_begins(
    option: str, values: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    for value in values:
        command = ["train", "--out", str(out), "--tokens", "1000", "--no-compile", f"--{option}={value}"]
        said = refusal(main, command, capsys)
        assert option in said or option.replace("-", "_") in said
        assert not out.exists()


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"\x80\x04.", b"PK\x03\x04"])
def test_a_broken_checkpoint_and_an_absent_device_are_one_sentence(
    content: bytes, run: Trainer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--tokens", "40000", "--no-compile", "--dtype", "float32", "--out"]
    assert "device is 'cuda:99'" in refusal(
        main, [*command, str(run.directory), "--device", "cuda:99"], capsys
    )
    (tmp_path / "checkpoint.pt").write_bytes(content)
    assert "checkpoint.pt is no checkpoint" in refusal(main, [*command, str(tmp_path)], capsys)


def test_a_finished_run_and_another_recipe_are_refused_and_nothing_is_written(
    run: Trainer, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in run.directory.iterdir()}
    command = ["train", "--no-compile", "--dtype", "float32", "--out", str(run.directory), "--tokens"]
    assert "tokens is 30000; allowed: more than" in refusal(main, [*command, "30000"], capsys)
    assert "minutes is 1e-09; allowed: more than" in refusal(
        main, [*command, "40000", "--minutes", "1e-9"], capsys
    )
    said = refusal(main, [*command, "40000", "--matrix-lr", "0.5"], capsys)
    assert "matrix_lr is 0.5; allowed: 0.01" in said
    assert {path.name: path.read_bytes() for path in run.directory.iterdir()} == before


def test_two_trainings_do_not_share_a_folder(
    run: Trainer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run.directory, tmp_path, dirs_exist_ok=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    folder = os.open(tmp_path, os.O_RDONLY)
    hold(folder, tmp_path)
    command = ["train", "--no-compile", "--dtype", "float32", "--out", str(tmp_path), "--tokens", "31000"]
    assert f"{tmp_path} is being written by another process" in refusal(main, command, capsys)
    os.close(folder)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert main(command) == 0
    assert main([*command[:-1], "32000"]) == 0


def test_ctrl_c_saves_after_the_step_it_falls_into(
    run: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run.directory, tmp_path, dirs_exist_ok=True)
    whole = Trainer.step

    def pressed(trainer: Trainer, batch: Batch) -> float:
        signal.raise_signal(signal.SIGINT)
        return whole(trainer, batch)

    monkeypatch.setattr(Trainer, "step", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    command = ["train", "--no-compile", "--dtype", "float32", "--out", str(tmp_path), "--tokens"]
    try:
        assert main([*command, "99000"]) == 1
    finally:
        assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert capsys.readouterr().err == "interrupted\n"
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert run.tokens_seen < saved["tokens_seen"] < 99_000
    monkeypatch.setattr(Trainer, "step", whole)
    assert main([*command, str(saved["tokens_seen"] + 1000)]) == 0


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[1]", b"\xff"])
def test_a_broken_tokenizer_is_one_sentence(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    command = ["train", "--tokens", "40000", "--no-compile", "--out", str(tmp_path)]
    assert "tokenizer.json is no tokenizer to go on with" in refusal(main, command, capsys)


def test_a_checkpoint_of_something_else_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content in ([1, 2], {"recipe": {}}, {"recipe": {"tokens": 1, "colour": 2}}):
        torch.save(content, tmp_path / "checkpoint.pt")
        command = ["train", "--tokens", "40000", "--no-compile", "--out", str(tmp_path)]
        assert "checkpoint.pt is no checkpoint" in refusal(main, command, capsys)
