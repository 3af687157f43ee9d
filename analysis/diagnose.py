"""Diagnosis: which known weaknesses of a cache a setting suffered from, counted in its own traces."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.timeline import timeline
from analysis.trace import Trace
from analysis.wording import counted


@dataclass(frozen=True)
class Diagnosis:
    """Counts over the steps of one setting's traces; shares are None where there is nothing to divide by.

    mask_rows: share of (decoded token, step) pairs in which the token's K/V are still those of its mask.
    beyond_recent: share of steps in which more tokens had just been committed than the policy's `recent`
    allows for (EntropyCache recomputes them all the same, at a cost k does not show). full_share: full
    steps; of those after the first, triggered: by entropy, at_block_start: in the first step of a block.
    longest_reuse: most steps in a row without a full one. oldest: age, in steps, of the oldest K/V of a
    decoded token that was attended. traces: runs looked at.
    """

    policy: str
    traces: int
    steps: int
    mask_rows: float | None
    beyond_recent: float | None
    full_share: float | None
    triggered: float | None
    at_block_start: float | None
    longest_reuse: int
    oldest: int

    def findings(self) -> list[str]:
        """One sentence for each weakness that shows."""
        found = []
        if self.mask_rows:
            found.append(
                f"{self.mask_rows:.1%} of decoded tokens were attended with the K/V of their mask: they were "
                "not recomputed after they were committed"
            )
        if self.beyond_recent:
            found.append(
                f"in {self.beyond_recent:.1%} of the steps more tokens had just been committed than k: all "
                "of them are recomputed, so k is no bound on the work"
            )
        if self.full_share is not None and self.full_share > 0.8:
            found.append(f"{self.full_share:.0%} of the steps were full: the cache saves little")
        if self.triggered is not None and self.triggered == 0 and self.policy == "entropy":
            found.append("no full step was triggered by entropy: tau is out of reach of these prompts")
        if self.at_block_start is not None and self.at_block_start > 0.5:
            found.append(
                f"{self.at_block_start:.0%} of the full steps fell on the first step of a block: compare "
                "with refresh_on_block_start=true entropy_threshold=inf, which needs no signal"
            )
        return found or [
            f"none of the known weaknesses shows in {counted(self.traces, 'run')} of "
            f"{counted(self.steps, 'step')} together; looked for: {', '.join(self._looked_for())}"
        ]

    def _looked_for(self) -> list[str]:
        """What the traces could have shown."""
        known = {
            "decoded tokens attended with the K/V of their mask": self.mask_rows is not None,
            "more tokens just committed than k": self.beyond_recent is not None,
            "over 80 % full steps": self.full_share is not None,
            "no full step triggered by entropy": self.triggered is not None and self.policy == "entropy",
            "over half of the full steps at the start of a block": self.at_block_start is not None,
        }
        return [name for name, looked in known.items() if looked]

    def to_frame(self) -> pd.DataFrame:
        """One row a quantity."""
        return pd.DataFrame({"quantity": list(vars(self)), "value": list(vars(self).values())})


def diagnose(traces: Sequence[Trace]) -> Diagnosis:
    """Look at traces of one setting. Raises ValueError for none, or for several policies."""
    policies = {str(trace.policy["name"]) for trace in traces}
    if len(policies) != 1:
        raise ValueError(f"traces are of {sorted(policies) or 'no'} policies; allowed: of one")
    masks, tokens = (sum(counts) for counts in zip(*map(_mask_rows, traces), strict=True))
    beyond = [share for trace in traces for share in _beyond_recent(trace)]
    full = np.concatenate([[step.full for step in trace.steps] for trace in traces])
    later = [(trace, step) for trace in traces for step in trace.steps[1:] if step.full]
    starts = {id(trace): set(timeline(trace).block_starts) for trace in traces}
    at_start = [step.step in starts[id(trace)] for trace, step in later]
    return Diagnosis(
        policy=policies.pop(),
        traces=len(traces),
        steps=len(full),
        mask_rows=masks / tokens if tokens else None,
        beyond_recent=float(np.mean(beyond)) if beyond else None,
        full_share=float(full.mean()) if len(full) else None,
        triggered=float(np.mean(["entropy" in step.reason for _, step in later])) if later else None,
        at_block_start=float(np.mean(at_start)) if later else None,
        longest_reuse=max((_longest_reuse(trace) for trace in traces), default=0),
        oldest=max((_oldest(trace) for trace in traces), default=0),
    )


def _mask_rows(trace: Trace) -> tuple[int, int]:
    """(token, step) pairs with K/V computed while the token was a mask, and all such pairs."""
    masks = tokens = 0
    written = np.full(trace.gen_length, -1)
    decoded = trace.decoded_at
    prompt = len(trace.prompt_ids)
    for step in trace.steps:
        written = np.where(step.refreshed[prompt:] > 0, step.step, written)
        known = (decoded >= 0) & (decoded < step.step)
        masks += int((known & (written <= decoded)).sum())
        tokens += int(known.sum())
    return masks, tokens


def _beyond_recent(trace: Trace) -> list[bool]:
    """For each step after the first: were more tokens just committed than `recent`? Empty without one."""
    recent = trace.policy["config"].get("recent")
    return [] if recent is None else [count > recent for count in trace.num_committed[:-1].tolist()]


def _longest_reuse(trace: Trace) -> int:
    longest = current = 0
    for step in trace.steps:
        current = 0 if step.full else current + 1
        longest = max(longest, current)
    return longest


def _oldest(trace: Trace) -> int:
    if not trace.steps:
        return 0
    line, prompt = timeline(trace), len(trace.prompt_ids)
    steps = np.arange(len(trace.steps))[:, None]
    known = (line.decoded_at >= 0) & (line.decoded_at < steps)
    return int(np.where(known, line.age[:, prompt:], 0).max())
