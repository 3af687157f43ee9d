"""Files that a visitor opens: what of a trace comes back, and what is said of files that are none."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.observe import run_trace
from analysis.probes import StalenessProbe
from analysis.trace import Trace
from app.bundle import write_bundle
from app.cards import about
from app.explain import staleness_panel
from app.history import history, picked
from app.job import Job
from app.opened import forms_of_record, opened_record, read_trace
from app.workshop import Workshop
from core import GenerationConfig, LanguageModel, create_policy

Make = Callable[..., Job]
GENERATION = GenerationConfig(gen_length=16, block_length=8, threshold=0.5)


@pytest.fixture
def trace(worded: LanguageModel) -> Trace:
    """A run whose staleness was measured."""
    policy = create_policy("entropy", entropy_threshold=float("inf"))
    return run_trace(worded, "one two three", GENERATION, policy, [StalenessProbe(worded)])


def test_opened_trace_fills_in_the_forms_it_was_decoded_with(trace: Trace) -> None:
    record = opened_record(trace, "opened-1", 1, takes_ids=False)
    forms, told = forms_of_record(record)
    job = Job.read(
        forms["prompt"],
        forms["settings"],
        forms["lanes"],
        forms["generation"],
        "not at all",
        record.job.model,
    )
    assert job.prompt == "one two three"
    assert job.generation == GENERATION
    assert job.lanes[0].policy().config.to_dict() == dict(trace.policy["config"])
    assert forms["policy"] == "entropy"
    assert told == "its prompt and settings are in the form"


def test_prompt_of_ids_only_is_said_to_be_so_and_not_taken_for_text(trace: Trace) -> None:
    bare = replace(trace, prompt=None)
    forms, told = forms_of_record(opened_record(bare, "opened-1", 1, takes_ids=False))
    assert forms["prompt"] == ""
    assert "token ids only" in told
    forms, told = forms_of_record(opened_record(bare, "opened-1", 1, takes_ids=True))
    assert forms["prompt"] == ", ".join(map(str, trace.prompt_ids))
    assert "token ids only" not in told


def test_policy_unknown_here_leaves_the_form_as_it_was(trace: Trace) -> None:
    other = replace(trace, policy={"name": "mine", "config": {"x": 1}})
    forms, told = forms_of_record(opened_record(other, "opened-1", 1, takes_ids=False))
    assert set(forms) == {"prompt", "generation"}
    assert "none of these" in told


def test_policy_unknown_here_is_shown_listed_and_packed_all_the_same(
    trace: Trace, workshop: Workshop, tmp_path: Path
) -> None:
    other = replace(trace, policy={"name": "mine", "config": {"x": 1}})
    record = opened_record(other, "opened-1", 1, takes_ids=False)
    workshop.runs.keep("me", record)
    assert "mine" in str(history(workshop.runs.of("me")))
    assert write_bundle(record, workshop.texts_of, tmp_path).is_file()


@pytest.mark.parametrize("config", [{"new_setting": 1}, {"entropy_threshold": "abc"}, {"recent": -1}])
def test_settings_that_a_known_policy_has_not_are_refused_before_the_run_is_kept(
    trace: Trace, config: dict
) -> None:
    """Once kept, it would break the list of runs with every later one."""
    with pytest.raises(ValueError, match="trace: policy: "):
        opened_record(replace(trace, policy={"name": "entropy", "config": config}), "opened-1", 1, False)


def test_ids_are_decoded_again_as_they_were(trace: Trace, worded: LanguageModel) -> None:
    record = opened_record(replace(trace, prompt=None), "opened-1", 1, takes_ids=False)
    assert record.content(worded) == list(trace.prompt_ids)


def test_staleness_in_a_file_is_drawn(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "st.json")
    read, count = read_trace(tmp_path / "st.json")
    assert count == 1
    value = json.loads(staleness_panel(opened_record(read, "opened-1", 1, takes_ids=False)))
    assert len(value["variants"]) == 1
    assert any("of all choices" in line for line in value["variants"][0]["headline"])


def test_captions_say_what_was_opened_from_a_file(workshop: Workshop, trace: Trace) -> None:
    for number in (1, 2):
        order = workshop.runs.new_order()
        workshop.runs.keep("me", opened_record(trace, f"opened-{number}", order, takes_ids=False))
        trace = replace(trace)
    shown = picked(workshop.runs, "me", [{"run": "opened-1", "lane": 0}])
    assert about(shown).startswith("one run, opened from a file · ")
    both = picked(workshop.runs, "me", [{"run": f"opened-{number}", "lane": 0} for number in (1, 2)])
    assert about(both).startswith("one run each, opened from a file · ")
    both.lanes[0].from_file = False
    assert about(both).startswith("one run each, B opened from a file · ")


def test_first_of_several_traces_is_opened(trace: Trace, tmp_path: Path) -> None:
    lines = [json.dumps(replace(trace, text=text).to_json()) for text in ("first", "second", "third")]
    (tmp_path / "r3.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read, count = read_trace(tmp_path / "r3.json")
    assert (read.text, count) == ("first", 3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"schema": 1, "kind": "comparison", "summary": []}', "a comparison, as compare and sweep write"),
        ('{"schema": 1, "kind": "journal"}\n{"a": 1}\n', "a journal of runs, as sweep keeps"),
        ('{"schema": 1, "kind": "surprise"}', "of another kind"),
        ('{"runs": []}', "no trace"),
        ("[1, 2]", "no trace"),
        ("", "not JSON text"),
        ("model: embedded\nsteps: 3\n", "not JSON text"),
    ],
)
def test_other_files_are_named_and_so_is_what_opens(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "file.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=words) as refused:
        read_trace(tmp_path / "file.json")
    assert "what opens here is a trace, from `run --json`" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_wrong_with_a_trace_is_still_told_by_its_field(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"schema": 1, "model": {}}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"trace: model\.ref"):
        read_trace(tmp_path / "bad.json")
