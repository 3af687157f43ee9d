"""Unmask rules on hand-made proposals, ties and surplus entries included."""

import math

import pytest
import torch

from core import GenerationConfig
from core.config import READ_BY
from core.sampling import Proposal, propose
from core.state import DecodeState
from core.unmask import UNMASK_RULES


def proposal(
    confidence: list[float],
    entropy: list[float] | None = None,
    deferred: list[int] = (),  # type: ignore[assignment]
    surplus: int = 0,
    probabilities: list[list[float]] | None = None,
) -> Proposal:
    """One sequence's targets at canvas positions 2, 3, ...; `surplus` entries pad the row."""
    count = len(confidence)
    total, length = count + surplus, 2 + 8
    positions = torch.full((1, total), length)
    positions[0, :count] = torch.arange(2, 2 + count)
    valid = positions < length
    late = torch.zeros(1, total, dtype=torch.bool)
    late[0, list(deferred)] = True
    # Surplus rows hold whatever the last real row held, here the most tempting values.
    value = torch.tensor([confidence + [1.0] * surplus])
    nats = torch.tensor([(entropy or [0.0] * count) + [0.0] * surplus])
    score = torch.where(late, value - 2, value).masked_fill(~valid, -math.inf)
    p = torch.tensor([probabilities]) if probabilities else torch.full((1, total, 3), 1 / 3)
    return Proposal(positions, valid, torch.zeros_like(positions), value, nats, score, late, p.log())


def state(block_length: int = 8, gen_length: int = 8) -> DecodeState:
    canvas = DecodeState.empty(1, 2, gen_length, block_length, False, 0, torch.device("cpu"))
    canvas.admit(0, [3, 4], 9, 0)
    return canvas


def chosen(rule: str, given: Proposal, at: DecodeState | None = None, **settings: object) -> list[int]:
    config = GenerationConfig(unmask=rule, **({"gen_length": 8, "block_length": 8} | settings))
    picked = UNMASK_RULES[rule](config).select(given, at or state()) & given.valid
    return picked[0].nonzero().flatten().tolist()


class Watched(GenerationConfig):
    """A config that keeps the names that are looked up in it."""

    def __getattribute__(self, name: str) -> object:
        vars(Watched).get("seen", set()).add(name)
        return super().__getattribute__(name)


def looked_up(monkeypatch: pytest.MonkeyPatch, config: Watched) -> set[str]:
    seen: set[str] = set()
    monkeypatch.setattr(Watched, "seen", seen, raising=False)
    return seen


@pytest.mark.parametrize("rule", UNMASK_RULES)
def test_a_rule_reads_the_settings_that_are_said_to_be_its_own(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Watched(gen_length=8, block_length=8, unmask=rule)
    unread = set(config.unread)
    seen = looked_up(monkeypatch, config)
    choose = UNMASK_RULES[rule](config)
    for _ in range(4):
        choose.select(proposal([0.5, 0.95, 0.2], surplus=1), state())
    assert seen & READ_BY.keys() == READ_BY.keys() - unread


@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_top_k_and_top_p_are_read_where_tokens_are_drawn(
    temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Watched(temperature=temperature, top_k=2, top_p=0.5)
    unread = {"top_k", "top_p"} & config.unread.keys()
    seen = looked_up(monkeypatch, config)
    logits, positions = torch.zeros(1, 2, 5), torch.tensor([[2, 3]])
    drawn = torch.zeros_like(logits) if temperature else None
    propose(logits, positions, positions > 0, config, mask_token_id=4, eos_token_ids=(1,), gumbel=drawn)
    assert seen & {"top_k", "top_p"} == {"top_k", "top_p"} - unread


def test_threshold_takes_all_at_or_above_it() -> None:
    assert chosen("threshold", proposal([0.5, 0.75, 0.25, 0.875], surplus=2), threshold=0.5) == [0, 1, 3]


def test_threshold_takes_the_best_one_where_none_passes() -> None:
    assert chosen("threshold", proposal([0.1, 0.3, 0.2], surplus=1), threshold=0.9) == [1]


@pytest.mark.parametrize("rule", UNMASK_RULES)
def test_a_tie_goes_to_the_earlier_position(rule: str) -> None:
    tied = proposal([0.1, 0.25, 0.25, 0.25], entropy=[2.0, 1.0, 1.0, 1.0], surplus=3)
    assert chosen(rule, tied, threshold=0.9) == [1]


@pytest.mark.parametrize("rule", UNMASK_RULES)
def test_every_rule_commits_the_best_of_one_target(rule: str) -> None:
    assert chosen(rule, proposal([0.01], entropy=[3.0], surplus=4), threshold=0.9) == [0]


def test_quota_follows_llada_s_schedule() -> None:
    canvas = state()
    sizes = []
    for step in range(3):
        canvas.block_step[0] = step
        sizes.append(len(chosen("quota", proposal([0.1 * i for i in range(8)]), canvas, steps=3)))
    assert sizes == [3, 3, 2]


def test_quota_takes_the_most_confident() -> None:
    assert chosen("quota", proposal([0.2, 0.9, 0.1, 0.9, 0.5], surplus=1), steps=4) == [1, 3]


def test_quota_counts_steps_from_the_block_s_beginning() -> None:
    canvas = state(block_length=4)
    canvas.step[0], canvas.block_step[0] = 5, 0
    settings = {"block_length": 4, "steps": 6}
    assert len(chosen("quota", proposal([0.1, 0.2, 0.3, 0.4]), canvas, **settings)) == 2
    canvas.block_step[0] = 1
    assert len(chosen("quota", proposal([0.1, 0.2]), canvas, **settings)) == 1


def test_factor_takes_the_longest_prefix_that_holds() -> None:
    # (n + 1)(1 - c_n) for n = 1, 2, 3: 0.2, 0.6, 1.6.
    given = proposal([0.6, 0.9, 0.8], surplus=1)
    assert chosen("factor", given, factor=1.0) == [1, 2]
    assert chosen("factor", given, factor=0.5) == [1]
    assert chosen("factor", given, factor=0.1) == [1]
    assert chosen("factor", given, factor=1.7) == [0, 1, 2]


def test_entropy_bound_takes_the_longest_prefix_that_holds() -> None:
    # In order of confidence the entropies are 0.1, 0.3, 0.2, 1.0: excess 0, 0.1, 0.3, 0.6.
    given = proposal([0.4, 0.9, 0.2, 0.8], entropy=[0.2, 0.1, 1.0, 0.3], surplus=2)
    assert chosen("entropy-bound", given, entropy_bound=0.0) == [1]
    assert chosen("entropy-bound", given, entropy_bound=0.15) == [1, 3]
    assert chosen("entropy-bound", given, entropy_bound=0.35) == [0, 1, 3]
    assert chosen("entropy-bound", given, entropy_bound=0.65) == [0, 1, 2, 3]


@pytest.mark.parametrize("rule", ["threshold", "quota", "factor", "entropy-bound"])
def test_a_deferred_token_waits_for_all_others(rule: str) -> None:
    settings = {"threshold": 0.5, "factor": 5.0, "entropy_bound": 5.0, "steps": 4}
    assert 0 not in chosen(rule, proposal([0.99, 0.6, 0.7], deferred=[0]), **settings)
    assert chosen(rule, proposal([0.9, 0.8], deferred=[0, 1]), **(settings | {"steps": 8})) == [0]


def test_klass_waits_until_a_row_is_stable() -> None:
    config = GenerationConfig(
        gen_length=8, block_length=8, unmask="klass", threshold=0.6, kl_threshold=0.01, kl_history=2
    )
    rule, canvas = UNMASK_RULES["klass"](config), state()
    steady, sure = [0.7, 0.2, 0.1], [0.9, 0.05, 0.05]
    moving = ([0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8])
    picks = []
    for step in range(3):
        given = proposal([0.7, 0.9, 0.8], probabilities=[steady, sure, moving[step]])
        picks.append(rule.select(given, canvas)[0].tolist())
    # No history, then one comparison: the schedule's single best. Two: the two stable rows.
    assert picks == [[False, True, False], [False, True, False], [True, True, False]]


def test_klass_forgets_a_slot_that_is_admitted_again() -> None:
    config = GenerationConfig(
        gen_length=8, block_length=8, unmask="klass", threshold=0.6, kl_threshold=0.01, kl_history=2
    )
    rule, canvas = UNMASK_RULES["klass"](config), state()
    given = proposal([0.7, 0.9], probabilities=[[0.7, 0.2, 0.1], [0.9, 0.05, 0.05]])
    for _ in range(2):
        rule.select(given, canvas)
    rule.reset(torch.tensor([True]))
    assert rule.select(given, canvas)[0].tolist() == [False, True]
