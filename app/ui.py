"""build: the whole page as a Gradio app."""

from typing import Any

import gradio as gr

from app.api import add_endpoints
from app.models import EMBEDDED_REF
from app.panels import panel, script_paths, style_paths
from app.tabs.decode import DecodeTab
from app.tabs.models import ModelsTab
from app.tabs.tune import TuneTab
from app.theme import theme
from app.visitors import add_presence
from app.workshop import Workshop

TITLE = "EntropyScope"
PURPOSE = (
    "Watch a diffusion language model decode, see when its KV cache goes stale, "
    "and weigh what each cache policy pays to stay fresh."
)
MAX_THREADS = 80
MAX_WAITING = 64
# Programs that call the endpoints never say that they leave; theirs are the oldest.
MAX_SESSIONS = 256


def build(workshop: Workshop | None = None) -> gr.Blocks:
    """The page. Nothing is loaded until the first run, or until the workshop is warmed up."""
    shop = workshop or Workshop()
    gr.set_static_paths([str(path) for path in script_paths()])
    with gr.Blocks(title=TITLE, fill_width=True, delete_cache=(600, 3600)) as page:
        with gr.Row(elem_id="top"):
            gr.Markdown(f"# {TITLE}\n{PURPOSE}", elem_id="masthead")
            corner = panel("corner", {"text": f"model {EMBEDDED_REF}"}, elem_id="corner")
        model = gr.State(EMBEDDED_REF)
        with gr.Tabs(elem_id="tabs", overflow_behavior="wrap") as tabs:
            with gr.Tab("Decode", id="decode"):
                decode = DecodeTab(shop, page, model)
            with gr.Tab("Tune", id="tune"):
                TuneTab(shop, decode.controls, model, tabs)
            with gr.Tab("Models", id="models"):
                ModelsTab(shop, page, tabs, corner, model)
        add_endpoints(shop)

        # Gradio would keep what every panel showed last, which is the run once more.
        shop.on_leave = lambda visitor: page.state_holder.session_data.pop(visitor, None)
        add_presence(shop, page)
    page.queue(max_size=MAX_WAITING)
    return page


def launch_options() -> dict[str, Any]:
    """What `launch` needs to know; address and port are left to Gradio's environment variables."""
    return {
        "theme": theme(),
        "css_paths": style_paths(),
        "footer_links": ["api"],
        "run_history": False,
        "enable_monitoring": False,
        "max_threads": MAX_THREADS,
        "state_session_capacity": MAX_SESSIONS,
        "max_file_size": "8mb",
    }
