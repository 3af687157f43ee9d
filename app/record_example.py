"""python -m app.record_example: decode the page's recorded example anew with the embedded model."""

from analysis.observe import no_cache_trace, run_trace
from analysis.trace import Trace
from app.examples import FOLDER, write_example
from app.problems import Problems
from app.workshop import token_texts
from core import GenerationConfig, LanguageModel, create_policy, load_model

GENERATION = GenerationConfig()
LOOKED_AT = 20


def main() -> None:
    """Run EntropyCache, then no cache, on the problem that takes the most steps of the first ones solved."""
    model = load_model("embedded", device="cpu", dtype="float32")
    problems = Problems.load()
    prompts = problems.some(problems.families[0], LOOKED_AT)
    runs = [run_trace(model, prompt, GENERATION, create_policy("entropy")) for prompt in prompts]
    run = max((run for run in runs if solved(problems, run)), key=lambda run: len(run.steps))
    observation = no_cache_trace(model, str(run.prompt), GENERATION)
    write_example(FOLDER, again(model, run), observation, texts(model, run))


def solved(problems: Problems, run: Trace) -> bool:
    return bool(problems.is_solved(str(run.prompt), run.text))


def again(model: LanguageModel, run: Trace) -> Trace:
    """The same run in a process that has warmed up: its seconds are shown."""
    return run_trace(model, str(run.prompt), GENERATION, create_policy("entropy"))


def texts(model: LanguageModel, run: Trace) -> dict[int, str]:
    text = token_texts(model)
    return {token: text(token) for token in run.tokens}


if __name__ == "__main__":
    main()
