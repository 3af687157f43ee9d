"""start: build the page and serve it until it is stopped."""

import os

import torch

from app.models import CATALOG, ModelShelf
from app.ui import build, launch_options
from app.workshop import Workshop


def spare_one_core() -> None:
    """Leave a core to the server: with torch on all of them, drawing lags behind by a second."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) - 1))


def new_workshop() -> Workshop:
    """The workshop of this process; a Hugging Face Space offers the models of the catalogue only."""
    space = os.environ.get("SPACE_ID")
    return Workshop(ModelShelf(allowed=CATALOG if space else None), space=space)


def main() -> None:
    """Load the model, then serve: loading beside a starting server would make it miss its port."""
    spare_one_core()
    workshop = new_workshop()
    workshop.model()
    build(workshop).launch(**launch_options())
