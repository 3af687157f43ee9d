"""End-of-text `allow`, `last` and `never` under every unmask rule, and what sampling draws from."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from core import GenerationConfig, LanguageModel, create_policy
from core.end_of_text import end_of_text
from core.sampling import GumbelNoise, Proposal, propose
from core.state import DecodeState
from core.unmask import UNMASK_RULES
from tests.invariants.runs import RULES, Run, config, decode
from tests.tiny import PROMPTS, VOCAB

MASK, EOS = 4, 1
HEATS = ["greedy", "sampled"]


def proposal(rows: list[list[float]], **settings: object) -> tuple[Proposal, DecodeState, GenerationConfig]:
    """Targets with the given probabilities of the tokens 0 to 4, one block of 8 behind a prompt of 2."""
    generation = GenerationConfig(gen_length=8, block_length=8, **settings)  # type: ignore[arg-type]
    state = DecodeState.empty(1, 2, 8, 8, False, 0, torch.device("cpu"))
    state.admit(0, [3, 3], MASK, 0)
    positions = torch.arange(2, 2 + len(rows))[None]
    logits = torch.tensor([rows]).log().clamp(min=-1e4)
    valid = torch.ones_like(positions, dtype=torch.bool)
    return propose(logits, positions, valid, generation, MASK, (EOS,)), state, generation


def committed(rule: str, rows: list[list[float]], **settings: object) -> list[int]:
    given, state, generation = proposal(rows, unmask=rule, **settings)
    return UNMASK_RULES[rule](generation).select(given, state)[0].nonzero().flatten().tolist()


ENDS = [0.04, 0.9, 0.02, 0.02, 0.02]
WORD = [0.1, 0.1, 0.6, 0.1, 0.1]
LOOSE = {"threshold": 0.5, "factor": 9.0, "entropy_bound": 9.0}


@pytest.mark.parametrize("rule", UNMASK_RULES)
def test_a_waiting_end_of_text_is_passed_over_for_a_less_certain_word(rule: str) -> None:
    assert committed(rule, [ENDS, WORD], eos="allow")[0] == 0
    assert committed(rule, [ENDS, WORD], eos="last") == [1]


@pytest.mark.parametrize("rule", UNMASK_RULES)
def test_where_only_end_of_text_is_left_the_rule_applies_as_ever(rule: str) -> None:
    settings = LOOSE | ({"steps": 4} if rule in ("quota", "klass") else {})
    rows = [ENDS, ENDS, ENDS]
    assert committed(rule, rows, eos="last", **settings) == committed(rule, rows, eos="allow", **settings)
    assert committed(rule, rows, eos="last", **settings)[:2] == [0, 1]


@pytest.mark.parametrize("rule", ["threshold", "factor", "entropy-bound"])
def test_all_words_go_before_any_end_of_text(rule: str) -> None:
    assert committed(rule, [ENDS, WORD, ENDS, WORD], eos="last", **LOOSE) == [1, 3]


def test_quota_fills_up_with_end_of_text_as_llada_does() -> None:
    assert committed("quota", [ENDS, WORD, ENDS], eos="last", steps=4) == [0, 1]


@pytest.mark.parametrize("rule", UNMASK_RULES)
def test_never_takes_the_next_best_token_at_its_own_confidence(rule: str) -> None:
    given, state, generation = proposal([ENDS, WORD], unmask=rule, eos="never")
    assert given.token.tolist() == [[0, 2]]
    assert given.confidence[0, 0].item() == pytest.approx(0.04, abs=1e-6)
    assert UNMASK_RULES[rule](generation).select(given, state)[0].tolist() == [False, True]


# On real runs, with tokens that a tiny model writes often as the ends of a text.


@pytest.fixture
def model(models: dict[str, LanguageModel]) -> LanguageModel:
    """One family: what a rule does with end-of-text ignores how logits came about."""
    return models["llada"]


def ending(model: LanguageModel, rule: str, heat: str, eos_rule: str) -> tuple[set[int], list[Run]]:
    """The six commonest tokens, and runs in which they end a text."""
    plain = decode(model, PROMPTS, config(rule, heat), create_policy("none"))
    counts = np.bincount([token for run in plain for token in run.tokens])
    ends = tuple(int(token) for token in np.argsort(-counts)[:6])
    other = replace(model, spec=replace(model.spec, eos_token_ids=ends))
    done = decode(other, PROMPTS, config(rule, heat, eos=eos_rule), create_policy("dual"))
    return set(ends), done


@pytest.mark.parametrize("heat", HEATS)
@pytest.mark.parametrize("rule", RULES)
def test_never_writes_no_end_of_text(model: LanguageModel, rule: str, heat: str) -> None:
    ends, done = ending(model, rule, heat, "never")
    assert not any(ends & set(run.tokens) for run in done)


@pytest.mark.parametrize("heat", HEATS)
@pytest.mark.parametrize("rule", ["one a step", "threshold", "factor", "entropy-bound"])
def test_last_commits_end_of_text_only_where_nothing_else_is_proposed(
    model: LanguageModel, rule: str, heat: str
) -> None:
    ends, done = ending(model, rule, heat, "last")
    ended = 0
    for run in done:
        for step in run.steps:
            if ends & set(step.tokens[step.committed].tolist()):
                assert set(step.tokens[step.targets].tolist()) <= ends
                ended += 1
    assert ended


# Sampling.


def truncated(p: list[float], temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
    """The distribution sampled from, in plain Python: mask token out, tempered, top-k, then top-p."""
    weights = {i: q ** (1 / temperature) for i, q in enumerate(p) if i != MASK}
    order = sorted(weights, key=lambda i: -weights[i])[: top_k or len(weights)]
    total, kept, before = sum(weights[i] for i in order), [], 0.0
    for i in order:
        if top_p is None or before < top_p:
            kept.append(i)
        before += weights[i] / total
    norm = sum(weights[i] for i in kept)
    return [weights[i] / norm if i in kept else 0.0 for i in range(len(p))]


def draw(p: list[float], draws: int, **settings: object) -> Tensor:
    """Frequencies of the sampled tokens over `draws` rows of the engine's own noise."""
    source = GumbelNoise(1, torch.device("cpu"))
    source.reset(0, 7)
    places = torch.arange(draws)[None]
    gumbel = source.draw(torch.ones(1, draws, dtype=torch.bool), places, draws, len(p))
    logits = torch.tensor(p).log().expand(1, draws, len(p))
    generation = GenerationConfig(**settings)  # type: ignore[arg-type]
    valid = torch.ones_like(places, dtype=torch.bool)
    tokens = propose(logits, places, valid, generation, MASK, (EOS,), gumbel).token
    return tokens.flatten().bincount(minlength=len(p)) / draws


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("top_k", [None, 1, 3, 100])
@pytest.mark.parametrize("top_p", [None, 0.3, 0.75, 1.0])
def test_sampled_frequencies_are_those_of_the_truncated_distribution(
    temperature: float, top_k: int | None, top_p: float | None
) -> None:
    p, draws = [0.06, 0.31, 0.22, 0.1, 0.2, 0.11], 20000
    seen = draw(p, draws, temperature=temperature, top_k=top_k, top_p=top_p)
    wanted = torch.tensor(truncated(p, temperature, top_k, top_p))
    # Five standard deviations of a frequency over 20000 draws.
    assert (seen - wanted).abs().max() < 5 * (0.25 / draws) ** 0.5
    assert ((seen > 0) <= (wanted > 0)).all()


def test_top_k_of_one_is_greedy(model: LanguageModel) -> None:
    greedy = decode(model, PROMPTS, config("threshold"), create_policy("none"))
    sampled = config("threshold", "sampled", top_k=1)
    assert [run.tokens for run in decode(model, PROMPTS, sampled, create_policy("none"))] == [
        run.tokens for run in greedy
    ]


@pytest.mark.parametrize("settings", [{"top_p": 0.8}, {"top_k": 5}, {"top_k": 20, "top_p": 0.9}], ids=str)
def test_truncated_sampling_repeats_with_its_seed_in_any_batch(model: LanguageModel, settings: dict) -> None:
    tokens = []
    for seed in (5, 6):
        generation = config("threshold", "sampled", seed=seed, **settings)
        together = decode(model, PROMPTS, generation, create_policy("entropy"), slots=2)
        for prompt, run in zip(PROMPTS, together, strict=True):
            alone = decode(model, [prompt], generation, create_policy("entropy"))[0]
            assert (run.tokens, run.committed) == (alone.tokens, alone.committed)
        tokens.append([run.tokens for run in together])
    assert tokens[0] != tokens[1]
    assert all(0 <= token < VOCAB for run in tokens[0] for token in run)


def test_a_text_ends_before_its_first_end_of_text() -> None:
    for tokens, ends, index in (
        ((5, 1, 6, 1), (1,), 1), ((5, 6, 2), [1, 2], 2), ((1,), {1}, 0), ((5, 6), (1,), 2), ((), (1,), 0),
    ):  # fmt: skip
        assert end_of_text(tokens, ends) == index
