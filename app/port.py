"""settle_port: the port to serve on, from the environment, checked before Gradio reads it."""

import sys
from collections.abc import MutableMapping

GRADIO_PORT = "GRADIO_SERVER_PORT"
NAMES = (GRADIO_PORT, "PORT")
HIGHEST = 65535


def settle_port(environment: MutableMapping[str, str]) -> None:
    """Make PORT count where GRADIO_SERVER_PORT is not set. Ends the process, code 2, for one that is none.

    To be called before gradio is imported: it reads the variable then, and fails in its own words.
    """
    for name in NAMES:
        given = environment.get(name, "").strip()
        if not given:
            # Gradio would stumble over an empty one.
            environment.pop(name, None)
            continue
        if not (given.isascii() and given.isdigit() and 1 <= int(given) <= HIGHEST):
            sys.stderr.write(f"{name} is {given!r}; allowed: a number from 1 to {HIGHEST}\n")
            raise SystemExit(2)
        environment.setdefault(GRADIO_PORT, given)
