"""Cards: the figures of a run's lanes, what each means, and what all of them are of."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from statistics import median
from typing import Any

from analysis.comparison import agreement
from analysis.settings import setting_texts
from analysis.trace import Trace
from analysis.wording import counted, own_order
from app.history import LETTERS
from app.runs import RunRecord
from core import GenerationConfig
from core.config import READ_BY

VERDICTS = {True: "correct", False: "wrong", None: None}
HELP = {
    "recompute ratio": "K/V rows recomputed over steps × canvas length (prompt and generation): "
    "what a policy pays to keep its cache fresh. Without a cache it is 100 %.",
    "steps": "Denoising steps, each one forward pass; full ones recompute every position. Commits a step are "
    "of all positions, the end-of-text that fills the rest of the canvas included; tokens/s leaves that out.",
    "tokens/s": "Generated tokens up to and including the first end-of-text, over planning, forward and "
    "decoding seconds. The prompt, the drawing of this page and the drift watch are in neither. Until speeds "
    "are measured it is of this one run, without a warm-up.",
    "vs one token a step": "Seconds of the plainest decoding, one token a step without a cache, over this "
    "run's. It includes what parallel decoding gains.",
    "vs no cache": "Seconds of the same commit rule without a cache over this run's: what caching alone "
    "gains.",
    "decision overhead": "Share of the decoding time that the policy spends on deciding what to recompute. "
    "The entropies come with the softmax that every commit rule needs and count as decoding, without a cache "
    "too; attention that a policy has to look at (d2Cache, Elastic-Cache, Sparse-dLLM) slows the forward "
    "pass and counts as that.",
    "agreement": "Share of tokens equal to those of the run without a cache, or of the first run where none "
    "is without one, up to the later end-of-text.",
}


def cards(record: RunRecord, example: bool = False, still: bool = False) -> dict[str, Any]:
    """The cards panel's value for what is known of a run by now; still: nothing more can be measured."""
    lanes = []
    reference = reference_trace(record)
    for index, lane in enumerate(record.lanes):
        if lane.trace is None or not lane.trace.steps:
            continue
        still = still or example or not record.same_job
        numbers = _numbers(record, index, lane.trace, None if still else "measure")
        # Of the reference it would be its agreement with itself.
        if len(record.lanes) > 1 and record.same_prompt and lane.trace is not reference:
            share = _agreement(lane.trace, reference)
            numbers.append(_number("agreement", share, "%", note=_whom(record, reference) if share else None))
        lanes.append({"label": lane.label, "verdict": VERDICTS[lane.solved], "numbers": numbers})
    return {"lanes": lanes, "about": about(record, example)}


def reference_trace(record: RunRecord) -> Trace | None:
    """What the other lanes' tokens are compared with: the lane without a cache, else the first."""
    traces = record.traces
    return next((trace for trace in traces if trace.policy["name"] == "none"), traces[0] if traces else None)


def _whom(record: RunRecord, reference: Trace | None) -> str:
    """Whom the agreement is with, by letter and policy."""
    index = next(index for index, lane in enumerate(record.lanes) if lane.trace is reference)
    return f"with {LETTERS[index]}, {record.lanes[index].spec.name}"


def about(record: RunRecord, example: bool = False) -> str:
    """What the figures are of, in one line."""
    if not record.traces:
        return ""
    lengths = _each(record, lambda trace: f"{len(trace.prompt_ids)} + {trace.gen_length}")
    parts = [
        "recorded example" if example else _whence(record),
        _each(record, lambda trace: model_text(trace.model)),
        f"{'prompt' if record.same_prompt else 'different prompts,'} {lengths} tokens, "
        f"batch {_each(record, lambda trace: str(trace.batch_size))}",
        _each(record, lambda trace: rule_text(trace.generation, trace.policy)),
    ]
    if record.speeds:
        runs = record.speeds.repeats
        many = f"speeds: median and range of {runs} rounds after a warm-up"
        parts.append(many if runs > 1 else "speeds: one run each")
    return " · ".join(parts)


def _whence(record: RunRecord) -> str:
    """How many runs there are, and which of them came from a file."""
    text = "one run each" if len(record.lanes) > 1 else "one run"
    opened = [letter for letter, lane in zip(LETTERS, record.lanes, strict=False) if lane.from_file]
    whose = "" if len(opened) == len(record.lanes) else " and ".join(opened) + " "
    return f"{text}, {whose}opened from a file" if opened else text


def _each(record: RunRecord, text: Callable[[Trace], str]) -> str:
    """What is said of the lanes' traces, once where it is the same of all."""
    return " and ".join(dict.fromkeys(map(text, record.traces)))


def model_text(facts: Mapping[str, Any]) -> str:
    """The model by name, with its dtype and device, and the threads where its trace tells them."""
    threads = f", {counted(facts['num_threads'], 'thread')}" if "num_threads" in facts else ""
    return f"model {model_name(facts['ref'])}, {facts['dtype']} on {facts['device']}{threads}"


def model_name(ref: str) -> str:
    """A model as one speaks of it: of a local folder, only its own name."""
    return PurePath(ref).name if ref.startswith(("/", ".", "~")) else ref


def rule_text(settings: Mapping[str, Any], policy: Mapping[str, Any] | None = None) -> str:
    """How it was decoded: blocks, rule and choice of tokens, and whatever else is not at its default.

    policy: a trace's, which may leave the rule less to choose from.
    """
    rule, temperature = str(settings.get("unmask")), settings.get("temperature") or 0
    read = [name for name, rules in READ_BY.items() if rule in rules]
    said = {"gen_length", "block_length", "unmask", "temperature", *read}
    said |= {"seed"} if temperature else set()
    if rule == "threshold":
        told = f"confidence ≥ {settings.get('threshold')}"
    elif rule == "quota":
        told = f"{settings.get('steps') or settings.get('gen_length')} scheduled steps"
    else:
        told = " ".join([rule, *setting_texts({name: settings.get(name) for name in read})])
    told = f"commits by {told}" if policy is None else _commits_text(told, policy)
    usual = GenerationConfig().to_dict()
    others = {name: settings.get(name, usual[name]) for name in sorted(usual.keys() - said)}
    others = {name: value for name, value in others.items() if value != usual[name]}
    return ", ".join(
        [
            f"blocks of {settings.get('block_length')}",
            told,
            f"temperature {temperature:g}, seed {settings.get('seed')}" if temperature else "greedy",
            *setting_texts(others),
        ]
    )


def _commits_text(rule: str, policy: Mapping[str, Any]) -> str:
    """What a step commits under a policy: one that decodes in an order of its own names the candidates."""
    order = own_order(policy["name"], policy["config"])
    if not order:
        return f"commits by {rule}"
    # Every rule commits one at least, so that of one candidate it has nothing to say.
    return order if policy["config"]["tokens"] == 1 else f"{order}, of these by {rule}"


def _numbers(record: RunRecord, index: int, trace: Trace, action: str | None) -> list[dict[str, Any]]:
    totals = trace.totals
    ratio, speed, overhead = (
        totals[name] for name in ("recompute_ratio", "tokens_per_second", "decision_overhead")
    )
    steps, full = totals["steps"], totals["full_steps"]
    per_step = totals["tokens_per_step"]
    gains: tuple[tuple[float, ...], ...] = ((), ())
    if record.speeds and index < len(record.speeds.lanes):
        seconds = record.speeds.lanes[index]
        speed = trace.num_useful_tokens / seconds
        gains = record.speeds.gains(index)
    return [
        _number("recompute ratio", None if ratio is None else f"{100 * ratio:.1f}", "%"),
        _number(
            "steps", str(steps), note=f"{full} full · {per_step:.1f} commits a step" if per_step else None
        ),
        _number("tokens/s", None if speed is None else f"{speed:.0f}"),
        *(
            _number(name, _times(median(found)) if found else None, "×", action=action) | _range(found)
            for name, found in zip(("vs one token a step", "vs no cache"), gains, strict=True)
        ),
        _number("decision overhead", None if overhead is None else f"{100 * overhead:.1f}", "%"),
    ]


def _number(
    label: str, value: str | None, unit: str = "", note: str | None = None, action: str | None = None
) -> dict[str, Any]:
    return {"label": label, "value": value, "unit": unit, "note": note, "action": action, "help": HELP[label]}


def _times(gain: float) -> str:
    return f"{gain:.2f}" if gain < 10 else f"{gain:.1f}"


def _range(gains: Sequence[float]) -> dict[str, Any]:
    """The least and the most of several rounds; of one there is no range."""
    if len(gains) < 2:
        return {}
    least, most = _times(min(gains)), _times(max(gains))
    return {"range": [least, most], "note": f"{least} to {most}"}


def _agreement(trace: Trace, reference: Trace | None) -> str | None:
    if reference is None or not trace.complete or not reference.complete:
        return None
    share = agreement(trace.tokens, reference.tokens, trace.model["eos_token_ids"])
    return f"{100 * share:.1f}"
