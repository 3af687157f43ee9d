"""Numbers from runs: traces, probes, measures, figures and the command line."""

from analysis.recorder import TraceRecorder
from analysis.trace import Step, Trace

__all__ = ["Step", "Trace", "TraceRecorder"]
