"""The models that the page offers, and what each would take here, by published size: no config is fetched."""

from analysis.shapes import SHAPES
from app.models import CANVAS, EMBEDDED_REF, GIB, Estimate, estimate, weigh

# Smallest first: hub id and its shape in `analysis.shapes`. Others can be named by folder or hub id.
PUBLISHED = {
    "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1": "qwen2.5-0.5b",
    "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1": "qwen3-0.6b",
    "Dream-org/Dream-v0-Instruct-7B": "dream-7b",
    "GSAI-ML/LLaDA-8B-Instruct": "llada-8b",
    "GSAI-ML/LLaDA-1.5": "llada-8b",
}
CATALOG = (EMBEDDED_REF, *PUBLISHED)


def catalog_estimates(dtype: str) -> dict[str, Estimate]:
    """What each offered model takes in `dtype`, against the memory that is free now."""
    published = {ref: weigh(SHAPES[shape], dtype) for ref, shape in PUBLISHED.items()}
    return {EMBEDDED_REF: estimate(EMBEDDED_REF, dtype), **published}


def catalog_table() -> str:
    """The estimates as a Markdown table, with a line that says what they are of."""
    half, whole = catalog_estimates("bfloat16"), catalog_estimates("float32")
    lines = ["| model | parameters | bfloat16 | float32 | fits here |", "|---|---|---|---|---|"]
    lines += [
        f"| {ref} | {size_of(half[ref].spec.num_parameters)} | {half[ref].needed / GIB:.2f} GiB "
        f"| {whole[ref].needed / GIB:.2f} GiB | {verdict(half[ref], whole[ref])} |"
        for ref in CATALOG
    ]
    one = half[EMBEDDED_REF]
    caption = (
        f"Weights and twice the K/V of {CANVAS} positions (the second where drift is watched), by published "
        f"sizes; {one.free / GIB:.1f} GiB are free on {one.device}. All but the embedded model are "
        "downloaded first. *What would it take?* reads the model's own config."
    )
    return "\n".join([*lines, "", caption])


def verdict(half: Estimate, whole: Estimate) -> str:
    """In which number types a model fits."""
    if whole.fits:
        return "yes"
    return "in bfloat16" if half.fits else "no"


def size_of(parameters: int) -> str:
    """A number of parameters in a few characters."""
    return f"{parameters / 1e6:.1f} M" if parameters < 1e9 else f"{parameters / 1e9:.1f} B"
