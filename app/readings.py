"""Readings: what each figure is called, how it is read, and what its numbers are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """A figure in words. how: one sentence on how to read it; terms: its numbers with their definitions."""

    title: str
    how: str
    terms: tuple[tuple[str, str], ...]


ENTROPY = (
    "entropy",
    "Of a committed token: −Σ p ln p over the whole vocabulary, at temperature 1, in nats; 0 is certain. A "
    "step that commits several counts with its largest.",
)
DRIFT = (
    "drift",
    "1 − cosine between a position's value vectors (V, flattened over heads) of two consecutive forward "
    "passes, averaged over the layers; 0 is no move at all. Layer 0 sees no context and adds a 0 to the mean "
    "of every position whose token stays.",
)
ANSWER = (
    "within the answer",
    "Of steps that commit at least one position before the first end-of-text. Decoding goes on after it, "
    "with little entropy and little drift: over all steps, as a fixed length has them, a coefficient is "
    "largely a contrast between answer and filler. Within the answer it says whether entropy tells when a "
    "cache goes stale while the answer is written.",
)
STEP = ("step", "Counted from 1 here and in every figure; the files of a run count theirs from 0.")
FULL = (
    "full, partial",
    "A full step recomputes every position of prompt and generation, a partial one only what its policy "
    "chose; the rest is read from the cache.",
)
ROWS = (
    "rows recomputed",
    "Positions whose keys and values the step computed anew, averaged over the layers where these differ.",
)
TAU = ("τ", "EntropyCache's threshold in nats: an entropy above it makes the next step full.")
K = (
    "k",
    "How many of the latest tokens committed since the last full pass EntropyCache recomputes in a partial "
    "step, beside the masks being denoised; never fewer than all just committed.",
)

TIMELINE = Reading(
    "Recompute timeline",
    "One bar a step, as tall as the rows it recomputed, over the largest entropy among the tokens it "
    "committed: above τ, EntropyCache makes the next step a full one.",
    (STEP, ROWS, FULL, ENTROPY, TAU, ("dotted line", "A new block begins.")),
)
SCATTER = Reading(
    "Entropy against drift",
    "One point a step: how uncertain its commits were, against how far the vectors a cache would keep moved "
    "right after; filled points that rise to the right speak for entropy as an alarm.",
    (
        STEP,
        ENTROPY,
        DRIFT,
        ANSWER,
        (
            "cached positions",
            "The prompt, tokens decoded earlier and masks of later blocks, which outweigh the others while "
            "there are any. Tokens just committed are left out, and so are masks of the active block, which "
            "EntropyCache recomputes.",
        ),
        (
            "Spearman",
            "Correlation of ranks, from −1 to +1, and n, the number of steps. It says that two things go "
            "together, not that one causes the other.",
        ),
        (
            "in brackets",
            "95 % interval for the steps of the second pass, by bootstrap; other prompts may differ by more. "
            "As successive steps resemble each other, blocks of them are drawn, not single steps; where they "
            "change slowly the interval is still somewhat too narrow. Fewer than eight steps have none.",
        ),
        (
            "p",
            "Share of all shifts of the one series along the other, its end moved to its front, that reach "
            "the coefficient. It does not rule out a trend that both share; see given the step.",
        ),
        (
            "given the step",
            "The same with the step partialled out: entropy and drift both fall as the canvas fills up, "
            "which relates them without either telling of the other.",
        ),
        (
            "given the number committed",
            "The same with the number of tokens committed in the step partialled out: more commits raise "
            "both the largest entropy and the drift.",
        ),
    ),
)
VOLATILITY = Reading(
    "Volatility after unmasking",
    "How far a token's value vectors still move in each step after it was unmasked: where the curve is "
    "still high, a cache must recompute, which is what EntropyCache's k newest tokens are for.",
    (
        DRIFT,
        ("steps since unmasking", "Age of the token; 0 is the jump from a mask's vectors to the token's."),
        (
            "interval",
            "95 % interval of the mean for the tokens of the second pass, by bootstrap of blocks of tokens "
            "committed one after another; other prompts may differ by more.",
        ),
        (
            "answer tokens",
            "Those before the first end-of-text. Only tokens committed early grow old within a run, so that "
            "the curve mixes age with the time of the commit.",
        ),
        (
            "plateau",
            "The mean of the older half of all ages. Its noise is that of one age's mean in the same "
            "resamples; from the age that is told on no interval lies above that noise, which is no proof "
            "that nothing moves.",
        ),
        (
            "k",
            "Marked at the age that the k newest tokens reach at this pass's commits a step, those behind an "
            "end-of-text included. After a full pass EntropyCache begins anew and recomputes only what was "
            "committed since.",
        ),
    ),
)
MAP = Reading(
    "Recompute map",
    "Every position of prompt and generation at every step: follow a row to see when its keys and values "
    "were computed anew, and a column to see what one step did; dots are commits.",
    (
        STEP,
        (
            "recomputed",
            "Orange in a full step; in a partial one blue, the stronger the more layers computed the "
            "position's keys and values.",
        ),
        ("age of K/V", "Steps since every layer computed them; 0 is this very step."),
        ("line", "Above it the prompt, below it the generation."),
    ),
)
LAYERS = Reading(
    "Drift by layer",
    "Mean drift at each layer, by kind of position: the higher a line, the sooner a cache of that layer "
    "goes stale.",
    (
        DRIFT,
        (
            "kinds of position",
            "prompt; decoded: tokens committed earlier; changed: masks that have just become tokens; window: "
            "masks of the active block; later: masks of later blocks.",
        ),
        ("layer 0", "It sees no context: its vectors only move where the token itself changes."),
    ),
)
TOKENS = Reading(
    "Drift of each token",
    "How far each token's value vectors moved at each step: a row that stays bright is a token whose cache "
    "would keep going stale, a bright column a step that moved everything.",
    (
        STEP,
        DRIFT,
        ("dot", "The step that committed the token."),
        ("no colour", "Not observed. No move at all, of which a logarithm knows nothing, has its own."),
    ),
)
SIGNALS = Reading(
    "Which signal finds the drift?",
    "Each curve is a signal used as an alarm, high values first, for the tenth of the answer's steps that "
    "drift most: further up it finds more of them, further left it raises fewer false alarms.",
    (
        DRIFT,
        ANSWER,
        ("found", "Share of the steps that drift most at which the signal lies above its threshold."),
        ("false alarms", "Share of all other steps at which it does so, too."),
        ("area", "Of what lies under the curve: 1 finds every one without a false alarm, 0.5 is chance."),
        (
            "in brackets",
            "95 % interval of the area for the steps of the second pass, by bootstrap of blocks of them. It "
            "is the signal's own: the best of several is somewhat too good.",
        ),
        (
            "within noise",
            "The 95 % interval of the difference of two areas in the same draws holds 0 or lies below it.",
        ),
        ("largest doubt", "1 − confidence of the least certain token committed."),
        ("earliness", "The rival that takes no look at the model: 0 at the first step, falling by 1 a step."),
        TAU,
    ),
)
STALENESS = Reading(
    "Staleness",
    "How far the cache that a policy really had lies from a full pass over the same canvas, step by step; "
    "below, how many choices that would have changed.",
    (
        STEP,
        (
            "cosine distance",
            "1 − cosine between cached and freshly computed vectors: of K and V as the mean over layers and "
            "positions, of the final hidden states over the masks in play.",
        ),
        ("changed", "Share of the masks in play whose most likely token the full pass would have changed."),
    ),
)
WHATIF = Reading(
    "What another τ and k would have done",
    "A projection, not a run: which of the recorded steps would have been full by their recorded entropies; "
    "another cache would have changed tokens and entropies too, so run it to know.",
    (STEP, ROWS, FULL, ENTROPY, TAU, K),
)
