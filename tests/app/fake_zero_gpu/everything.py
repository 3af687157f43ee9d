"""Everything the page does with a model, on a Space with ZeroGPU; prints what came of it as JSON."""

import json
import sys
from typing import Any

import spaces
import torch

from analysis.observe import run_trace
from analysis.prompts import Prompt
from analysis.tuning import Goal
from app.explain import measure_staleness
from app.job import Job, LaneSpec
from app.observe import observe
from app.perform import perform
from app.speeds import measure_speeds
from app.start import new_workshop
from app.tune import TuneJob, tune_in_turn
from core import GenerationConfig, create_policy

GENERATION = GenerationConfig(gen_length=32, block_length=16)
PROMPT, POLICIES, ME = "Tom has 3 apples.", ("entropy", "none"), "me"


def children() -> int:
    """How many processes were lent since the last call."""
    made = len(spaces.CHILDREN)
    spaces.CHILDREN.clear()
    return made


def everything() -> dict[str, Any]:
    torch.set_num_threads(1)  # what forks with a pool of threads hangs in the child
    workshop = new_workshop()
    model, turns = workshop.model(), workshop.turns
    told: dict[str, Any] = {"dtype": str(model.dtype)}
    told["packed"] = any("Packed" in type(part).__name__ for part in model.backbone.modules())
    lanes = tuple(LaneSpec(name, ()) for name in POLICIES)
    record = workshop.runs.new(Job(PROMPT, lanes, GENERATION))
    told["last"] = [moment.text for moment in perform(workshop, record, turns.join(ME))][-1]
    told["run"] = children()
    told["tokens"] = [trace.tokens for trace in record.traces]
    told["here"] = [run_trace(model, PROMPT, GENERATION, create_policy(name)).tokens for name in POLICIES]
    told["watched"] = record.observation is not None and len(record.observation.steps)
    list(measure_staleness(workshop, record, turns.join(ME)))
    told["stale"] = (children(), sorted(record.stale) == [0, 1])
    list(measure_speeds(workshop, record, turns.join(ME)))
    told["speeds"] = (children(), record.speeds is not None)
    job = TuneJob.read([Prompt(PROMPT, None)], "-1, inf", "4", Goal(), GENERATION, "embedded")
    *_, (text, _) = tune_in_turn(workshop, job, ME)
    told["tuned"] = (children(), text.startswith("done"))
    try:
        list(observe(workshop, "embedded", "word " * 3000, GENERATION, create_policy("none")))
    except ValueError as error:
        told["refused"] = str(error)
    traces = observe(workshop, "embedded", PROMPT, GENERATION, create_policy("none"))
    next(traces)
    del traces
    told["alive"] = [process.is_alive() for process in spaces.CHILDREN]
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(everything(), default=int) + "\n")
