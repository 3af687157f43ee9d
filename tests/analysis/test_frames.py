"""Every result a researcher gets has `to_frame`, and a quantity has one name in all of them."""

import importlib
import inspect
import pkgutil
from dataclasses import is_dataclass

import pandas as pd
import pytest

import analysis
from analysis.comparison import summarise
from analysis.correlation import correlate, detect, drift_pairs
from analysis.cost import cost
from analysis.diagnose import diagnose
from analysis.drift import drift
from analysis.measure import to_frame as outcomes_frame
from analysis.observation import summarise_drift
from analysis.observe import no_cache_trace, observe
from analysis.probes import StalenessProbe
from analysis.projection import project
from analysis.settings import Setting
from analysis.staleness import staleness, summarise_staleness
from analysis.surface import surface
from analysis.timeline import timeline
from analysis.tuning import Goal, Search
from analysis.verdict import judge
from analysis.volatility import volatility
from core import GenerationConfig, LanguageModel, create_policy
from tests import tiny
from tests.analysis.test_comparison import outcome

# What is given to a measurement rather than got from one, what the page is made of, a folder of results.
INPUTS = {"Axis", "Device", "Experts", "Goal", "Look", "ModelCost", "Place", "Preset", "Prompt", "Results"}
INPUTS |= {"Section", "Setting", "Task", "Text", "Unit"}
# Rows of a result that has to_frame, or whose module has it for a sequence of them.
ROWS = {"Candidate": "Tuning", "Confirmation": "Tuning", "Step": "Trace", "Summary": "Comparison"}


def result_classes() -> list[type]:
    found = []
    for module_info in pkgutil.walk_packages(analysis.__path__, "analysis."):
        name = module_info.name
        if name.startswith("analysis.cli") or name in ("analysis.lm_eval_model", "analysis.__main__"):
            continue
        module = importlib.import_module(name)
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == name and is_dataclass(kind) and not kind.__name__.startswith("_"):
                found.append(kind)
    return found


@pytest.mark.parametrize("kind", result_classes(), ids=lambda kind: kind.__name__)
def test_a_result_becomes_a_frame(kind: type) -> None:
    module = inspect.getmodule(kind)
    if kind.__name__ in INPUTS:
        return
    owner = ROWS.get(kind.__name__)
    if owner is not None:
        [holder] = [one for one in result_classes() if one.__name__ == owner]
        assert hasattr(holder, "to_frame")
        return
    assert hasattr(kind, "to_frame") or hasattr(module, "to_frame"), f"{kind.__qualname__} has no to_frame"


def test_the_lists_of_exceptions_hold_nothing_that_is_gone() -> None:
    names = {kind.__name__ for kind in result_classes()}
    assert set(INPUTS) | set(ROWS) <= names


GRID = [Setting("entropy", {"entropy_threshold": tau, "recent": k}) for tau in (0.5, 1.0) for k in (2, 8)]
# The second name of what has one already.
SYNONYMS = {
    "num_refreshed": ("rows", "refreshed", "recomputed"),
    "num_committed": ("committed", "decoded"),
    "max_entropy": ("entropy",),
    "rho": ("spearman", "coefficient", "correlation"),
    "low": ("lower", "ci_low"),
    "high": ("upper", "ci_high"),
    "prompts": ("groups", "num_prompts", "n_prompts"),
    "setting": ("label", "name"),
    "positions": ("position_class", "kind"),
    "quantity": ("measure", "metric"),
    "step": ("t", "index"),
}


@pytest.fixture
def frames(models: dict[str, LanguageModel]) -> dict[str, pd.DataFrame]:
    """The frames of every measure, of one small run."""
    model, prompt = models["llada"], tiny.PROMPTS[0]
    config = GenerationConfig(gen_length=16, block_length=8, threshold=0.3)
    watched = no_cache_trace(model, prompt, config)
    policy = create_policy("entropy", entropy_threshold=float("inf"), recent=2)
    *_, stale = observe(model, prompt, config, policy, [StalenessProbe(model, 2)])
    pairs = drift_pairs([watched])
    search = Search(GRID, 2, Goal("agreement", 0.1, "flops"), [1])
    search.recall(outcome(setting, one, 0, 1.0) for setting in (*GRID, Setting("none")) for one in range(2))
    tuning = search.result()
    assert tuning.measured == tuning.full_grid
    return {
        "trace": stale.to_frame(),
        "pairs": pairs.to_frame(),
        "correlation": correlate(pairs).to_frame(),
        "one coefficient": correlate(pairs).plain["max_entropy"].to_frame(),
        "detection": detect(pairs).to_frame(),
        "observation": summarise_drift([watched]).to_frame(),
        "drift": drift(watched).to_frame(),
        "volatility": volatility([watched]).to_frame(),
        "cost": cost(stale).to_frame(),
        "diagnosis": diagnose([stale]).to_frame(),
        "timeline": timeline(stale).to_frame(),
        "staleness": staleness(stale).to_frame(),
        "staleness summary": summarise_staleness([stale]).to_frame(),
        "projection": project(watched, 1.0, 8).to_frame(),
        "outcomes": outcomes_frame(list(search.outcomes.values())),
        "tuning": tuning.to_frame(),
        "surface": surface(tuning.candidates).to_frame(),
        "verdict": judge(search, search).to_frame(),
        "comparison": summarise(list(search.outcomes.values()), GRID, config, [1]).to_frame(),
    }


def test_frames_hold_rows_and_call_a_quantity_by_one_name(frames: dict[str, pd.DataFrame]) -> None:
    for name, frame in frames.items():
        columns = list(frame.columns)
        assert len(frame), name
        assert len(set(columns)) == len(columns), name
        assert all(column.isidentifier() and column.islower() for column in columns), name
        wrong = [column for column in columns for others in SYNONYMS.values() if column in others]
        assert not wrong, f"{name} calls it {wrong}"


def test_frames_of_one_run_agree(frames: dict[str, pd.DataFrame]) -> None:
    shared = ["step", "full", "reason", "num_refreshed", "num_committed", "max_entropy"]
    pd.testing.assert_frame_equal(frames["trace"][shared], frames["timeline"][shared], check_dtype=False)
    one = frames["one coefficient"].iloc[0]
    row = frames["correlation"].set_index("signal").loc["max_entropy"]
    names = ["rho", "low", "high", "p", "n", "ties", "prompts"]
    assert [one[name] for name in names] == [row[name] for name in names]
