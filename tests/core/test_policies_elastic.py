"""`elastic`: which rows a layer recomputes, when drift refreshes the deeper ones, and whom it tracks."""

import torch
from torch import Tensor

from core import GenerationConfig, LanguageModel, StepEvent, create_policy, stream
from core.policies.base import Plan
from core.rows import to_rows
from tests.core.states import SPEC, Story
from tests.tiny import LAYERS, PROMPTS

LENGTH, HEADS = 11, 2


class PastAttention:
    """A LayerView that knows only the tracked token's past attention row, [B, H, L]."""

    def __init__(self, past: Tensor) -> None:
        self.past = past
        self.asked: list[list[int]] = []

    def attention_rows(self, position: Tensor) -> Tensor:
        self.asked.append(position.tolist())
        return self.past

    def values(self, start: int) -> Tensor:
        raise AssertionError("elastic looks at attention only")

    def swap_values(self, start: int) -> Tensor:
        raise AssertionError("elastic looks at attention only")


def told(prompts: tuple[int, ...] = (3,), window: str = "block", **settings: object) -> Story:
    """Canvas 3 + 8, blocks (or a window) of 4."""
    policy = create_policy("elastic", **settings)
    return Story(policy, list(prompts), gen_length=8, block_length=4, window=window)


def flat(batch: int) -> Tensor:
    """Every row attends to every position alike, [B, L, L]."""
    return torch.full((batch, LENGTH, LENGTH), 1 / LENGTH)


def run_layer(story: Story, plan: Plan, layer: int, past: Tensor, now: Tensor) -> list[list[int]]:
    """What the engine does with one layer. past: [B, L], now: [B, L, L] by canvas row; rows recomputed."""
    assert plan.per_layer is not None
    assert plan.on_attention is not None
    view = PastAttention(past[:, None].expand(-1, HEADS, -1))
    asked = plan.per_layer(layer, view) | (story.state.step == 0)[:, None]
    mask = asked & story.state.valid & story.state.active[:, None]
    rows = to_rows(mask, int(mask.sum(dim=1).max()))
    weights = torch.nn.functional.pad(now, (0, 0, 0, 1)).gather(1, rows[..., None].expand(-1, -1, LENGTH))
    plan.on_attention(layer, weights[:, None].expand(-1, HEADS, -1, -1), rows)
    return [one.nonzero().flatten().tolist() for one in mask]


def run(story: Story, now: Tensor | None = None, past: Tensor | None = None) -> list[list[list[int]]]:
    """All layers of one step: rows recomputed, by layer and sequence."""
    batch = story.state.tokens.shape[0]
    now = flat(batch) if now is None else now
    past = now[:, 0] if past is None else past
    plan = story.plan()
    return [run_layer(story, plan, layer, past, now) for layer in range(SPEC.num_layers)]


def test_window_masks_commits_and_the_tracked_token_are_recomputed() -> None:
    story = told()
    assert run(story) == [[list(range(LENGTH))]] * 3
    story.step({1: 0.1})
    # All attention alike: the tie goes to the earliest decoded position.
    assert run(story) == [[[0, 3, 4, 5, 6]]] * 3
    story.step({0: 0.1, 2: 0.1})
    assert run(story) == [[[0, 3, 5, 6]]] * 3


def test_in_a_sliding_window_the_leftmost_masks_are_recomputed() -> None:
    story = told(window="sliding")
    run(story)
    story.step({1: 0.1})
    assert run(story) == [[[0, 3, 4, 5, 6, 7]]] * 3


def test_drift_at_a_layer_refreshes_the_layers_after_it() -> None:
    story = told(gamma=0.9)
    run(story)
    story.step({1: 0.1})
    plan, everything, queries = story.plan(), [list(range(LENGTH))], [[0, 3, 4, 5, 6]]
    same, elsewhere = flat(1)[:, 0], torch.zeros(1, LENGTH)
    elsewhere[0, 9] = 1.0
    assert run_layer(story, plan, 0, same, flat(1)) == queries
    assert run_layer(story, plan, 1, elsewhere, flat(1)) == queries
    assert run_layer(story, plan, 2, same, flat(1)) == everything
    # The next step begins afresh.
    story.step({0: 0.1})
    assert run(story)[0] == [[0, 3, 5, 6]]


def test_similarity_at_gamma_is_no_drift_and_gamma_zero_never_drifts() -> None:
    elsewhere = torch.zeros(1, LENGTH)
    elsewhere[0, 9] = 1.0
    similarity = float(torch.nn.functional.cosine_similarity(elsewhere, flat(1)[:, 0]))
    for gamma, drifts in ((0.0, False), (similarity - 1e-4, False), (similarity + 1e-4, True)):
        story = told(gamma=gamma)
        run(story)
        story.step({1: 0.1})
        layers = run(story, past=elsewhere)
        assert (layers[1] == [list(range(LENGTH))]) == drifts


def test_a_gamma_above_one_recomputes_everything_and_says_so() -> None:
    story = told(gamma=1.1)
    run(story)
    story.step({1: 0.1})
    assert run(story) == [[list(range(LENGTH))]] * 3
    assert story.reason() == "gamma above 1"


def test_each_sequence_drifts_for_itself() -> None:
    story = told(prompts=(3, 2), gamma=0.9)
    run(story)
    story.step({1: 0.1}, {0: 0.1})
    past = flat(2)[:, 0].clone()
    past[0] = 0.0
    past[0, 9] = 1.0
    layers = run(story, past=past)
    assert layers[1][0] == list(range(LENGTH))
    assert layers[1][1] == [1, 3, 4, 5, 6]


def test_the_decoded_token_most_attended_by_the_window_is_tracked_in_each_layer() -> None:
    story = told(prompts=(3, 2))
    run(story)
    story.step({1: 0.1}, {0: 0.1})
    now = flat(2).clone()
    # Window rows 3, 5, 6 attend to 4, decoded a step ago; the mask 5 and other rows' wishes don't count.
    now[0, [3, 5, 6], 4] = 0.5
    now[0, :, 5] = 0.9
    now[0, [0, 1, 2], 2] = 5.0
    # Padding of the second sequence is never tracked, however much weight it had.
    now[1, 3:, 0] = 9.0
    now[1, 3:, 2] = 0.5
    plan = story.plan()
    run_layer(story, plan, 1, flat(2)[:, 0], now)
    assert story.policy.tracked[1].tolist() == [4, 2]
    assert story.policy.tracked[0].tolist() == [0, 1]
    story.step({0: 0.1}, {1: 0.1})
    assert set(story.refresh(0)) >= {0, 4}


def test_the_past_is_asked_for_the_tracked_token_of_that_layer() -> None:
    story = told()
    run(story)
    story.step({1: 0.1})
    story.policy.tracked = torch.tensor([[0], [1], [2]])
    plan = story.plan()
    view = PastAttention(flat(1)[:, :1].expand(-1, HEADS, -1))
    assert plan.per_layer is not None
    for layer in range(3):
        plan.per_layer(layer, view)
    assert view.asked == [[0], [1], [2]]


def test_a_new_sequence_tracks_its_last_prompt_token() -> None:
    story = told(prompts=(3, 3))
    run(story)
    assert story.policy.tracked.tolist() == [[0, 0]] * 3
    story.policy.reset(story.state, torch.tensor([False, True]))
    assert story.policy.tracked.tolist() == [[0, 2]] * 3


def test_without_drift_rows_stay_within_window_commits_tracked_and_sources(model: LanguageModel) -> None:
    for window in ("block", "sliding"):
        config = GenerationConfig(gen_length=24, block_length=8, threshold=0.35, window=window)
        committed = 0
        for event in stream(model, PROMPTS[:1], config, create_policy("elastic", gamma=0.0)):
            if isinstance(event, StepEvent):
                if event.step[0]:
                    targets = int(event.targets.sum())
                    sources = targets * model.spec.logit_shift
                    assert (event.refreshed > 0).sum() <= targets + committed + LAYERS + sources
                    assert set(event.refreshed.ravel().tolist()) <= {0, LAYERS}
                committed = int(event.committed.sum())


def test_with_drift_rows_only_grow_from_layer_to_layer(model: LanguageModel) -> None:
    """A position outside the queries is recomputed in the last layers or not at all, and all such alike."""
    config = GenerationConfig(gen_length=24, block_length=8, threshold=0.35)
    depths = set()
    for event in stream(model, PROMPTS[:1], config, create_policy("elastic", gamma=0.97)):
        if isinstance(event, StepEvent) and event.step[0]:
            partial = set(event.refreshed.ravel().tolist()) - {LAYERS}
            assert len(partial) <= 1
            depths |= partial
    assert len(depths) > 1
