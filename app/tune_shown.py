"""What a search for tau and k has found: two figures and a table, each with what its numbers are of."""

import pandas as pd

from analysis.confirmation import SLOW_PROMPTS
from analysis.plots import pareto_figure, sweep_map_figure
from analysis.prompts import distinct
from analysis.surface import surface
from analysis.tuning import Candidate, Tuning
from analysis.wording import counted
from app.cards import model_text, rule_text
from app.figures import plot_value, variant
from app.tune import TAU, K, TuneJob, name_of, told_of
from app.tune_readings import FRONT, TUNE_MAP
from core import LanguageModel


def tuning_about(job: TuneJob, model: LanguageModel | None) -> str:
    """What a search's figures are of; model: None where it is no longer there to be asked."""
    told = f"model {job.model}" if model is None else model_text(model.facts())
    lengths = "" if model is None else _lengths([len(model.encode(one.content)) for one in job.prompts])
    alone = len(distinct(job.prompts))
    alike = "" if alone == len(job.prompts) else f", {alone} of different content"
    timed = job.goal.objective == "seconds"
    again = ", more of the choice to confirm it" if timed else ""
    beside = f"the choice also beside one token a step, on up to {SLOW_PROMPTS} prompts"
    slow = beside if timed else "one token a step is not measured here"
    return (
        f"{told} · {counted(len(job.prompts), 'prompt')}{lengths}{alike}, one run of each "
        f"setting on each{again}, batch 1 · "
        f"{job.base.gen_length} tokens in {rule_text(job.base.to_dict())} · policy entropy, all but τ and k "
        f"at their defaults · {job.goal.objective} and {job.goal.keep} against the same commit rule without "
        f"a cache; {slow}"
    )


def _lengths(lengths: list[int]) -> str:
    shortest, longest = min(lengths), max(lengths)
    return (
        f" of {counted(longest, 'token')}" if shortest == longest else f" of {shortest} to {longest} tokens"
    )


def map_value(job: TuneJob, result: Tuning, about: str) -> str:
    """Cost and loss over tau and k, as a plot panel's value."""
    # A plane needs two values of each among those that have been measured.
    plane = all(len({c.setting.config.get(name) for c in result.candidates}) > 1 for name in (TAU, K))
    if not plane:
        empty = "a map needs two values of τ and two of k that were measured"
        return plot_value(TUNE_MAP, about, 0, empty=empty)
    goal = job.goal
    figure = sweep_map_figure(surface(result.told), goal.keep, goal.objective, len(job.prompts), goal.budget)
    return plot_value(TUNE_MAP, about, int(figure.layout.height), [variant(figure, "", told_of(job, result))])


def front_value(job: TuneJob, result: Tuning, about: str) -> str:
    """Cost against loss, as a plot panel's value."""
    figure = pareto_figure(result, num_prompts=len(job.prompts))
    variants = [variant(figure)] if result.candidates else []
    return plot_value(FRONT, about, 340 if variants else 0, variants, empty="nothing measured yet")


def table_of(job: TuneJob, result: Tuning) -> pd.DataFrame:
    """The choice, then settings of every prompt, then of fewer; figures with their range and of how many."""
    most = len(job.prompts)
    return pd.DataFrame(
        [
            {
                "setting": name_of(found.setting).removeprefix("entropy · ") + _standing(result, found, most),
                f"{job.goal.objective} on its prompts, % of no cache": _in_percent(
                    found.cost, found.low, found.high
                ),
                f"{job.goal.keep} lost, %": _lost(found, most),
                "prompts": f"{found.prompts} of {most}",
            }
            for found in result.listed(most)
        ]
    )


def table_label(result: Tuning) -> str:
    """The order of the table's rows, and what stands in its brackets."""
    first = "" if result.best is None else "the chosen one first, then "
    text = (
        f"Settings of EntropyCache: {first}those of every prompt by cost, then those of fewer, whose costs "
        "are of those prompts alone. In brackets the least and the most on one prompt"
    )
    if result.confirmed is None:
        return text
    pairs = counted(result.confirmed.pairs, "pair")
    return f"{text}; of the chosen one the 95 % interval, from {pairs} of runs measured again"


def _in_percent(share: float, low: float | None, high: float | None) -> str:
    spread = "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return f"{100 * share:.1f}{spread}"


def _lost(found: Candidate, num_prompts: int) -> str:
    """The loss, or the least that it can come to, and the most on one prompt."""
    worst = "" if found.worst is None else f" (up to {100 * found.worst:.1f})"
    return f"{found.least(num_prompts)}{100 * max(found.loss, 0.0):.1f}{worst}"


def use_label(result: Tuning | None) -> str:
    """What the button that takes the choice over says: not that it saves where nothing was saved."""
    over = result is not None and result.best is not None and not _is_open(result)
    return "Use this setting anyway" if result and over and not result.saves else "Use the best setting"


def _is_open(result: Tuning) -> bool:
    """Whether seconds still have to be confirmed before anything is known to be saved."""
    return result.goal.objective == "seconds" and result.confirmed is None


def _standing(result: Tuning, found: Candidate, num_prompts: int) -> str:
    if result.is_best(found):
        if result.saves:
            return ", best"
        return ", best so far" if _is_open(result) else ", cheapest, but no measurable saving"
    if found.loss > result.goal.budget + 1e-9:
        return ", loses too much"
    if found.prompts < num_prompts:
        return ", on fewer prompts"
    return ", front" if result.is_on_front(found) else ""
