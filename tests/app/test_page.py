"""The page as a whole: it builds without a model, names what the contract names, and starts offline."""

import json
import subprocess
import sys
from pathlib import Path

import gradio as gr
import pytest

from app.examples import recorded_example
from app.models import ModelShelf
from app.panels import script_paths
from app.problems import FILE, Problems
from app.tabs.decode import ERRAND
from app.tune import ERRAND as TUNING
from app.ui import build, launch_options
from app.workshop import Workshop
from core.training.problems import read_problems

ROOT = Path(__file__).resolve().parents[2]
CONTRACT_IDS = ("prompt", "policy", "run", "stop", "status", "grid", "timeline", "scatter", "volatility")


def refuse(ref: str, dtype: str) -> None:
    raise AssertionError(f"building the page loaded the model {ref}")


@pytest.fixture(scope="module")
def config() -> dict:
    return build(Workshop(ModelShelf(loader=refuse))).get_config_file()


def test_page_builds_without_loading_a_model_and_has_the_ids_of_the_contract(config: dict) -> None:
    ids = {component["props"].get("elem_id") for component in config["components"]}
    assert set(CONTRACT_IDS) <= ids


def test_settings_that_are_no_events_input_can_still_be_changed(config: dict) -> None:
    inputs = {"textbox", "dropdown", "radio", "slider", "checkbox"}
    for component in config["components"]:
        if component["type"] in inputs and component["props"].get("elem_id") != "link":
            assert component["props"].get("interactive") is not False, component["props"].get("elem_id")


def test_templates_hold_nothing_that_is_filled_in(config: dict) -> None:
    panels = [
        c["props"] for c in config["components"] if c["props"].get("elem_classes") and c["type"] == "html"
    ]
    shown = [props for props in panels if "es-panel" in props["elem_classes"]]
    assert len(shown) >= 8
    for props in shown:
        assert "{" not in props["html_template"], props["elem_id"]


def test_page_loads_scripts_of_this_machine_only() -> None:
    assert all(path.is_file() for path in script_paths())
    assert all(path.is_file() for path in launch_options()["css_paths"])


def test_stop_of_a_run_leaves_what_the_visitor_has_going_in_other_tabs(workshop: Workshop) -> None:
    page = build(workshop)
    ids = {getattr(block, "elem_id", None): key for key, block in page.blocks.items()}
    stop = next(fn for fn in page.fns.values() if (ids["stop"], "click") in fn.targets)
    run, search = workshop.turns.join("me", ERRAND), workshop.turns.join("me", TUNING)
    stop.fn(gr.Request(session_hash="me"))
    assert (run.is_stopped(), search.is_stopped()) == (True, False)


def test_recorded_example_is_a_complete_real_trace() -> None:
    example = recorded_example()
    trace = example.record.traces[0]
    assert trace.complete
    assert trace.model["ref"] == "embedded"
    assert trace.policy["name"] == "entropy"
    assert example.frame["example"]
    assert "".join(text for step in example.frame["lanes"][0]["steps"] for _, text, *_ in step["c"])
    assert example.record.observation is not None
    assert json.dumps(example.frame)


def test_problems_are_found_by_their_prompt_only_where_unchanged() -> None:
    problems = Problems.load()
    prompt = problems.some(problems.families[0], 1)[0]
    found = problems.find(prompt)
    assert found is not None
    assert found.prompt == prompt
    assert problems.find(prompt + " now") is None
    assert problems.families


def test_verdict_says_what_it_was_judged_by() -> None:
    """One sentence that names the grader's own figure, for every family and either verdict."""
    problems = Problems.load()
    for problem in read_problems(FILE):
        right, wrong = (problems.judged(problem.prompt, solved) for solved in (True, False))
        names = [problem.answer] if problem.answer is not None else [f"{len(problem.tests)} inputs"]
        assert all(name in said for name in names for said in (right, wrong))
        assert right != wrong
        assert problems.judged(problem.prompt, None) == ""
    assert problems.judged("no problem of ours", True) == ""


def test_another_problem_is_a_fresh_held_out_one_that_can_be_graded() -> None:
    problems = Problems.load()
    known = {problem.prompt for problem in read_problems(FILE)}
    for family in problems.families:
        drawn = [problems.another(family) for _ in range(20)]
        assert len(set(drawn) - known) > 5
        for prompt in drawn:
            problem = problems.find(prompt)
            assert problem is not None
            assert problem.is_held_out
            assert problems.is_solved(prompt, problem.example_response)


def test_app_file_and_package_live_side_by_side() -> None:
    code = (
        "import importlib.util, app; spec = importlib.util.spec_from_file_location('page', 'app.py'); "
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); "
        "print(type(module.demo).__name__, app.__file__.endswith('__init__.py'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["Blocks", "True"], done.stderr
