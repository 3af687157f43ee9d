"""Frames: what the token grid is sent, as plain data. Only new steps travel; a whole frame holds all."""

from collections.abc import Callable
from typing import Any

from analysis.trace import Step, Trace
from analysis.trace_file import run_lengths
from app.models import EMBEDDED_REF
from app.runs import RunRecord

TokenText = Callable[[int], str]


class FrameFeed:
    """The frames of one run. `order` travels with each, so that the page knows the late ones.

    texts_of gives a trace's token texts; example marks a recorded run.
    """

    def __init__(
        self, record: RunRecord, texts_of: Callable[[Trace], TokenText], example: bool = False
    ) -> None:
        self.record, self.texts_of, self.example = record, texts_of, example
        self._sent: dict[int, int] = {}
        self._started = False

    def frame(self, state: str, whole: bool = False) -> dict[str, Any]:
        """What has happened since the last frame, or everything."""
        starts, self._started = not self._started, True
        parts = []
        for index, lane in enumerate(self.record.lanes):
            if lane.trace is None:
                continue
            first = 0 if whole else self._sent.get(index, 0)
            text = self.texts_of(lane.trace)
            steps = [step_record(step, lane.trace, text) for step in lane.trace.steps[first:]]
            part: dict[str, Any] = {"lane": index, "state": lane.state, "steps": steps}
            part |= {"judged": lane.judged} if lane.judged else {}
            if whole or index not in self._sent:
                part["head"] = lane_head(lane.label, lane.trace)
            self._sent[index] = len(lane.trace.steps)
            parts.append(part)
        return {
            "run": self.record.run_id,
            "order": self.record.order,
            "starts": starts,
            "whole": whole,
            "example": self.example,
            "state": state,
            "same_prompt": self.record.same_prompt,
            "lanes": parts,
        }


def lane_head(label: str, trace: Trace) -> dict[str, Any]:
    """What stays the same through a run."""
    return {
        "label": label,
        "policy": trace.policy["name"],
        "embedded": trace.model["ref"] == EMBEDDED_REF,
        "prompt": len(trace.prompt_ids),
        "gen": trace.gen_length,
        "block": int(trace.generation["block_length"]),
        "sliding": trace.generation.get("window", "block") == "sliding",
    }


def step_record(step: Step, trace: Trace, token_text: TokenText) -> dict[str, Any]:
    """One step: s(tep), f(ull), w(hy), c(ommitted), r(efreshed canvas positions), e(ntropy), t(ime)."""
    runs, _ = run_lengths(step.refreshed)
    ends = set(trace.model["eos_token_ids"])
    committed = [
        [position, token_text(token), round(confidence, 4), round(entropy, 4), int(token in ends)]
        for position, token, confidence, entropy in zip(
            step.committed, step.tokens, step.confidence, step.entropy, strict=True
        )
    ]
    return {
        "s": step.step,
        "f": int(step.full),
        "w": step.reason,
        "c": committed,
        "r": runs,
        "e": round(step.max_entropy, 4) if step.committed else None,
        "t": round(sum(step.seconds.values()), 6),
    }
