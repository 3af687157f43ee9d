"""What a message to the browser costs: as little beside its content as can be."""

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
