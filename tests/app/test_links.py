"""Links: a job survives its own URL, whatever is in it; bad values are one sentence."""

import math
from urllib.parse import parse_qsl

import pytest

from app.job import Job, LaneSpec
from app.links import forms_of, has_settings, model_of, query_of
from core import POLICIES, GenerationConfig


def back(job: Job) -> Job:
    forms = forms_of(dict(parse_qsl(query_of(job))), "unused")
    read = forms.prompt, forms.settings, forms.lanes, forms.generation, forms.observe
    return Job.read(*read, model_of(dict(parse_qsl(query_of(job)))))


def policies_of(job: Job) -> list:
    return [(lane.name, lane.policy().config) for lane in job.lanes]


JOBS = (
    Job("a & b = c?\n#%|", (LaneSpec("none", ()),), GenerationConfig()),
    Job(
        "tau",
        (LaneSpec("entropy", (("entropy_threshold", 0.123456789), ("recent", 7))), LaneSpec("dual", ())),
        GenerationConfig(gen_length=64, seed=123456789, temperature=0.7, stop_at_eos=True, top_k=3),
        "off",
    ),
    Job(
        "inf and none",
        tuple(LaneSpec("entropy", (("entropy_threshold", tau),)) for tau in (math.inf, -1.0)),
        GenerationConfig(unmask="quota", steps=64),
        "own",
    ),
    Job("model", (LaneSpec("dual", ()),), GenerationConfig(), model="~/my models/a & b"),
)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.prompt[:8])
def test_job_survives_its_own_link(job: Job) -> None:
    read = back(job)
    assert (read.prompt, read.generation, read.observe) == (job.prompt.strip(), job.generation, job.observe)
    assert policies_of(read) == policies_of(job)
    assert read.model == job.model


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_survives_a_link(name: str) -> None:
    config = POLICIES[name].Config().to_dict()
    job = Job("x", (LaneSpec(name, tuple(config.items())),), GenerationConfig())
    assert policies_of(back(job)) == policies_of(job)
    assert query_of(job) == f"prompt=x&policy={name}"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"policy": "magic"}, "policy is 'magic'"),
        ({"policy": "entropy:taw=1"}, "no setting 'taw'"),
        ({"policy": "entropy:recent=-1"}, "recent is -1"),
        ({"policy": "none", "with": "dual:gen_length=3"}, "policy dual has no setting 'gen_length'"),
        ({"policy": "none", "observe": "twice"}, "observe is 'twice'"),
    ],
)
def test_bad_link_is_one_sentence(query: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        forms_of(query, "prompt")


def test_foreign_parameters_are_no_settings() -> None:
    assert not has_settings({"__theme": "dark", "utm_source": "x"})
    assert has_settings({"__theme": "dark", "seed": "3"})
    assert has_settings({"model": "a/b"})
    assert model_of({"__theme": "dark", "model": " "}) == "embedded"
    assert forms_of({"seed": "3"}, "kept").prompt == "kept"
