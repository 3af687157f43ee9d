"""DecodeState: the canvas and its clocks, one per sequence; the engine owns it and policies read it."""

from dataclasses import dataclass

import torch
from torch import Tensor

PROMPT = -2  # decoded_at of prompt and padding
NOT_YET = 2**30  # decoded_at while masked


@dataclass
class DecodeState:
    """Everything known about B sequences on a canvas of L positions (left-padded prompt, generation).

    tokens, positions, decoded_at: int64 [B, L]; positions count valid tokens (rotary positions);
    decoded_at is the sequence's own step at which a position was committed, PROMPT or NOT_YET.
    valid: bool [B, L], False on left padding. active: bool [B], False for finished or empty slots.
    step, block_step, block_start, block_stop: int64 [B], each sequence's own clocks; block_step counts
    steps since its block began, block_start and block_stop are canvas positions.
    block_is_new: bool [B]. window: bool [B, L], the masked positions that may be decoded now.
    """

    tokens: Tensor
    positions: Tensor
    decoded_at: Tensor
    valid: Tensor
    active: Tensor
    step: Tensor
    block_step: Tensor
    block_start: Tensor
    block_stop: Tensor
    block_is_new: Tensor
    window: Tensor
    prompt_len: int
    block_length: int
    sliding: bool

    @classmethod
    def empty(
        cls,
        num_slots: int,
        prompt_len: int,
        gen_length: int,
        block_length: int,
        sliding: bool,
        pad_token_id: int,
        device: torch.device,
    ) -> "DecodeState":
        """All slots idle; `admit` fills one."""
        canvas = prompt_len + gen_length

        def grid(value: int | bool, dtype: torch.dtype) -> Tensor:
            return torch.full((num_slots, canvas), value, dtype=dtype, device=device)

        def clock() -> Tensor:
            return torch.zeros(num_slots, dtype=torch.long, device=device)

        return cls(
            tokens=grid(pad_token_id, torch.long),
            positions=grid(0, torch.long),
            decoded_at=grid(PROMPT, torch.long),
            valid=grid(True, torch.bool),
            active=clock().bool(),
            step=clock(),
            block_step=clock(),
            block_start=clock(),
            block_stop=clock(),
            block_is_new=clock().bool(),
            window=grid(False, torch.bool),
            prompt_len=prompt_len,
            block_length=block_length,
            sliding=sliding,
        )

    @property
    def columns(self) -> Tensor:
        """Canvas positions 0..L-1, int64 [L]."""
        return torch.arange(self.tokens.shape[1], device=self.tokens.device)

    @property
    def masked(self) -> Tensor:
        """bool [B, L]: positions not decoded yet."""
        return self.decoded_at == NOT_YET

    @property
    def in_block(self) -> Tensor:
        """bool [B, L]: positions of the active block, decoded or not."""
        columns = self.columns
        return (columns >= self.block_start[:, None]) & (columns < self.block_stop[:, None])

    @property
    def just_decoded(self) -> Tensor:
        """bool [B, L]: positions committed in the sequence's previous step."""
        return self.decoded_at == self.step[:, None] - 1

    def admit(self, slot: int, prompt_ids: list[int], mask_token_id: int, pad_token_id: int) -> None:
        """Put a prompt, left-padded to prompt_len, and an all-masked generation region into a slot."""
        pad = self.prompt_len - len(prompt_ids)
        self.tokens[slot] = mask_token_id
        self.tokens[slot, :pad] = pad_token_id
        self.tokens[slot, pad : self.prompt_len] = torch.tensor(prompt_ids, device=self.tokens.device)
        self.valid[slot] = self.columns >= pad
        self.positions[slot] = (self.columns - pad).clamp(min=0)
        self.decoded_at[slot] = PROMPT
        self.decoded_at[slot, self.prompt_len :] = NOT_YET
        self.active[slot] = True
        self.step[slot] = 0
        self.block_step[slot] = 0
        self.block_start[slot] = -1
        self._find_window()

    def commit(self, committed: Tensor, tokens: Tensor) -> None:
        """Accept `tokens` [B, L] where `committed` [B, L], masks all of them: what is decoded stays."""
        self.tokens = torch.where(committed, tokens, self.tokens)
        self.decoded_at = torch.where(committed, self.step[:, None], self.decoded_at)

    def finished(self, ends: Tensor | None) -> Tensor:
        """bool [B]: active, with nothing masked or, given end-of-text ids int [E], nothing before one."""
        masked = self.masked
        done = ~masked.any(dim=1)
        if ends is not None:
            ended = torch.isin(self.tokens, ends) & (self.columns >= self.prompt_len) & ~masked
            before = ended.int().argmax(dim=1) < masked.int().argmax(dim=1)
            done = done | (ended.any(dim=1) & before)
        return done & self.active

    def advance(self) -> None:
        """One step has passed for every active sequence; blocks move on where they are finished."""
        self.step = self.step + self.active
        self.block_step = self.block_step + self.active
        self._find_window()

    def _find_window(self) -> None:
        masked = self.masked & self.active[:, None]
        before = self.block_start
        if self.sliding:
            self.window = masked & (masked.cumsum(dim=1) <= self.block_length)
            start = self.window.int().argmax(dim=1)
            last = self.tokens.shape[1] - self.window.flip(1).int().argmax(dim=1)
            self.block_start, self.block_stop = start, last
        else:
            first = masked.int().argmax(dim=1)
            offset = (first - self.prompt_len) // self.block_length * self.block_length
            start = torch.where(masked.any(dim=1), self.prompt_len + offset, before)
            self.block_start, self.block_stop = start, start + self.block_length
            self.block_step = torch.where(start != before, 0, self.block_step)
            self.window = masked & self.in_block
        # Not `start != before`: admitting one sequence is no step for its neighbours' new blocks.
        self.block_is_new = self.active & (self.block_step == 0)
