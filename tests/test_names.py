"""Names are what somebody would search for: classes once, variables by what they hold."""

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
ENGINE = CHECKOUT / "benchmark" / "podeval"

POINTERS = frozenset(
    [
        "found",
        "told",
        "said",
        "known",
        "given",
        "own",
        "there",
        "shown",
        "made",
        "taken",
        "named",
        "wanted",
        "asked",
        "place",
        "heard",
        "listed",
    ]
)
"""What a thing is not called: that it was found, told or given says nothing of what it is."""

PARTICIPLES = POINTERS | frozenset(
    [
        "worded",
        "checked",
        "placed",
        "settled",
        "kept",
        "counted",
        "written",
        "drawn",
        "seen",
        "held",
        "bounded",
        "dressed",
        "noted",
        "marked",
        "judged",
    ]
)

SHARED = {
    # Names in `$defs` of the schemas of judges' answers are part of prompts' ids, and so of protocols.
    "Dimension": "a benchmark's, and a judge's answer on PodBench's quality",
    "Item": "a benchmark's, and a judge's answer on PodBench's quality",
    "Requirement": "two answers of language models, in construction and in a checklist",
    "Verdict": "two answers of language models, in construction and in a rubric",
}
"""Public class names that stand for two things, with the reason."""


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the engine and of the site, by its path."""
    paths = [*ENGINE.rglob("*.py"), *(CHECKOUT / "space").rglob("*.py")]
    return {str(path.relative_to(CHECKOUT)): ast.parse(path.read_bytes()) for path in sorted(paths)}


def test_a_public_class_name_exists_once() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path)
    twice = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert set(twice) == set(SHARED), {name: paths for name, paths in twice.items() if name not in SHARED}
    assert sum(map(len, twice.values())) <= 0.02 * sum(map(len, modules.values()))


def pointers(prefix: str) -> tuple[Counter[str], int]:
    """How often each pointer is a variable's name in modules below a path, and how many variables are stored there."""
    stored = 0
    counts: Counter[str] = Counter()
    for path, tree in trees().items():
        if not path.startswith(prefix):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored += 1
                if node.id in POINTERS:
                    counts[f"{path}:{node.id}"] += 1
    return counts, stored


@pytest.mark.parametrize("folder", ["benchmark/", "space/"])
def test_a_variable_says_what_it_holds(folder: str) -> None:
    counts, stored = pointers(folder)
    assert counts.total() <= 0.003 * stored, f"{counts.total()} of {stored}: {counts.most_common(20)}"


def test_a_function_is_not_named_by_a_participle() -> None:
    participles = [
        f"{path}:{node.name}"
        for path, tree in trees().items()
        if path.startswith("benchmark/")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in PARTICIPLES
        if not any(getattr(d, "id", "") in ("property", "cached_property") for d in node.decorator_list)
    ]
    assert participles == []


def private_uses(path: Path) -> list[int]:
    """Find lines of a test with a private name of the engine: imported, of a module, or of what is patched."""
    tree = ast.parse(path.read_bytes())
    imported = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("podeval")]
    names = {alias.asname or alias.name for node in imported for alias in node.names}
    lines = [node.lineno for node in imported for alias in node.names if alias.name.startswith("_")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            lines += [node.lineno] if isinstance(root, ast.Name) and root.id in names else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            lines += [node.lineno] if node.value.startswith("podeval.") and "._" in node.value else []
    return lines


def test_tests_use_public_names() -> None:
    uses = [(path, line) for path in sorted((CHECKOUT / "tests").rglob("*.py")) for line in private_uses(path)]
    assert len(uses) <= 20, uses
    for path, line in uses:
        assert "#" in path.read_text("utf-8").splitlines()[line - 2], f"{path}:{line} says no reason in the line above"
