"""Run an untrusted tiny Python function: a small AST subset, in a subprocess with time and memory limits."""

import ast
import json
import subprocess
import sys

CALLABLE = frozenset({"sum", "len", "max", "min", "sorted", "abs", "list", "range", "reversed"})
METHODS = frozenset({"append"})
MAX_SOURCE_CHARS = 2000
CPU_SECONDS = 2
MEMORY_BYTES = 512 * 2**20
# What comes back is read by a process without limits.
MAX_OUTPUT_CHARS = 64 * 1024
MAX_EXPONENT = 3
ALLOWED_NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign,
    ast.For, ast.If, ast.Expr, ast.Continue, ast.Break, ast.Pass, ast.Call, ast.keyword, ast.Name, ast.Load,
    ast.Store, ast.Constant, ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.comprehension,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Add, ast.Sub, ast.Mult, ast.Pow, ast.Mod, ast.FloorDiv, ast.USub, ast.UAdd, ast.Not, ast.And, ast.Or,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
)  # fmt: skip

WORKER = """
import json, resource, sys
job = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"]))
resource.setrlimit(resource.RLIMIT_AS, (job["bytes"], job["bytes"]))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
known = {"sum": sum, "len": len, "max": max, "min": min, "sorted": sorted, "abs": abs,
         "list": list, "range": range, "reversed": reversed}
scope = {"__builtins__": {}, **known}
exec(compile(job["source"], "answer", "exec"), scope)
said = json.dumps([scope[job["function"]](given) for given in job["inputs"]])
if len(said) > job["characters"]:
    raise ValueError("the function returned too much")
sys.stdout.write(said)
"""


class RefusedSourceError(ValueError):
    """The source is no Python, or holds a construct outside the small subset we run."""


def checked(source: str, function: str) -> str:
    """What is run of `source`: one function `function`, without annotations and docstrings.

    They say nothing about what a function computes, so whatever stands in them is neither judged nor run.
    Raises RefusedSourceError for anything else, and for what is left of it outside the allowed subset.
    """
    if len(source) > MAX_SOURCE_CHARS:
        raise RefusedSourceError(f"source has {len(source)} characters; allowed are {MAX_SOURCE_CHARS}")
    try:
        tree = ast.parse(source)
        strip(tree)
        # What is run is written from the tree, so that nothing runs that was not looked at.
        bare = ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RefusedSourceError(f"not Python: {error}") from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef) or tree.body[0].name != function:
        raise RefusedSourceError(f"the source must be exactly one function named {function}")
    for node in ast.walk(tree):
        check_node(node)
    return bare


def strip(tree: ast.Module) -> None:
    """Take annotations and docstrings out of a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            # It has to have one.
            node.annotation = ast.Constant(None)


def check_node(node: ast.AST) -> None:
    if not isinstance(node, ALLOWED_NODES):
        raise RefusedSourceError(f"{type(node).__name__} is not allowed")
    if isinstance(node, ast.Name | ast.arg):
        name = node.id if isinstance(node, ast.Name) else node.arg
        if name.startswith("_"):
            raise RefusedSourceError(f"the name {name} is not allowed")
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        raise RefusedSourceError("decorators are not allowed")
    if isinstance(node, ast.Attribute) and node.attr not in METHODS:
        raise RefusedSourceError(f"the attribute {node.attr} is not allowed")
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | None):
        raise RefusedSourceError("only integers are allowed as constants")
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
        exponent = node.right if isinstance(node, ast.BinOp) else node.value
        if not (isinstance(exponent, ast.Constant) and exponent.value in range(MAX_EXPONENT + 1)):
            raise RefusedSourceError(f"an exponent must be a number from 0 to {MAX_EXPONENT}")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in CALLABLE:
        raise RefusedSourceError(f"calling {node.func.id} is not allowed")


def run_function(source: str, function: str, inputs: list[object]) -> list[object]:
    """Outputs of `function` on each input, or RefusedSourceError / RuntimeError with the reason.

    The subprocess is isolated from the environment and site packages, has no builtins but a few pure
    ones, 2 CPU seconds, 512 MiB, 64 KiB of output, and may open no file and start no process.
    """
    job = {
        "source": checked(source, function),
        "function": function,
        "inputs": inputs,
        "seconds": CPU_SECONDS,
        "bytes": MEMORY_BYTES,
        "characters": MAX_OUTPUT_CHARS,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", WORKER],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=5 * CPU_SECONDS,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError("the function ran too long") from error
    if done.returncode:
        reason = done.stderr.strip().splitlines()
        raise RuntimeError(reason[-1] if reason else f"the function was stopped ({done.returncode})")
    outputs = json.loads(done.stdout)
    assert isinstance(outputs, list)
    return outputs
