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


def catalog_estimates(dtype: str = "auto") -> dict[str, Estimate]:
    """What each offered model takes in `dtype`, against the memory that is free now."""
    published = {ref: weigh(SHAPES[shape], dtype) for ref, shape in PUBLISHED.items()}
    return {EMBEDDED_REF: estimate(EMBEDDED_REF, dtype), **published}


def catalog_table(dtype: str = "auto") -> str:
    """The estimates as a Markdown table, with a line that says what they are of."""
    told = catalog_estimates(dtype)
    lines = ["| model | parameters | needs | here |", "|---|---|---|---|"]
    lines += [
        f"| {ref} | {size_of(one.spec.num_parameters)} | {one.needed / GIB:.2f} GiB "
        f"| {'fits' if one.fits else 'does not fit'} |"
        for ref, one in told.items()
    ]
    one = told[EMBEDDED_REF]
    caption = (
        f"Weights in {one.dtype} and K/V of {CANVAS} positions, by published sizes; {one.free / GIB:.1f} GiB "
        f"are free on {one.device}. *What would it take?* reads the model's own config."
    )
    return "\n".join([*lines, "", caption])


def size_of(parameters: int) -> str:
    """A number of parameters in a few characters."""
    return f"{parameters / 1e6:.1f} M" if parameters < 1e9 else f"{parameters / 1e9:.1f} B"
