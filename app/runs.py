"""Runs: what a press of Run has produced, and a bounded store of them by visitor."""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from analysis.trace import Trace
from app.job import Job, LaneSpec
from core import LanguageModel


@dataclass(frozen=True)
class Speeds:
    """Seconds to decode one prompt, after a warm-up.

    rounds: one turn of every case each: one token a step without a cache, the job's own unmask rule without
    a cache, then the lanes of the job.
    """

    rounds: tuple[tuple[float, ...], ...]

    @property
    def repeats(self) -> int:
        return len(self.rounds)

    @property
    def lanes(self) -> tuple[float, ...]:
        """Median seconds of each lane."""
        return tuple(median(seconds) for seconds in zip(*self.rounds, strict=True))[2:]

    def gains(self, lane: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Seconds of both baselines over a lane's, round by round: neighbours in time share their noise."""
        vanilla, parallel = (
            tuple(seconds[base] / seconds[2 + lane] for seconds in self.rounds) for base in range(2)
        )
        return vanilla, parallel


@dataclass
class LaneRun:
    """One policy's part of a run. state: waiting, running, done or stopped.

    solved: None if not graded; judged: what was looked at to tell. from_file: decoded elsewhere, opened here.
    """

    spec: LaneSpec
    trace: Trace | None = None
    state: str = "waiting"
    solved: bool | None = None
    judged: str = ""
    from_file: bool = False

    @property
    def label(self) -> str:
        return self.spec.label


@dataclass
class RunRecord:
    """One press of Run: the job, its lanes, the no-cache observation; speeds and stale once measured.

    run_id counts the visitor's own runs. order is above that of every earlier run of anybody; 0 is a
    recorded example. going: whether it is being carried out right now. stale: traces watched by a
    StalenessProbe, by the index of their lane.
    """

    run_id: str
    order: int
    job: Job
    lanes: Sequence[LaneRun]
    observation: Trace | None = None
    going: bool = False
    speeds: Speeds | None = None
    stale: dict[int, Trace] = field(default_factory=dict)

    @property
    def traces(self) -> list[Trace]:
        """The traces of the lanes that have begun."""
        return [lane.trace for lane in self.lanes if lane.trace is not None]

    def content(self, model: LanguageModel) -> str | list[int]:
        """What was decoded, to decode it again: a file's prompt may be known as ids only."""
        return list(self.traces[0].prompt_ids) if self.traces else self.job.content(model)

    @property
    def same_prompt(self) -> bool:
        """Whether all lanes answer one prompt, so that their tokens can be compared."""
        return len({tuple(trace.prompt_ids) for trace in self.traces}) <= 1

    @property
    def same_job(self) -> bool:
        """Whether prompt, model and generation settings of all lanes are those of the job."""
        parts = ("ref", "dtype", "device")
        models = {tuple(trace.model[part] for part in parts) for trace in self.traces}
        settings = {repr(sorted(trace.generation.items())) for trace in self.traces}
        return self.same_prompt and len(models) <= 1 and len(settings) <= 1

    def require_same_job(self) -> None:
        """Raises ValueError where there is no one job to run again for all lanes."""
        if not self.same_job:
            raise ValueError(MIXED)


MIXED = "the runs on show differ in prompt, model or settings; run the policies together to measure them"
MAX_REMEMBERED = 4096


class RunStore:
    """The last `per_visitor` runs of each of the last `max_visitors` visitors."""

    def __init__(self, per_visitor: int = 12, max_visitors: int = 64) -> None:
        self._per_visitor, self._max_visitors = per_visitor, max_visitors
        self._lock = threading.Lock()
        self._by_visitor: OrderedDict[str, OrderedDict[str, RunRecord]] = OrderedDict()
        self._left_at: OrderedDict[str, int] = OrderedDict()
        self._orders = itertools.count(1)
        self._numbers: OrderedDict[str, int] = OrderedDict()

    def new(self, job: Job, visitor: str = "") -> RunRecord:
        """A visitor's next record, with an order above every earlier one; kept once `keep` is called."""
        number = self.new_number(visitor)
        return RunRecord(f"run-{number}", self.new_order(), job, [LaneRun(spec) for spec in job.lanes])

    def new_number(self, visitor: str) -> int:
        """What the visitor's next run or opened file is named by."""
        with self._lock:
            number = self._numbers[visitor] = self._numbers.get(visitor, 0) + 1
            _shorten(self._numbers, visitor)
        return number

    def new_order(self) -> int:
        """A number above every one given before."""
        return next(self._orders)

    def keep(self, visitor: str, record: RunRecord) -> None:
        """Store or renew a record; the visitor's oldest, and the oldest visitor, make room.

        What was begun before the visitor left is dropped: nobody will ask for it.
        """
        with self._lock:
            if record.order < self._left_at.get(visitor, 0):
                return
            theirs = self._by_visitor.setdefault(visitor, OrderedDict())
            self._by_visitor.move_to_end(visitor)
            theirs[record.run_id] = record
            theirs.move_to_end(record.run_id)
            while len(theirs) > self._per_visitor:
                theirs.popitem(last=False)
            while len(self._by_visitor) > self._max_visitors:
                self._by_visitor.popitem(last=False)

    def find(self, visitor: str, run_id: str) -> RunRecord | None:
        with self._lock:
            return self._by_visitor.get(visitor, OrderedDict()).get(run_id)

    def on_show(self, visitor: str, order: int) -> RunRecord | None:
        """The record of that order, as a page names the run that it shows."""
        return next((record for record in self.of(visitor) if record.order == order), None)

    def of(self, visitor: str) -> list[RunRecord]:
        """A visitor's runs, the latest first."""
        with self._lock:
            return list(reversed(self._by_visitor.get(visitor, OrderedDict()).values()))

    def forget(self, visitor: str) -> None:
        """The visitor has left: drop their runs, and those still under way when they end."""
        with self._lock:
            self._by_visitor.pop(visitor, None)
            self._numbers.pop(visitor, None)
            self._left_at[visitor] = self.new_order()
            _shorten(self._left_at, visitor)

    def has_left(self, visitor: str) -> bool:
        """Whether the visitor has been forgotten, and nothing of theirs is kept since."""
        with self._lock:
            return visitor in self._left_at and visitor not in self._by_visitor

    def __len__(self) -> int:
        with self._lock:
            return sum(len(theirs) for theirs in self._by_visitor.values())


def _shorten(of_visitors: OrderedDict[str, int], latest: str) -> None:
    of_visitors.move_to_end(latest)
    while len(of_visitors) > MAX_REMEMBERED:
        of_visitors.popitem(last=False)
