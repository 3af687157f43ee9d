"""TraceRecorder: fold the events of a run into traces while it goes on."""

from collections.abc import Callable, Sequence

import numpy as np

from analysis.trace import Step, Trace, plain_array
from core.end_of_text import end_of_text
from core.events import Event, Generation, RunFinished, RunStarted, StepEvent


class TraceRecorder:
    """Fold a run's events into one Trace a request; readable at any time, also in mid-run.

    decode turns token ids into text; without it a request that has not ended has no text yet.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str] | None = None) -> None:
        self._decode = decode
        self._run: RunStarted | None = None
        self._steps: dict[int, list[Step]] = {}
        self._ended: dict[int, Generation] = {}
        self._slots = 1

    def observe(self, event: Event) -> None:
        """Take the next event of a run; a RunStarted forgets the run before it."""
        if isinstance(event, RunStarted):
            self._run = event
            self._steps = {request.index: [] for request in event.requests}
            self._ended = {}
        elif isinstance(event, StepEvent):
            self._slots = len(event.request)
            for slot in np.flatnonzero(event.request >= 0):
                self._steps[int(event.request[slot])].append(self._step(event, int(slot)))
            self._ended |= {ended.request.index: ended for ended in event.finished}
        elif isinstance(event, RunFinished):
            self._ended |= {ended.request.index: ended for ended in event.generations}

    def trace(self, request: int = 0) -> Trace:
        """What is known of one request by now. Raises ValueError before a run or for an unknown index."""
        run = self._started()
        if request not in self._steps:
            raise ValueError(f"request is {request}; allowed: 0 to {len(self._steps) - 1}")
        of = next(known for known in run.requests if known.index == request)
        ended, steps = self._ended.get(request), tuple(self._steps[request])
        tokens = ended.tokens if ended else self._tokens(run, steps)
        return Trace(
            model=run.model,
            policy={"name": run.policy, "config": run.policy_config},
            generation=run.generation,
            prompt=of.text,
            prompt_ids=tuple(of.prompt_ids),
            tokens=tokens,
            text=ended.text if ended else self._text(run, tokens),
            steps=steps,
            batch_size=self._slots,
        )

    def traces(self) -> list[Trace]:
        """One trace a request, in the order of the prompts."""
        return [self.trace(request.index) for request in self._started().requests]

    def _started(self) -> RunStarted:
        if self._run is None:
            raise ValueError("no run has been observed yet")
        return self._run

    def _step(self, event: StepEvent, slot: int) -> Step:
        run = self._started()
        of = next(known for known in run.requests if known.index == event.request[slot])
        padding = run.prompt_length - len(of.prompt_ids)
        columns = np.flatnonzero(event.committed[slot])
        return Step(
            step=int(event.step[slot]),
            full=bool(event.full[slot]),
            reason=event.reason[slot],
            committed=tuple(int(column) - run.prompt_length for column in columns),
            tokens=tuple(int(token) for token in event.tokens[slot, columns]),
            confidence=_floats(event.confidence[slot, columns]),
            entropy=_floats(event.entropy[slot, columns]),
            refreshed=np.asarray(event.refreshed[slot, padding:], dtype=int),
            num_layers=int(run.model["num_layers"]),
            seconds=dict(event.seconds),
            measurements={name: plain_array(of_all[slot]) for name, of_all in event.measurements.items()},
        )

    @staticmethod
    def _tokens(run: RunStarted, steps: tuple[Step, ...]) -> tuple[int, ...]:
        tokens = [int(run.model["mask_token_id"])] * (run.canvas_length - run.prompt_length)
        for step in steps:
            for position, token in zip(step.committed, step.tokens, strict=True):
                tokens[position] = token
        return tuple(tokens)

    def _text(self, run: RunStarted, tokens: tuple[int, ...]) -> str | None:
        if self._decode is None:
            return None
        kept = tokens[: end_of_text(tokens, run.model["eos_token_ids"])]
        return self._decode([token for token in kept if token != run.model["mask_token_id"]])


def _floats(values: np.ndarray) -> tuple[float, ...]:
    """float32 values as the shortest decimals that name them, so that files stay small and exact."""
    return tuple(float(str(value)) for value in np.asarray(values, dtype=np.float32))
