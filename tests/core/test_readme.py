"""What the README says of the project is true: its example runs, its front matter fits the requirements."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def front_matter() -> dict:
    return yaml.safe_load(README.split("---")[1])


def requirements() -> dict[str, str]:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").split()
    return dict(line.split("==") for line in lines)


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert any("first step" in line for line in lines)
    assert any("reuse" in line for line in lines)


def test_the_space_installs_what_is_tested() -> None:
    settings = front_matter()
    assert settings["sdk_version"] == requirements()["gradio"]
    assert settings["python_version"] in ("3.11", "3.12")
    assert (ROOT / settings["app_file"]).is_file()
    assert len(settings["short_description"]) <= 60


def test_local_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_only_the_six_libraries_are_required() -> None:
    assert set(requirements()) == {"torch", "transformers", "gradio", "plotly", "scipy", "pandas"}
