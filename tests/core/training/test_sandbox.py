"""Untrusted functions: only the small subset runs, without builtins, within time and memory."""

import pytest

from core.training.sandbox import RefusedSourceError, check_source, run_function


def body(*lines: str) -> str:
    return "\n".join(["def f(xs):", *(f"    {line}" for line in lines)])


def test_an_allowed_function_runs_on_every_input():
    source = body(
        "out = []", "for x in xs:", "    if x % 2 == 0:", "        out.append(x * 3)", "return sum(out)"
    )
    assert run_function(source, "f", [[1, 2], [], [4, 4]]) == [6, 0, 24]


@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef f(xs):\n    return 1",
        body("import os", "return 1"),
        body("return open(xs)"),
        body("return __import__"),
        body("return xs.__class__"),
        body("return (lambda: 1)()"),
        body("while 1:", "    pass"),
        body("return 9 ** 9"),
        body("return 'text'"),
        body("return [y for y in xs if (z := y)]"),
        "def f(xs=print):\n    return print(xs)",
        "@sum\ndef f(xs):\n    return 1",
        "def g(xs):\n    return 1",
        "def f(xs):\n    return (",
        body("return f(xs)"),
        "def f(xs):\n" + "    xs\n" * 1000,
    ],
)
def test_everything_else_is_refused_before_it_runs(source):
    with pytest.raises(RefusedSourceError):
        check_source(source, "f")


@pytest.mark.parametrize(
    "lines",
    [
        ("for x in range(1000000000):", "    pass", "return 1"),
        ("return len([0] * 1000000000)",),
        ("return missing",),
        ("return xs[5]",),
        ("return [7] * 1000000",),
    ],
    ids=["endless", "memory", "name", "index", "output"],
)
def test_limits_and_errors_end_as_runtime_errors(lines):
    with pytest.raises(RuntimeError):
        run_function(body(*lines), "f", [[1]])
