"""What is kept: files that agree with the run, runs that can be shown together, a page that needs nobody."""

import io
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.trace import Trace
from app.bundle import UNKNOWN_OF_OLD_TRACES, latex_table, policies_frame, write_bundle
from app.cards import cards
from app.examples import record_of
from app.explain import measure_staleness, staleness_panel
from app.forms import read_all
from app.frames import FrameFeed
from app.history import history, picked
from app.job import Job, LaneSpec
from app.offline import offline_page
from app.perform import perform
from app.runs import RunRecord, Speeds
from app.speeds import measure_speeds
from app.workshop import Workshop
from core import POLICIES, GenerationConfig, LanguageModel

Make = Callable[..., Job]


def run(workshop: Workshop, job: Job, visitor: str = "me") -> RunRecord:
    record = workshop.runs.new(job)
    for _ in perform(workshop, record, workshop.turns.join(visitor)):
        pass
    workshop.runs.keep(visitor, record)
    return record


def whole_frame(workshop: Workshop, record: RunRecord) -> dict:
    return FrameFeed(record, workshop.texts_of).frame("done", whole=True)


def files_of(workshop: Workshop, record: RunRecord, folder: Path) -> dict[str, bytes]:
    """What the zip of a run holds, by name."""
    with zipfile.ZipFile(write_bundle(record, workshop.texts_of, folder)) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def table(content: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), keep_default_na=False)


def test_zip_holds_traces_tables_figures_and_one_offline_page(
    workshop: Workshop, job: Make, tmp_path: Path
) -> None:
    record = run(workshop, job("entropy", "none", observe="one"))
    files = files_of(workshop, record, tmp_path)
    assert {"report.html", "trace-a.json", "trace-b.json", "observation.json", "settings.json"} <= set(files)
    assert Trace.from_json(json.loads(files["trace-b.json"])).tokens == record.traces[1].tokens
    assert len(table(files["steps.csv"])) == sum(len(trace.steps) for trace in record.traces)
    assert len(table(files["tokens.csv"])) == 32
    policies = table(files["policies.csv"])
    assert list(policies["policy"]) == ["entropy · τ 1 · k 64", "none"]
    assert policies["recompute ratio %"][1] == 100
    notes = files["README.md"].decode()
    assert cards(record)["about"] in notes
    names = {name.replace("-b.json", "-a.json") for name in files if "/" not in name}
    assert all(f"`{name}`" in notes for name in names - {"README.md"})


def test_figures_in_files_say_what_they_are_and_of_which_run(
    workshop: Workshop, job: Make, tmp_path: Path
) -> None:
    """One policy twice in a run, too: a name must never rest on the order of a list."""
    record = run(workshop, job("entropy", "dual", "entropy", observe="one"))
    names = [name for name in files_of(workshop, record, tmp_path) if name.startswith("figures/")]
    runs = ("a-entropy", "b-dual", "c-entropy")
    of_runs = [f"{what}-{one}" for what in ("timeline", "map-recomputed", "map-age-of-k-v") for one in runs]
    watched = ["scatter", "volatility", "layers", "tokens", "signals"]
    assert sorted(names) == sorted(f"figures/{name}.json" for name in of_runs + watched)
    for name in names:
        figure = json.loads(files_of(workshop, record, tmp_path)[name])
        assert figure["data"]
        assert "float32 on cpu" in figure["layout"]["meta"]["about"]


def test_a_run_can_be_repeated_from_its_settings_alone(
    workshop: Workshop, worded: LanguageModel, job: Make, tmp_path: Path
) -> None:
    generation = GenerationConfig(gen_length=16, block_length=8, temperature=0.8, seed=7)
    chosen = replace(
        job("dual", observe="one", generation=generation),
        lanes=(LaneSpec("entropy", (("entropy_threshold", math.inf),)), LaneSpec("dual", ())),
    )
    record = run(workshop, chosen)
    told = json.loads(files_of(workshop, record, tmp_path)["settings.json"])
    [(name, digest)] = dict(worded.weights_sha256 or {}).items()
    assert len(told["runs"]) == 2
    watched = record.observation
    assert watched is not None
    for one, trace in zip([*told["runs"], *told["observation"]], [*record.traces, watched], strict=True):
        facts = one["model"]
        assert (facts["ref"], facts["weights_sha256"]) == (worded.ref, {name: digest})
        assert {"dtype", "device", "torch", "num_threads"} <= set(facts)
        policy, config = one["policy"]["name"], one["policy"]["config"]
        assert set(config) == set(POLICIES[policy].Config().to_dict()), "defaults are said, too"
        assert set(one["generation"]) == set(generation.to_dict())
        lane = LaneSpec(policy, tuple(read_all(config, "policy").items()))
        again = Job(one["prompt"], (lane,), GenerationConfig(**read_all(one["generation"], "generation")))
        assert run(workshop, again).traces[0].tokens == trace.tokens


def test_what_an_old_trace_does_not_tell_is_said_to_be_unknown(
    workshop: Workshop, job: Make, tmp_path: Path
) -> None:
    trace = run(workshop, job("none")).traces[0]
    of_old = {name: value for name, value in trace.model.items() if name not in UNKNOWN_OF_OLD_TRACES}
    record = record_of(replace(trace, model=of_old), "opened-1", 1)
    [told] = json.loads(files_of(workshop, record, tmp_path)["settings.json"])["runs"]
    assert all(told["model"][name] is None for name in UNKNOWN_OF_OLD_TRACES)


@pytest.mark.parametrize(
    "text",
    ["=1+1", " =A1", "+1", "-1", "@x", "\t=1", "\r=1", "'quoted", "plain", " the", '"', ",", "\n", "", "NA"],
)
def test_token_texts_come_back_from_a_table_and_are_no_formulas(
    workshop: Workshop, job: Make, tmp_path: Path, text: str
) -> None:
    record = run(workshop, job("none", "none"))
    workshop.texts_of = lambda trace: lambda token: text  # type: ignore[method-assign]
    tokens = table(files_of(workshop, record, tmp_path)["tokens.csv"])
    assert list(tokens["run"]) == ["a"] * 16 + ["b"] * 16
    for cell in tokens["text"]:
        assert cell.removeprefix("'") == text
        assert not cell.lstrip().startswith(("=", "+", "-", "@"))


def test_table_of_policies_has_the_range_of_every_speedup(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("entropy"))
    record.speeds = Speeds(((3.0, 0.4, 0.2), (6.0, 0.8, 0.4), (2.0, 0.3, 0.2)))
    [row] = policies_frame(record).to_dict("records")
    assert (row["vs no cache ×"], row["vs no cache × least"], row["vs no cache × most"]) == (
        "2.00",
        "1.50",
        "2.00",
    )
    assert (row["vs one token a step × least"], row["vs one token a step × most"]) == ("10.0", "15.0")


def test_numbers_count_a_visitors_own_runs_and_files(workshop: Workshop, job: Make) -> None:
    runs = workshop.runs
    runs.new(job("none"), "other")
    assert runs.new(job("none"), "me").run_id == "run-1"
    assert runs.new_number("me") == 2
    assert runs.new(job("none"), "me").run_id == "run-3"


def test_latex_table_escapes_and_dashes_what_was_not_measured(workshop: Workshop, job: Make) -> None:
    text = latex_table(policies_frame(run(workshop, job("entropy"))))
    assert r"entropy, $\tau$ 1, k 64 & --" in text
    assert r"recompute ratio \%" in text
    assert text.count(r"\\") == 2


def test_offline_page_needs_nobody_and_runs_no_model_text(workshop: Workshop, job: Make) -> None:
    record = run(workshop, job("none"))
    frame = whole_frame(workshop, record)
    frame["lanes"][0]["steps"][0]["c"][0][1] = "</script><img src=x onerror=alert(1)><!--"
    page = offline_page(record, frame, "prompt=x")
    assert "\\u003c/script>\\u003cimg" in page
    assert page.count("</script>") == 2
    assert 'src="http' not in page
    assert "<link" not in page


def test_kept_lanes_of_different_runs_can_stand_side_by_side(workshop: Workshop, job: Make) -> None:
    first, second = run(workshop, job("none", observe="one")), run(workshop, job("dual", "prefix"))
    entries = history(workshop.runs.of("me"))
    assert [(entry["run"], entry["lane"]) for entry in entries] == [
        (second.run_id, 0), (second.run_id, 1), (first.run_id, 0)
    ]  # fmt: skip
    picks = [{"run": first.run_id, "lane": 0}, {"run": second.run_id, "lane": 1}]
    shown = picked(workshop.runs, "me", picks)
    assert [trace.policy["name"] for trace in shown.traces] == ["none", "prefix"]
    assert shown.observation is first.observation
    assert shown.order > second.order


def test_no_two_entries_of_the_history_have_one_label(workshop: Workshop, job: Make) -> None:
    """However alike: the same job again, one policy twice in a run, runs shown side by side, files."""
    first, second = (run(workshop, job("none", "none")) for _ in range(2))
    picks = [{"run": record.run_id, "lane": 0} for record in (first, second)]
    workshop.runs.keep("me", picked(workshop.runs, "me", picks))
    for order in (workshop.runs.new_order(), workshop.runs.new_order()):
        trace = Trace.from_json(first.traces[0].to_json())
        number = workshop.runs.new_number("me")
        workshop.runs.keep("me", record_of(trace, f"opened-{number}", order))
    labels = [entry["label"] for entry in history(workshop.runs.of("me"))]
    assert len(labels) == 6
    assert len(set(labels)) == len(labels)


def test_a_lane_stands_once_in_the_history_however_often_it_is_shown(workshop: Workshop, job: Make) -> None:
    """Or it could be picked as A and as B."""
    first, second = run(workshop, job("none", "dual")), run(workshop, job("prefix"))

    def show(*picks: tuple[RunRecord, int]) -> None:
        asked = [{"run": record.run_id, "lane": lane} for record, lane in picks]
        workshop.runs.keep("me", picked(workshop.runs, "me", asked))

    before = {entry["label"] for entry in history(workshop.runs.of("me"))}
    for _ in range(2):
        show((second, 0), (first, 1))
        show((first, 0), (first, 1))
        show((first, 0))
    assert {entry["label"] for entry in history(workshop.runs.of("me"))} == before
    assert len(workshop.runs.of("me")) == 4, "the same picks again are the same record"
    with pytest.raises(ValueError, match="run 1 B is picked twice"):
        show((first, 1), (first, 1))
    shown = next(
        record for record in workshop.runs.of("me") if len(record.lanes) == 2 and record is not first
    )
    with pytest.raises(ValueError, match="picked twice"):
        show((first, 0), *((shown, lane) for lane in range(2)), (second, 0))


def test_what_is_shown_of_a_run_outlives_it_in_the_history(workshop: Workshop, job: Make) -> None:
    first, second = run(workshop, job("none")), run(workshop, job("dual"))
    picks = [{"run": record.run_id, "lane": 0} for record in (first, second)]
    shown = picked(workshop.runs, "me", picks)
    assert [entry["run"] for entry in history([shown, second])] == [shown.run_id, second.run_id]


def test_run_shown_again_is_on_show_under_an_order_of_its_own(workshop: Workshop, job: Make) -> None:
    """What the page asks for is the run that it shows, and showing one again draws its figures anew."""
    first = run(workshop, job("none"))
    again = picked(workshop.runs, "me", [{"run": first.run_id, "lane": 0}])
    workshop.runs.keep("me", again)
    assert workshop.runs.on_show("me", again.order) is again
    assert again.order > first.order
    assert workshop.runs.on_show("me", 0) is None
    assert workshop.runs.on_show("other", again.order) is None


@pytest.mark.parametrize("differs", ["prompt", "generation"])
def test_runs_of_several_jobs_side_by_side_are_not_measured_as_one(
    workshop: Workshop, job: Make, differs: str
) -> None:
    changed: dict[str, Any] = {"prompt": "four five six seven"}
    if differs == "generation":
        changed = {"generation": GenerationConfig(gen_length=16, block_length=4)}
    first = run(workshop, job("none", observe="one"))
    second = run(workshop, replace(job("dual"), **changed))
    shown = picked(workshop.runs, "me", [{"run": record.run_id, "lane": 0} for record in (first, second)])
    told = cards(shown)
    labels = [number["label"] for number in told["lanes"][1]["numbers"]]
    assert ("agreement" in labels) == (differs != "prompt")
    assert all(number["action"] is None for lane in told["lanes"] for number in lane["numbers"])
    told_apart = "different prompts, 3 + 16 and 4 + 16" if differs == "prompt" else "blocks of 8, commits by"
    assert told_apart in told["about"]
    assert whole_frame(workshop, shown)["same_prompt"] == (differs != "prompt")
    assert json.loads(staleness_panel(shown))["action"] == ""
    for measure in (measure_speeds, measure_staleness):
        with pytest.raises(ValueError, match="differ in prompt, model or settings"):
            list(measure(workshop, shown, workshop.turns.join("me")))
    assert len(workshop.turns) == 0


@pytest.mark.parametrize(
    "picks", [None, [], [{"run": "run-1", "lane": 0}] * 5, [{"run": "nobody's", "lane": 0}]]
)
def test_picks_that_cannot_be_shown_are_refused(workshop: Workshop, job: Make, picks: object) -> None:
    run(workshop, job("none"), visitor="other")
    with pytest.raises(ValueError, match=r"pick one to 4|no longer kept"):
        picked(workshop.runs, "me", picks)


def test_trace_file_comes_back_as_a_run(workshop: Workshop, job: Make, tmp_path: Path) -> None:
    trace = run(workshop, job("entropy")).traces[0]
    trace.save(tmp_path / "trace.json")
    record = record_of(Trace.load(tmp_path / "trace.json"), "opened-1", 7)
    assert record.lanes[0].label == "entropy · τ 1 · k 64"
    assert record.job.generation.to_dict() == trace.generation
    assert record.job.model == trace.model["ref"]
    assert workshop.texts_of(trace)(5) == " <b>5</b>"
    assert (
        workshop.texts_of(Trace.from_json({**trace.to_json(), "model": {**trace.model, "ref": "x"}}))(5)
        == "#5"
    )


def test_trace_with_settings_unknown_here_is_refused(workshop: Workshop, job: Make) -> None:
    content = run(workshop, job("none")).traces[0].to_json()
    content["generation"]["surprise"] = 1
    with pytest.raises(ValueError, match="trace: generation"):
        record_of(Trace.from_json(content), "opened", 1)
