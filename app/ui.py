"""build: the whole page as a Gradio app."""

from typing import Any

import gradio as gr

from app.panels import ASSETS, script_paths
from app.tabs.decode import DecodeTab
from app.theme import theme
from app.visitors import visitor_of
from app.workshop import Workshop

TITLE = "EntropyScope"
PURPOSE = (
    "Watch a diffusion language model decode, see when its KV cache goes stale, "
    "and weigh what each cache policy pays to stay fresh."
)
MAX_THREADS = 80
MAX_WAITING = 64


def build(workshop: Workshop | None = None) -> gr.Blocks:
    """The page. Nothing is loaded until the first run, or until the workshop is warmed up."""
    shop = workshop or Workshop()
    gr.set_static_paths([str(path) for path in script_paths()])
    with gr.Blocks(title=TITLE, fill_width=True, delete_cache=(600, 3600)) as page:
        gr.Markdown(f"# {TITLE}\n{PURPOSE}", elem_id="masthead")
        DecodeTab(shop, page)

        def leave(request: gr.Request) -> None:
            shop.leave(visitor_of(request))

        page.unload(leave)
    page.queue(max_size=MAX_WAITING)
    return page


def launch_options() -> dict[str, Any]:
    """What `launch` needs to know; address and port are left to Gradio's environment variables."""
    return {
        "theme": theme(),
        "css_paths": [ASSETS / "app.css"],
        "footer_links": ["api"],
        "run_history": False,
        "enable_monitoring": False,
        "max_threads": MAX_THREADS,
        "max_file_size": "8mb",
    }
