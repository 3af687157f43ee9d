"""Links: a job survives its own URL, whatever is in it; bad values are one sentence."""

import json
import math
from urllib.parse import parse_qsl

import pytest

from app import links
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


def test_a_link_means_the_same_when_a_default_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value that decides the run is in it: of the decoding, of every lane, and of what is watched."""
    lanes = tuple(LaneSpec(name, ()) for name in POLICIES)
    query = dict(parse_qsl(query_of(Job("x", lanes[:1], GenerationConfig()))))
    assert set(query) == {"prompt", "policy", "observe", "model", *GenerationConfig().to_dict()}
    written = {lane.name: query_of(Job("x", (lane,), GenerationConfig())) for lane in lanes}
    decoding, configs = GenerationConfig(), {lane.name: lane.policy().config for lane in lanes}
    # Nothing is filled in from this program's own defaults.
    monkeypatch.setattr(links, "defaults", lambda config: {})
    for name, link in written.items():
        forms = forms_of(dict(parse_qsl(link)), "unused")
        assert set(json.loads(forms.settings)["config"]) == set(configs[name].to_dict())
        assert set(json.loads(forms.generation)) == set(decoding.to_dict())


def test_link_of_four_policies_is_no_longer_than_a_messenger_takes() -> None:
    lanes = tuple(LaneSpec(name, ()) for name in ("entropy", "elastic", "d2cache", "dkv"))
    assert len(query_of(Job("x", lanes, GenerationConfig()))) < 1500


@pytest.mark.parametrize(
    ("query", "tau", "gen_length"),
    [
        ("prompt=x&policy=entropy", "1", "128"),
        ("prompt=x&policy=entropy%3Aentropy_threshold%3D0.25&with=none%7Cdual&gen_length=64", "0.25", "64"),
    ],
)
def test_link_of_before_still_opens(query: str, tau: str, gen_length: str) -> None:
    """They left out what was at its default, and wrote every sign as a code."""
    forms = forms_of(dict(parse_qsl(query)), "unused")
    assert json.loads(forms.settings)["config"]["entropy_threshold"] == tau
    assert json.loads(forms.generation)["gen_length"] == gen_length
    assert (forms.observe, model_of(dict(parse_qsl(query)))) == ("one token a step", "embedded")


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
