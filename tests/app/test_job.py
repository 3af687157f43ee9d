"""Jobs: whatever the page's forms hold is either a checked job or one clear sentence."""

import json

import pytest

from app.forms import defaults
from app.job import OBSERVE, Job
from core import POLICIES, GenerationConfig

FIRST = next(iter(OBSERVE))


def read(**changes: object) -> Job:
    entries = {
        "prompt": "sort 3 1 2",
        "policy": json.dumps({"policy": "entropy", "config": defaults(POLICIES["entropy"].Config)}),
        "lanes": "[]",
        "generation": json.dumps(defaults(GenerationConfig)),
        "observe": FIRST,
    }
    return Job.read(**{**entries, **changes})


def generation(**changes: object) -> str:
    return json.dumps({**defaults(GenerationConfig), **changes})


def policy(name: str, **config: object) -> str:
    return json.dumps({"policy": name, "config": config})


def test_forms_become_a_job() -> None:
    job = read(lanes=json.dumps([{"policy": "none", "config": {}}]))
    assert job.prompt == "sort 3 1 2"
    assert [lane.name for lane in job.lanes] == ["entropy", "none"]
    assert job.generation == GenerationConfig()
    assert job.observe == "one"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompt": "  "}, "prompt is empty"),
        ({"prompt": "x" * 30_000}, "prompt has 30000 characters"),
        (
            {"generation": generation(gen_length="100")},
            "block_length is 32; allowed: a divisor of",
        ),
        ({"generation": generation(threshold="high")}, "threshold is 'high'"),
        ({"generation": generation(surprise="1")}, "generation has no setting 'surprise'"),
        ({"generation": "{"}, "generation is not JSON"),
        ({"policy": policy("entropy", entropy_threshold="abc")}, "entropy_threshold is 'abc'"),
        ({"policy": policy("entropy", entropy_threshold="")}, "entropy_threshold is ''"),
        ({"policy": policy("magic")}, "policy is 'magic'; allowed: none, prefix"),
        ({"policy": policy("entropy", taw="1")}, "no setting 'taw'"),
        ({"policy": "[]"}, "policy is"),
        ({"lanes": json.dumps([{"policy": "none"}] * 4)}, "up to 3 more policies"),
        ({"observe": "never"}, "observe is 'never'"),
    ],
)
def test_wrong_entry_is_one_clear_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(**changes)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
