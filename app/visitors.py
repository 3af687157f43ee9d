"""Visitors: who is at the other end of a handler, and whether they are still there."""

from typing import TYPE_CHECKING

import gradio as gr

if TYPE_CHECKING:
    from app.workshop import Workshop


def visitor_of(request: gr.Request | None) -> str:
    """One browser tab's name for as long as it is open."""
    return str(request.session_hash) if request is not None else "local"


def add_presence(workshop: "Workshop", page: gr.Blocks) -> None:
    """Follow who comes and goes, in the current Blocks context.

    Gradio tells of an ended connection, which a lost network and a closed tab have in common. So a tab says
    that it is "gone", and one whose connection was lost that it is "back" and, from then on, still "here".
    """

    def lose(request: gr.Request) -> None:
        workshop.lose(visitor_of(request))

    async def presence(word: str, request: gr.Request) -> None:
        visitor = visitor_of(request)
        if word == "gone":
            workshop.leave(visitor)
            return
        workshop.absence.end(visitor)
        session = page.state_holder.session_data.get(visitor)
        if session is not None:
            # Or Gradio would drop its states an hour after the connection had ended.
            session.is_closed = False
        if word == "back":
            # A server may not have noticed yet that nobody hears what it tells any more.
            await page._queue.clean_events(session_hash=visitor)

    page.unload(lose)
    gr.api(presence, api_name="presence", queue=False, api_visibility="private")
