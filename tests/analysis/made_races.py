"""Made-up outcomes for races to run on: what settings cost and break is known."""

import random
from collections.abc import Iterator, Sequence

from analysis.grid import Axis, grid_settings
from analysis.measure import Outcome, Unit
from analysis.tuning import Goal, Search
from tests.analysis.test_comparison import outcome

GRID = grid_settings(
    "entropy", [Axis.parse("entropy_threshold=0,0.5,1,1.5,2,3"), Axis.parse("recent=8,16,32,64")]
)
PROMPTS = 32
EOS = (1,)


class MadeUp:
    """Larger tau is cheaper; above 1.5 a few prompts break, which no single one of them tells. Small k is
    cheaper, and below 16 every third prompt breaks."""

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        for unit in units:
            tau, recent = (unit.setting.config.get(name, 0) for name in ("entropy_threshold", "recent"))
            cached = unit.setting.policy == "entropy"
            cost = 1 - 0.2 * tau + 0.001 * recent if cached else 1.0
            broken = (tau > 1.5 and unit.prompt % 9 == 0) or (recent < 16 and unit.prompt % 3 == 0)
            wrong = cached and broken
            tokens = (9, 9, 1, 1) if wrong else (5, 6, 1, 1)
            yield outcome(unit.setting, unit.prompt, 0, 1.0, flops=cost, tokens=tokens, solved=not wrong)

    def close(self) -> None:
        """Nothing to end."""


made_up = MadeUp()


def search(goal: Goal) -> Search:
    made = Search(GRID, PROMPTS, goal, EOS)
    for _ in made.run(made_up):
        pass
    return made


class Noisy(MadeUp):
    """Every setting takes the same time, measured with noise of a tenth, times `share` for a cache."""

    def __init__(self, seed: int, share: float) -> None:
        self.rng, self.share = random.Random(seed), share

    def __call__(self, units: Sequence[Unit]) -> Iterator[Outcome]:
        for unit in units:
            share = self.share if unit.setting.policy == "entropy" else 1.0
            seconds = share * self.rng.lognormvariate(0, 0.1)
            yield outcome(unit.setting, unit.prompt, unit.repeat, seconds, solved=True)
