"""Numbers from runs: traces, probes, measures, figures and the command line."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.recorder import TraceRecorder
    from analysis.trace import Step, Trace

__all__ = ["Step", "Trace", "TraceRecorder"]


def __getattr__(name: str) -> Any:
    """Import at first use: the command line must be able to answer Ctrl-C before torch is loaded."""
    if name == "TraceRecorder":
        from analysis.recorder import TraceRecorder

        return TraceRecorder
    if name in ("Step", "Trace"):
        from analysis import trace

        return getattr(trace, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
