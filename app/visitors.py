"""Visitors: who is at the other end of a handler."""

import gradio as gr


def visitor_of(request: gr.Request | None) -> str:
    """One browser tab's name for as long as it is open."""
    return str(request.session_hash) if request is not None else "local"
