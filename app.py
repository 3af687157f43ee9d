"""Start the page: `python app.py`, or `gradio app.py` to reload it on every change."""

import contextlib
import os
from pathlib import Path

if __name__ == "__main__":
    # Reload mode registers this file as the module `app`; the package's submodules must still be found.
    __path__ = [str(Path(__file__).parent / "app")]

from app.port import settle_port

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
settle_port(os.environ)

# ZeroGPU wants its package imported before anything that may touch CUDA.
with contextlib.suppress(ImportError):
    import spaces  # noqa: F401

from app.start import new_workshop, serve, spare_one_core
from app.ui import build

spare_one_core()
workshop = new_workshop()
demo = build(workshop)

if __name__ == "__main__":
    serve(workshop, demo)
