"""Resampling runs: whole prompts, or blocks of successive steps within each; circular shifts within each.

The steps of a run are a time series. Drawn or permuted one by one they would count as independent, which
makes intervals too narrow and p-values too small. Drawn together they still make an interval somewhat
too narrow where there are few prompts, or one run whose steps change slowly.
"""

import math
from collections.abc import Iterator

import numpy as np

NUM_RESAMPLES = 1000
MAX_CELLS = 4_000_000
MIN_GROUPS = 20
MIN_ROWS = 8


def drawn_of(groups: int) -> str:
    """What an interval over rows of that many prompts is of."""
    if groups >= MIN_GROUPS:
        return "prompts"
    return "the steps of this run" if groups == 1 else "the steps of these runs"


def resamples(group: np.ndarray, series: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each of n rows is drawn in each of NUM_RESAMPLES resamples, float [M, n] at a time.

    group: int [n], the prompt of each row, 0 to G - 1; a prompt's rows in the order of its steps. From
    MIN_GROUPS prompts up whole prompts are drawn. Fewer are too few to draw from and are taken as given:
    circular blocks of successive rows are drawn within each prompt (Politis and Romano 1992), so that an
    interval speaks of these prompts only. series: float [n] or [n, K], what makes up a block's length, see
    `block_length`.

    Nothing is drawn from fewer than MIN_ROWS rows, nor where every resample would be the sample itself, as
    where few prompts have one row each: an interval of no width would look like a sure one.
    """
    groups = int(group.max(initial=-1)) + 1
    rows = [np.flatnonzero(group == index) for index in range(groups)] if groups < MIN_GROUPS else []
    blocks = [block_length(series[members]) for members in rows]
    fixed = rows and all(len(members) <= block for members, block in zip(rows, blocks, strict=True))
    if len(group) < MIN_ROWS or fixed:
        return
    for size in _sizes(len(group)):
        if groups >= MIN_GROUPS:
            yield rng.multinomial(groups, np.full(groups, 1 / groups), size=size).astype(float)[:, group]
            continue
        weights = np.zeros((size, len(group)))
        for members, block in zip(rows, blocks, strict=True):
            weights[:, members] = _blocks(len(members), block, size, rng)
        yield weights


def interval(drawn: np.ndarray, level: float) -> tuple[float, float]:
    """The central share `level` of what was drawn, float [M]; NaN where nothing was."""
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) if len(known) else (np.nan, np.nan)
    return float(low), float(high)


def block_length(series: np.ndarray) -> int:
    """Rows in a block for the circular block bootstrap of a series [n] in the order of its steps.

    Of several, [n, K], the mean autocovariance counts.

    The automatic choice of Politis and White (2004), as corrected by Patton, Politis and White (2009), but
    at least the cube root of n, so that autocorrelation which a short series can't show isn't taken for
    none.
    """
    n = len(series)
    least, most = math.ceil(n ** (1 / 3)), math.ceil(min(3 * math.sqrt(n), n / 3))
    if most <= least or not np.ptp(series, axis=0).any():
        return max(least, 1)
    covariance = _autocovariance(series)
    run = max(5, math.ceil(math.sqrt(math.log10(n))))
    lags = min(math.ceil(math.sqrt(n)) + run, n - 1)
    strong = np.abs(covariance[1 : lags + 1]) >= 2 * math.sqrt(math.log10(n) / n) * covariance[0]
    quiet = [lag for lag in range(lags - run + 1) if not strong[lag : lag + run].any()]
    last = quiet[0] if quiet else int(np.flatnonzero(strong)[-1]) + 1
    width = min(2 * max(last, 1), lags)
    lag = np.arange(1, width + 1)
    tapered = np.minimum(1, 2 * (1 - lag / width)) * covariance[1 : width + 1]
    slope, level = 2 * (lag * tapered).sum(), covariance[0] + 2 * tapered.sum()
    if level == 0:
        return most
    return int(np.clip(math.ceil((1.5 * (slope / level) ** 2 * n) ** (1 / 3)), least, most))


def shifted_sums(x: np.ndarray, y: np.ndarray, group: np.ndarray) -> list[np.ndarray]:
    """For each prompt the sum of x_t y_(t + s) over its rows at every circular shift s, float [rows].

    x, y: float [n]; group: int [n], as in `resamples`. Shifted, a series keeps its own autocorrelation and
    loses its place beside the other. It loses its trend, too: two series that fall alike, and have nothing
    else in common, are told from their shifts.
    """
    sums = []
    for index in range(int(group.max(initial=-1)) + 1):
        members = group == index
        moved = np.fft.rfft(x[members]).conj() * np.fft.rfft(y[members])
        sums.append(np.fft.irfft(moved, int(members.sum())))
    return sums


def shifts(lengths: list[int], rng: np.random.Generator) -> np.ndarray:
    """Circular shifts of prompts of these lengths, int [M, G]: every one of a lone prompt, the first none.

    Several prompts have too many combinations: NUM_RESAMPLES are drawn, after the one that moves nothing.
    """
    if len(lengths) == 1:
        return np.arange(lengths[0])[:, None]
    drawn = rng.integers(0, lengths, size=(NUM_RESAMPLES, len(lengths)))
    return np.concatenate((np.zeros((1, len(lengths)), int), drawn))


def _autocovariance(series: np.ndarray) -> np.ndarray:
    """At lags 0 to n - 1, the mean over the columns of a series [n] or [n, K], float [n]."""
    n = len(series)
    columns = series.reshape(n, -1)
    moved = np.fft.rfft(columns - columns.mean(axis=0), 2 * n, axis=0)
    return np.fft.irfft(np.abs(moved) ** 2, 2 * n, axis=0)[:n].mean(axis=1) / n


def _blocks(n: int, block: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of n rows is in `size` draws of n rows, in circular blocks, int [size, n]."""
    starts = rng.integers(0, n, size=(size, math.ceil(n / block)))
    drawn = ((starts[:, :, None] + np.arange(block)) % n).reshape(size, -1)[:, :n]
    cells = drawn + n * np.arange(size)[:, None]
    return np.bincount(cells.ravel(), minlength=size * n).reshape(size, n)


def _sizes(n: int) -> list[int]:
    """NUM_RESAMPLES in parts small enough to hold n columns in memory."""
    size = max(1, min(NUM_RESAMPLES, MAX_CELLS // max(n, 1)))
    whole, rest = divmod(NUM_RESAMPLES, size)
    return [size] * whole + [rest] * (rest > 0)
