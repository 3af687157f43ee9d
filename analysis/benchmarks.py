"""Named presets of lm-eval tasks: how many worked examples and how many tokens papers gave them.

Sources. EntropyCache: the cells of its runs on a public leaderboard (wizwand.com, paper
69bcd4730636e5bf4afc2925): GSM8K 4-shot 256, MBPP 3-shot 256, HumanEval 0-shot 512, BBH 3-shot, GPQA
0-shot; the paper runs MMLU-Pro, BBH and GPQA with chains of thought. d2Cache (arXiv 2509.23094): the
lengths of its released config, 256 for GSM8K, MATH500, GPQA and MMLU-Pro, 512 for HumanEval and MBPP (so
MBPP differs from EntropyCache's; the preset follows the latter). dLLM-Cache (arXiv 2506.06295): its
evaluation scripts, BBH 3-shot 256 and MMLU-Pro 0-shot 256. What none of them says is lm-eval's own number.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A task of lm-eval 0.4.13, its few-shot examples, tokens to generate, and where these are from."""

    task: str
    shots: int
    gen_length: int
    source: str


PRESETS = {
    "gsm8k": Preset("gsm8k", 4, 256, "EntropyCache"),
    "math500": Preset("minerva_math500", 4, 256, "shots: lm-eval; length: d2Cache"),
    "mbpp": Preset("mbpp", 3, 256, "EntropyCache; d2Cache generates 512"),
    "humaneval": Preset("humaneval", 0, 512, "EntropyCache"),
    "mmlu_pro": Preset("mmlu_pro", 0, 256, "dLLM-Cache"),
    "bbh": Preset("bbh_cot_fewshot", 3, 256, "shots: EntropyCache; length: dLLM-Cache"),
    "gpqa": Preset("gpqa_main_cot_zeroshot", 0, 256, "shots: EntropyCache; length: d2Cache"),
}


def preset_named(name: str) -> Preset:
    """A preset by its name or by its task's. Raises ValueError for another."""
    found = [preset for key, preset in PRESETS.items() if name in (key, preset.task)]
    if not found:
        raise ValueError(f"--preset knows {', '.join(PRESETS)}; for {name} give --shots and --gen-length")
    return found[0]
