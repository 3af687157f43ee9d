"""python -m app.record_example: decode the page's recorded example anew with the embedded model."""

from analysis import TraceRecorder
from analysis.observe import no_cache_trace
from app.examples import FOLDER, write_example
from app.problems import Problems
from app.workshop import token_texts
from core import GenerationConfig, create_policy, load_model, stream

GENERATION = GenerationConfig()


def main() -> None:
    """Run EntropyCache at its defaults and the no-cache observation on the first held-out problem."""
    model = load_model("embedded", device="cpu", dtype="float32")
    prompt = Problems.load().first()
    recorder = TraceRecorder()
    # The first run warms the process up; the second is kept.
    for _ in range(2):
        for event in stream(model, [prompt], GENERATION, create_policy("entropy")):
            recorder.observe(event)
    run, observation = recorder.trace(), no_cache_trace(model, prompt, GENERATION)
    text = token_texts(model)
    write_example(FOLDER, run, observation, {token: text(token) for token in run.tokens})


if __name__ == "__main__":
    main()
