"""propose(): token, confidence and entropy of each target, and the noise that samples them."""

import math

import pytest
import torch
from torch import Tensor

from core import GenerationConfig
from core.sampling import GumbelNoise, Proposal, propose

MASK, EOS = 4, 1


def read(logits: Tensor, gumbel: Tensor | None = None, **settings: object) -> Proposal:
    count = logits.shape[1]
    positions = torch.arange(count).expand(logits.shape[0], count)
    config = GenerationConfig(**settings)  # type: ignore[arg-type]
    return propose(
        logits, positions, torch.ones_like(positions, dtype=torch.bool), config, MASK, (EOS,), gumbel
    )


def log(*probabilities: float) -> Tensor:
    """Logits of one row; a probability of 0 becomes the very unlikely, as in a model."""
    return torch.tensor(probabilities).log().clamp(min=-1e4)[None, None]


def test_confidence_and_entropy_are_of_the_raw_distribution() -> None:
    p = (0.5, 0.25, 0.125, 0.0625, 0.0625)
    proposal = read(log(*p) + 3.7)
    assert proposal.token.item() == 0
    assert proposal.confidence.item() == pytest.approx(0.5, abs=1e-6)
    assert proposal.entropy.item() == pytest.approx(-sum(q * math.log(q) for q in p), abs=1e-6)


def test_the_mask_token_is_never_proposed_and_nothing_is_renormalised() -> None:
    proposal = read(log(0.1, 0.1, 0.2, 0.0, 0.6))
    assert proposal.token.item() == 2
    assert proposal.confidence.item() == pytest.approx(0.2, abs=1e-6)
    entropy = -(0.2 * math.log(0.1) + 0.2 * math.log(0.2) + 0.6 * math.log(0.6))
    assert proposal.entropy.item() == pytest.approx(entropy, abs=1e-6)


@pytest.mark.parametrize("height", [0.0, 30.0, -30.0, 500.0])
def test_the_small_entropies_of_sure_tokens_are_exact_wherever_the_logits_lie(height: float) -> None:
    logits = torch.zeros(1, 40, 5)
    logits[0, :, 0] = torch.linspace(8, 15, 40)
    logits = logits + height
    found = read(logits)
    exact = logits.double().log_softmax(dim=-1)
    entropy = -(exact.exp() * exact).sum(dim=-1)
    assert entropy.min() < 3e-5
    assert (found.entropy - entropy).abs().max() < 4e-7
    assert (found.log_probs - exact).abs().max() < 4e-6
    assert (found.log_probs[..., 0] - exact[..., 0]).abs().max() < 3e-7
    assert found.confidence.max() <= 1
    assert found.entropy.min() >= 0


def test_an_impossible_token_does_not_make_the_entropy_nan() -> None:
    proposal = read(log(0.5, 0.5, 0.0, 0.0, 0.0))
    assert proposal.entropy.item() == pytest.approx(math.log(2), abs=1e-6)


def test_temperature_changes_neither_confidence_nor_entropy() -> None:
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    cold = read(logits)
    hot = read(logits, torch.zeros_like(logits), temperature=2.0, top_k=3, top_p=0.8)
    assert torch.equal(cold.token, hot.token)
    assert torch.equal(cold.entropy, hot.entropy)
    assert torch.equal(cold.confidence, hot.confidence)


def test_half_precision_logits_are_read_in_float32() -> None:
    proposal = read(torch.randn(1, 4, 5).bfloat16())
    assert proposal.entropy.dtype == proposal.confidence.dtype == torch.float32


def test_eos_never_excludes_the_token_only_from_the_choice() -> None:
    proposal = read(log(0.1, 0.6, 0.2, 0.1, 0.0), eos="never")
    assert proposal.token.item() == 2
    assert proposal.confidence.item() == pytest.approx(0.2, abs=1e-6)


def test_eos_last_ranks_end_of_text_below_everything_else() -> None:
    logits = torch.cat((log(0.05, 0.9, 0.05, 0.0, 0.0), log(0.3, 0.2, 0.25, 0.25, 0.0)), dim=1)
    proposal = read(logits, eos="last")
    assert proposal.token.tolist() == [[1, 0]]
    assert proposal.deferred.tolist() == [[True, False]]
    assert proposal.score[0, 0] < proposal.score[0, 1]


def test_what_only_fills_up_a_batch_defers_no_end_of_text() -> None:
    """A surplus row's proposal is nobody's: beside it alone an end is no less the only choice."""
    logits = torch.cat((log(0.05, 0.9, 0.05, 0.0, 0.0), log(0.3, 0.2, 0.25, 0.25, 0.0)), dim=1)
    positions, valid = torch.tensor([[0, 9]]), torch.tensor([[True, False]])
    proposal = propose(logits, positions, valid, GenerationConfig(eos="last"), MASK, (EOS,))
    assert not proposal.deferred.any()


def noise(draws: int, vocab: int = 5) -> Tensor:
    """`draws` rows of the engine's own Gumbel noise, [draws, 1, V]."""
    source = GumbelNoise(1, torch.device("cpu"))
    source.reset(0, 11)
    window = torch.ones(1, draws, dtype=torch.bool)
    return source.draw(window, torch.arange(draws)[None], draws, vocab)[0][:, None]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_sampled_tokens_follow_the_tempered_distribution(temperature: float) -> None:
    draws, p = 20000, torch.tensor([0.5, 0.2, 0.2, 0.05, 0.05])
    logits = p.log().expand(draws, 1, 5)
    tokens = read(logits, noise(draws), temperature=temperature).token
    seen = tokens.flatten().bincount(minlength=5) / draws
    wanted = (p.log() / temperature).softmax(0)
    wanted[MASK] = 0
    wanted = wanted / wanted.sum()
    # Four standard deviations of a frequency over 20000 draws are at most 0.0142.
    assert (seen - wanted).abs().max() < 0.0142


def test_top_k_and_top_p_cut_the_sampled_tokens() -> None:
    draws = 4000
    logits = torch.tensor([0.4, 0.3, 0.15, 0.15, 0.0]).log().expand(draws, 1, 5)
    few = read(logits, noise(draws), temperature=1.0, top_k=2).token.unique()
    assert few.tolist() == [0, 1]
    nucleus = read(logits, noise(draws), temperature=1.0, top_p=0.65).token.unique()
    assert nucleus.tolist() == [0, 1]


def test_noise_of_a_position_depends_on_its_place_in_the_window_only() -> None:
    def draw(window: list[bool], positions: list[int]) -> Tensor:
        source = GumbelNoise(1, torch.device("cpu"))
        source.reset(0, 3)
        return source.draw(torch.tensor([window]), torch.tensor([positions]), 4, 7)[0]

    plain = draw([False, True, True, True], [1, 2, 3])
    padded = draw([False, False, False, True, True, True], [3, 4, 5])
    narrowed = draw([False, True, True, True], [3])
    assert torch.equal(plain, padded)
    assert torch.equal(plain[2], narrowed[0])
    assert plain.isfinite().all()
