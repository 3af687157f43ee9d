"""Imports point one way: app to analysis to core, and inside core from the engine down."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from core import POLICIES
from tests.tiny import LOADABLE

ROOT = Path(__file__).parents[2]
PACKAGES = ("core", "analysis", "app")
CORE = sorted((ROOT / "core").rglob("*.py"))
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Absolute dotted names that a file imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def uses(path: Path, *modules: str) -> list[str]:
    return sorted(
        name for name in imported(path) if any(f"{name}.".startswith(f"{module}.") for module in modules)
    )


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


PURE = (
    "trace", "trace_file", "recorder", "drift", "correlation", "ranks", "resampling", "roc", "volatility",
    "timeline", "cost", "trace_schema",
)  # fmt: skip

# Folder or file -> what it must not import.
FORBIDDEN = {
    "core": ("analysis", "app", "gradio", "plotly", "pandas", "scipy"),
    "analysis": ("app", "gradio"),
    "analysis/plots": ("torch", "core", "transformers"),
    # A trace is read, measured and written without torch; only what runs a model may import it.
    **dict.fromkeys(
        (f"analysis/{name}.py" for name in PURE),
        ("torch", "transformers", "core.models", "core.engine", "core.denoiser", "core.forward"),
    ),
    "app/tabs": ("torch",),
    "core/policies": (
        "core.models.transformer",
        "core.models.language_model",
        "core.models.loading",
        "core.models.families",
        "core.cache",
        "core.forward",
        "core.denoiser",
        "core.engine",
    ),
    "core/models": ("core.policies", "core.engine", "core.denoiser", "core.forward"),
    "core/unmask.py": ("core.policies", "core.models", "core.cache"),
    "core/sampling.py": ("core.policies", "core.models", "core.cache"),
    "core/state.py": ("core.policies", "core.models", "core.cache"),
    "core/events.py": ("torch",),
}


# The recorder reads the engine's events, and whoever has those has torch.
@pytest.mark.parametrize("module", ["plots", *(name for name in PURE if name != "recorder")])
def test_what_needs_no_torch_loads_none(module: str) -> None:
    """Not by way of others either: reading and drawing results begin at once."""
    check = f"import sys, analysis.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("where", FORBIDDEN)
def test_imports_point_one_way(where: str) -> None:
    target = ROOT / where
    files = [target] if target.is_file() else sorted(target.rglob("*.py"))
    wrong = {str(path.relative_to(ROOT)): uses(path, *FORBIDDEN[where]) for path in files}
    assert {path: found for path, found in wrong.items() if found} == {}


@pytest.mark.parametrize("path", CORE, ids=names(CORE))
def test_shared_code_asks_no_policy_and_no_family_for_its_name(path: Path) -> None:
    """What differs between families and policies is a field of theirs, not a branch of ours."""
    words = {*POLICIES, *LOADABLE}
    compared = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(part, ast.Constant) and part.value in words for part in ast.walk(node))
    ]
    assert compared == []


@pytest.mark.parametrize("path", FILES, ids=names(FILES))
def test_no_file_reads_the_environment_or_swallows_every_error(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"bare except at line {node.lineno}"
    if not path.is_relative_to(ROOT / "app"):
        assert uses(path, "os.environ", "os.getenv") == []
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "environ"]
