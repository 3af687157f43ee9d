"""EntropyCache's rule: when it recomputes everything, and which positions otherwise."""

import math
import random

import pytest

from core import LanguageModel, create_policy
from tests.core.states import Story
from tests.invariants.runs import GEN, HEAT, Run, config, decode
from tests.tiny import FAMILIES, LAYERS, PROMPTS, SHIFT


def told(
    prompts: tuple[int, ...] = (3,), gen_length: int = 12, block_length: int = 6, **settings: object
) -> Story:
    return Story(create_policy("entropy", **settings), list(prompts), gen_length, block_length)


EVERYTHING = list(range(15))


def test_the_first_step_recomputes_everything() -> None:
    assert told(entropy_threshold=math.inf).refresh() == EVERYTHING


def test_a_token_above_tau_makes_the_next_step_full_and_only_that() -> None:
    story = told(entropy_threshold=1.0, recent=1)
    story.step({0: 0.2, 1: 1.25})
    assert story.refresh() == EVERYTHING
    assert story.reason() == "entropy above tau"
    story.step({2: 0.3})
    # Masks 3, 4, 5 of the block and the one token committed last; masks of the next block stay cached.
    assert story.refresh() == [5, 6, 7, 8]
    assert story.reason() == "reuse"


def test_entropy_equal_to_tau_reuses() -> None:
    story = told(entropy_threshold=1.0)
    story.step({0: 1.0})
    assert story.refresh() == [3, 4, 5, 6, 7, 8]


def test_only_committed_tokens_count() -> None:
    """The maximum is over this step's commits: an old uncertain token does not linger."""
    story = told(entropy_threshold=1.0)
    story.step({0: 5.0})
    story.step({1: 0.1})
    assert story.reason() == "reuse"


def test_a_step_that_commits_nothing_keeps_the_decision() -> None:
    story = told(entropy_threshold=1.0)
    story.step({0: 5.0})
    story.step({})
    assert story.refresh() == EVERYTHING


def test_a_refresh_at_block_starts_needs_blocks() -> None:
    policy = create_policy("entropy", refresh_on_block_start=True)
    policy.check_decoding(config())
    with pytest.raises(
        ValueError, match="refresh_on_block_start is True; allowed: false with window=sliding"
    ):
        policy.check_decoding(config(window="sliding"))


def test_a_partial_set_that_happens_to_be_everything_is_no_full_pass() -> None:
    """In a shifted model the row before the only block is the whole prompt: nothing is left out."""
    story = told(prompts=(0,), gen_length=6, entropy_threshold=math.inf, recent=2, max_partial_run=4)
    story.step({0: 0.1, 1: 0.1})
    assert story.refresh() == list(range(6))
    assert story.reason() == "reuse"
    story.step({2: 0.1})
    # Drawn from all tokens since the first step, the only full one.
    assert story.refresh() == [0, 2, 3, 4, 5]
    for position in (3, 4):
        story.step({position: 0.1})
    assert story.reason() == "reuse"
    story.step({5: 0.1})
    assert story.reason() == "partial run limit"


def test_ties_of_the_same_step_go_to_the_earlier_position() -> None:
    story = told(entropy_threshold=math.inf, recent=2)
    story.step({0: 0.1, 2: 0.1, 4: 0.1})
    story.step({1: 0.1})
    # Just committed: 1. One more of {0, 2, 4}, all of step 0: the earliest.
    assert story.refresh() == [3, 4, 6, 8]


def test_the_tokens_just_committed_are_never_dropped() -> None:
    for recent in (0, 1, 2):
        story = told(entropy_threshold=math.inf, recent=recent)
        story.step({0: 0.1, 1: 0.1, 3: 0.1})
        assert story.refresh() == [3, 4, 5, 6, 7, 8]
        story.step({2: 0.1})
        assert 5 in story.refresh()
        assert len(story.refresh()) == 2 + max(recent, 1)


def test_since_full_forgets_what_the_full_pass_refreshed() -> None:
    story = told(entropy_threshold=1.0, recent=64, scope="since_full")
    story.step({0: 0.1})
    story.step({1: 2.0})
    story.step({2: 0.1})
    # Steps 0 and 1 lie before the full pass of step 2; its own commit was still a mask inside it.
    assert story.refresh() == [5, 6, 7, 8]


def test_global_scope_reaches_back_over_full_passes_and_blocks() -> None:
    story = told(entropy_threshold=1.0, recent=64, scope="global")
    story.step({0: 0.1})
    story.step({1: 2.0})
    story.step({2: 0.1})
    assert story.refresh() == [3, 4, 5, 6, 7, 8]
    story.step({3: 0.1, 4: 0.1, 5: 0.1})
    assert story.refresh() == EVERYTHING[3:]


def test_recent_tokens_may_lie_in_an_earlier_block() -> None:
    story = told(entropy_threshold=math.inf, recent=2)
    story.step(dict.fromkeys(range(4), 0.1))
    story.step({4: 0.1, 5: 0.1})
    assert story.refresh() == [7, 8, 9, 10, 11, 12, 13, 14]
    story.step({6: 0.1})
    assert story.refresh() == [7, 9, 10, 11, 12, 13, 14]


def test_refresh_on_block_start_is_an_option() -> None:
    for option, expected in ((False, [3, 4, 5, 6, 7, 8, *range(9, 15)]), (True, EVERYTHING)):
        story = told(entropy_threshold=math.inf, refresh_on_block_start=option)
        story.step(dict.fromkeys(range(6), 0.1))
        assert story.refresh() == expected
    assert story.reason() == "block start"


def test_max_partial_run_forces_a_full_pass() -> None:
    story = told(entropy_threshold=math.inf, max_partial_run=2)
    kinds = []
    for position in range(7):
        kinds.append(story.refresh() == EVERYTHING)
        story.step({position: 0.1})
    assert kinds == [True, False, False, True, False, False, True]


def test_the_trigger_is_named_before_what_would_have_refreshed_anyway() -> None:
    story = told(entropy_threshold=1.0, refresh_on_block_start=True, max_partial_run=1)
    story.step({0: 0.1})
    story.step(dict.fromkeys(range(1, 6), 2.0))
    assert story.reason() == "entropy above tau"
    story = told(entropy_threshold=1.0, refresh_on_block_start=True, max_partial_run=1)
    story.step({0: 0.1})
    story.step(dict.fromkeys(range(1, 6), 0.1))
    assert story.reason() == "block start"


def test_each_sequence_of_a_batch_decides_for_itself() -> None:
    story = told(prompts=(3, 1), entropy_threshold=1.0)
    story.step({0: 3.0}, {0: 0.1})
    assert story.refresh(0) == EVERYTHING
    assert story.refresh(1) == [3, 4, 5, 6, 7, 8]
    story.step({1: 0.1}, {1: 3.0})
    assert story.refresh(0) == [4, 5, 6, 7, 8]
    # Padding of the shorter prompt is never part of it.
    assert story.refresh(1) == list(range(2, 15))


def test_asking_twice_gives_the_same_plan() -> None:
    story = told(entropy_threshold=1.0, recent=2, max_partial_run=2)
    for commits in ({0: 0.1}, {1: 2.0}, {2: 0.1}, {3: 0.1}):
        story.step(commits)
        assert story.refresh() == story.refresh()


def expected_rows(
    history: list[set[int]], fulls: list[int], window: set[int], recent: int, scope: str
) -> set[int]:
    """The partial set in plain Python: window masks and the `recent` latest commits, ties to the left."""
    since = fulls[-1] if scope == "since_full" else 0
    ranked = [(-step, at) for step, chosen in enumerate(history) if step >= since for at in chosen]
    latest = {at for _, at in sorted(ranked)[:recent]}
    return window | latest | history[-1]


@pytest.mark.parametrize("scope", ["since_full", "global"])
@pytest.mark.parametrize("recent", [0, 1, 3, 7, 64])
def test_random_histories_follow_the_rule_in_plain_python(recent: int, scope: str) -> None:
    dice = random.Random(recent)
    for _ in range(6):
        story = told(gen_length=18, entropy_threshold=1.0, recent=recent, scope=scope)
        history: list[set[int]] = []
        fulls: list[int] = []
        left, peak = set(range(18)), math.inf
        while left:
            block = min(left) // 6
            window = {at for at in left if at // 6 == block}
            if peak > 1.0:
                assert story.refresh() == list(range(21))
                fulls.append(len(history))
            else:
                rows = expected_rows(history, fulls, window, recent, scope)
                assert story.refresh() == sorted(3 + at for at in rows)
            chosen = set(dice.sample(sorted(window), dice.randint(1, min(3, len(window)))))
            nats = {at: dice.choice([0.1, 0.9, 1.0, 1.1]) for at in chosen}
            story.step(nats)
            history.append(chosen)
            left -= chosen
            peak = max(nats.values())


# On real runs of the engine.

TAUS = (0.5, 1.5, 2.0, 2.5)


def run(model: LanguageModel, heat: str = "greedy", **settings: object) -> Run:
    return decode(model, PROMPTS[:1], config("threshold", heat), create_policy("entropy", **settings))[0]


def rows(step_refreshed: list[int]) -> set[int]:
    assert set(step_refreshed) <= {0, LAYERS}
    return {at for at, layers in enumerate(step_refreshed) if layers}


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("heat", HEAT)
def test_the_flag_of_a_step_explains_the_next_one(model: LanguageModel, heat: str, tau: float) -> None:
    done = run(model, heat, entropy_threshold=tau)
    for now, then in zip(done.steps, done.steps[1:], strict=False):
        assert then.full == (now.entropy[now.committed].max() > tau)
        assert then.reason == ("entropy above tau" if then.full else "reuse")


def test_the_taus_above_mix_full_and_partial_passes(models: dict[str, LanguageModel]) -> None:
    for name in FAMILIES:
        runs = [run(models[name], entropy_threshold=tau) for tau in TAUS]
        assert any({step.full for step in done.steps[1:]} == {True, False} for done in runs)


def test_infinite_tau_is_one_full_pass(model: LanguageModel) -> None:
    done = run(model, entropy_threshold=math.inf)
    assert [step.full for step in done.steps] == [True] + [False] * (len(done.steps) - 1)


@pytest.mark.parametrize("recent", [0, 3])
def test_partial_rows_are_window_masks_recents_and_sources(
    model: LanguageModel, family: str, recent: int
) -> None:
    """Out-of-window masks and the prompt stay cached; a shifted model adds the row left of each target."""
    done = run(model, entropy_threshold=2.0, recent=recent)
    start, fulls, history = len(PROMPTS[0]), [], []
    for step, refreshed in zip(done.steps, done.computed, strict=True):
        window = {at - start for at in step.targets.nonzero()[0].tolist()}
        if step.full:
            fulls.append(step.step)
        else:
            wanted = expected_rows(history, fulls, window, recent, "since_full")
            sources = {at - SHIFT[family] for at in window}
            assert rows(refreshed) == {start + at for at in wanted | sources}
        history.append({at - start for at in step.committed.nonzero()[0].tolist()})


def test_all_recents_of_all_time_recompute_the_whole_generation_so_far(
    model: LanguageModel, family: str
) -> None:
    done = run(model, entropy_threshold=math.inf, recent=1000, scope="global")
    start, decoded = len(PROMPTS[0]), set()
    for step, refreshed in zip(done.steps, done.computed, strict=True):
        targets = set(step.targets.nonzero()[0].tolist())
        if step.step:
            assert rows(refreshed) == decoded | targets | {at - SHIFT[family] for at in targets}
            assert rows(refreshed) <= set(range(start - SHIFT[family], start + GEN))
        decoded |= set(step.committed.nonzero()[0].tolist())


@pytest.mark.parametrize("heat", HEAT)
@pytest.mark.parametrize("rule", ["one a step", "threshold"])
def test_refreshed_by_block_alone_it_is_the_dual_cache(model: LanguageModel, rule: str, heat: str) -> None:
    settings = {"entropy_threshold": math.inf, "refresh_on_block_start": True, "recent": 64}
    ours = decode(model, PROMPTS, config(rule, heat), create_policy("entropy", **settings))
    dual = decode(model, PROMPTS, config(rule, heat), create_policy("dual"))
    assert [done.committed for done in ours] == [done.committed for done in dual]
    assert [done.tokens for done in ours] == [done.tokens for done in dual]
    assert [done.computed for done in ours] == [done.computed for done in dual]
