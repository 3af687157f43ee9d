"""Readings of Tune: how its map and its front are read, and what their numbers are."""

from app.readings import TAU, K, Reading

COST = (
    "cost",
    "Seconds, or floating-point operations, summed over the prompts that a setting was measured on, over the "
    "same sum without a cache; measured again, the geometric mean of the prompts' ratios. Operations are the "
    "method's by formula, every layer in full for each row recomputed; the engine spares part of the last "
    "one.",
)
TUNE_MAP = Reading(
    "τ × k",
    "Above, what each τ and k costs as a share of the same decoding without a cache; below, how much of what "
    "is to be kept it loses: look for a cheap field that loses little.",
    (
        TAU,
        K,
        (
            "n",
            "Prompts that a setting was measured on. Fewer than all: it lost too much, another was cheaper, "
            "or the search is not over. The loss is then the least (≥) that it can still come to, and the "
            "cost is of those prompts alone.",
        ),
        (
            "range",
            "Below a cost, the least and the most on one prompt, each measured once. Of the chosen setting, "
            "once the search is over, cost and 95 % interval of what was measured again.",
        ),
        COST,
    ),
)
FRONT = Reading(
    "Pareto front",
    "One point a setting: further left is cheaper, further down loses less; what lies above the dashed "
    "budget loses too much.",
    (
        COST,
        ("front", "The settings that no other beats in both cost and loss, as the race measured them."),
        (
            "on fewer prompts",
            "It lost too much, another was cheaper, or the search is not over. The cost is of these prompts "
            "alone, the loss the least (≥) that it can still come to.",
        ),
        (
            "measured again",
            "The chosen setting beside no cache, in alternation, with the 95 % interval of the ratio: of "
            "many noisy costs the least, which the race picks, is too low.",
        ),
        ("agreement", "Share of tokens equal to those of the same decoding without a cache."),
        ("accuracy", "Share of answers that the grader finds right."),
    ),
)
