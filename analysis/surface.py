"""Surface: cost and loss over two settings, such as tau and k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:  # loads torch, which a table of results does without
    from analysis.tuning import Candidate


@dataclass(frozen=True, eq=False)
class Surface:
    """Candidates on a grid: cost, low, high, loss float [Y, X] and prompts int [Y, X]; NaN and 0 where
    none was.

    x, y: the values of the settings x_name and y_name, rising; values are numbers or text.
    """

    x_name: str
    y_name: str
    x: tuple[Any, ...]
    y: tuple[Any, ...]
    cost: np.ndarray
    low: np.ndarray
    high: np.ndarray
    loss: np.ndarray
    prompts: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """One row a cell."""
        x, y = np.meshgrid(np.arange(len(self.x)), np.arange(len(self.y)))
        return pd.DataFrame(
            {
                self.x_name: [self.x[index] for index in x.ravel()],
                self.y_name: [self.y[index] for index in y.ravel()],
                "cost": self.cost.ravel(),
                "cost_low": self.low.ravel(),
                "cost_high": self.high.ravel(),
                "loss": self.loss.ravel(),
                "prompts": self.prompts.ravel(),
            }
        )


def surface(candidates: Sequence[Candidate]) -> Surface:
    """Arrange candidates by the two settings that vary. Raises ValueError where not exactly two do."""
    settings = [{**c.setting.config, **c.setting.generation} for c in candidates]
    names = list(dict.fromkeys(name for setting in settings for name in setting))
    varied = [name for name in names if len({str(setting.get(name)) for setting in settings}) > 1]
    if len(varied) != 2:
        raise ValueError(f"settings vary in {', '.join(varied) or 'nothing'}; a map needs exactly two")
    x_name, y_name = varied
    x, y = (_sorted([setting.get(name) for setting in settings]) for name in varied)
    cost, low, high, loss = np.full((4, len(y), len(x)), np.nan)
    prompts = np.zeros((len(y), len(x)), int)
    for candidate, setting in zip(candidates, settings, strict=True):
        at = y.index(setting.get(y_name)), x.index(setting.get(x_name))
        cost[at], loss[at], prompts[at] = candidate.cost, candidate.loss, candidate.prompts
        low[at], high[at] = (np.nan if end is None else end for end in (candidate.low, candidate.high))
    return Surface(x_name, y_name, x, y, cost, low, high, loss, prompts)


def _sorted(values: Sequence[Any]) -> tuple[Any, ...]:
    """Different values, numbers before words."""

    def key(value: Any) -> tuple[bool, float, str]:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return not number, float(value) if number else 0.0, str(value)

    return tuple(sorted(dict.fromkeys(values), key=key))
