"""What ZeroGPU does to a generator function: another process, everything pickled, errors by class name."""

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gradio

CHILDREN: list[Any] = []


def GPU(task: Callable[..., Iterator[Any]], duration: int) -> Callable[..., Iterator[Any]]:  # noqa: N802
    """The task, run in a fork for each call; what it is given and what it yields goes through pickles."""

    def lent(*args: Any) -> Iterator[Any]:
        context = multiprocessing.get_context("fork")
        inbox, outbox = context.SimpleQueue(), context.SimpleQueue()

        def child() -> None:
            try:
                for value in task(*pickle.loads(inbox.get())):
                    outbox.put(("ok", pickle.dumps(value)))
                outbox.put(("end", None))
            except Exception as error:  # noqa: BLE001
                outbox.put(("error", type(error).__name__))

        process = context.Process(target=child, daemon=True)
        process.start()
        CHILDREN.append(process)
        inbox.put(pickle.dumps(args))
        try:
            while (got := outbox.get())[0] == "ok":
                yield pickle.loads(got[1])
            if got[0] == "error":
                raise gradio.Error(got[1])
        finally:
            process.kill()
            process.join()

    return lent
