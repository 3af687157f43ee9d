"""What a message to the browser costs: as little beside its content as can be."""

from collections.abc import Callable

from app.job import Job
from app.perform import perform
from app.screen import Parts, Screen
from app.ui import build
from app.workshop import Workshop


def test_no_event_has_its_progress_written_into_the_page(workshop: Workshop) -> None:
    """With every message of any event Gradio writes it into all outputs of all events that name none."""
    page = build(workshop)
    written = {
        event["api_name"]: event["outputs"]
        if event["show_progress_on"] is None
        else event["show_progress_on"]
        for event in page.config["dependencies"]
        if event["api_visibility"] == "private"
    }
    assert len(written) > 10
    assert {name: parts for name, parts in written.items() if parts} == {}


def test_run_names_no_output_that_only_its_end_changes(workshop: Workshop, job: Callable[..., Job]) -> None:
    """Gradio makes anew, with every message, each output that the message leaves alone."""
    parts = Parts("status", "grid", "cards", "timeline", "scatter", "volatility", "shown")
    record = workshop.runs.new(job("none", "dual", observe="one"))
    screen = Screen(record, workshop.texts_of, parts)
    moments = perform(workshop, record, workshop.turns.join("me"))
    changed = {part for moment in moments if not moment.last for part in screen.updates(moment)}
    page = build(workshop)
    names = {block._id: getattr(block, "elem_id", None) for block in page.blocks.values()}
    run = next(
        fn
        for fn in page.fns.values()
        if any((names.get(key), event) == ("run", "click") for key, event in fn.targets)
    )
    # A state is kept on the server and costs no message anything.
    assert {block.elem_id for block in run.outputs if not block.stateful} == changed
