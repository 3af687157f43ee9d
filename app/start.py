"""start: build the page and serve it until it is stopped."""

import os
import sys
from collections.abc import Mapping

import gradio as gr
import torch

from analysis.executors import available_cores
from app.catalog import CATALOG
from app.models import ModelShelf
from app.ui import build, launch_options
from app.workshop import Workshop
from app.zero_gpu import has_zero_gpu, load_for_lending
from core import load_model
from core.timing import settle


def spare_one_core() -> None:
    """Leave a core to the server: with torch on all of them, drawing lags behind by a second."""
    torch.set_num_threads(max(1, min(available_cores() - 1, torch.get_num_threads())))


def new_workshop(environment: Mapping[str, str] = os.environ) -> Workshop:
    """The workshop of this process; a Hugging Face Space offers the models of the catalogue only."""
    space = environment.get("SPACE_ID")
    is_space = space is not None or environment.get("SYSTEM") == "spaces"
    lends = has_zero_gpu(environment)
    loader = load_for_lending if lends else load_model
    return Workshop(ModelShelf(loader, allowed=CATALOG if is_space else None), space=space, lends=lends)


def serve(workshop: Workshop, page: gr.Blocks) -> None:
    """Load the model, then serve: loading beside a starting server would make it miss its port.

    Ends the process, code 1, with one sentence where no port can be had.
    """
    workshop.model()
    settle()
    try:
        page.launch(**launch_options())
    except OSError as error:
        sys.stderr.write(f"the page can't be served: {error}\n")
        raise SystemExit(1) from None


def main() -> None:
    """Build the page and serve it."""
    spare_one_core()
    workshop = new_workshop()
    serve(workshop, build(workshop))
