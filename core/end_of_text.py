"""Where a text ends among generated tokens: one answer for whoever cuts or counts them."""

from collections.abc import Collection, Sequence


def end_of_text(tokens: Sequence[int], eos_token_ids: Collection[int]) -> int:
    """Index of the first end-of-text token, len(tokens) without one: tokens[:index] are the text."""
    return next((index for index, token in enumerate(tokens) if token in eos_token_ids), len(tokens))
