"""python -m app: start the page."""

import os

from app.port import settle_port

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
settle_port(os.environ)

from app.start import main

main()
