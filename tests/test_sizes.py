"""A module fits on a few screens and a function on one; a test counts, and exceptions say why."""

import ast
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
MODULE, FUNCTION = 400, 60
"""Most lines."""

FROZEN = "a migration that has run on databases is never edited"
OPTIONS = "its parameters are the command's options, each with its help"
TEXT = "its docstring gives the formula or the parameters; the body is far below"
UNTOUCHED = "votes and ratings are left as they were checked; their steps are told by comments"

LONG = {
    "store/migrations/versions/0001_the_tables_of_human_judgement.py:upgrade": FROZEN,
    "store/migrations/versions/0002_the_tables_of_submissions.py:upgrade": FROZEN,
    "cli/worker.py:worker": OPTIONS,
    "cli/measure.py:measure": OPTIONS,
    "cli/run.py:run": OPTIONS,
    "cli/score.py:score": OPTIONS,
    "cli/construct.py:construct": OPTIONS,
    "cli/data_tools.py:segments": OPTIONS,
    "metrics/declaration.py:metric": TEXT,
    "metrics/timbre_consistency.py:timbre_consistency": TEXT,
    "runs/measure.py:measure": TEXT,
    "pages/mcp.py:build_tools": TEXT,
    "stats/intervals.py:mean_ci": TEXT,
    "stats/intervals.py:paired_difference": TEXT,
    "arena/voting.py:record": UNTOUCHED,
    "stats/bradley_terry.py:rate": UNTOUCHED,
}
"""Longer functions, as `path:name` below the engine or the site, with the reason."""


def modules() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every module of the engine and of the site."""
    for root in (CHECKOUT / "benchmark" / "podeval", CHECKOUT / "space"):
        for path in sorted(root.rglob("*.py")):
            yield path.relative_to(root).as_posix(), path.read_text("utf-8")


def functions(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name of every function, its lines, and those after its docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            steps = node.end_lineno - body[0].lineno + 1 if body else 0
            yield node.name, node.end_lineno - node.lineno + 1, steps


def test_the_counts_are_right() -> None:
    source = 'def outer(\n    a,\n):\n    """What."""\n    def inner(): pass\n    return inner\n'
    assert sorted(functions(source)) == [("inner", 1, 1), ("outer", 6, 2)]


def test_no_module_is_longer_than_a_few_screens() -> None:
    assert [(path, lines) for path, text in modules() if (lines := text.count("\n")) > MODULE] == []


def test_no_function_is_longer_than_a_screen() -> None:
    counts = [(f"{path}:{name}", lines, steps) for path, text in modules() for name, lines, steps in functions(text)]
    long = {name: lines for name, lines, _ in counts if lines > FUNCTION}
    assert long.keys() == LONG.keys(), {name: lines for name, lines in long.items() if name not in LONG}
    # Whoever is on the list for its options or its docstring has a body that fits all the same.
    assert [name for name, _, steps in counts if steps > FUNCTION and LONG[name] is not FROZEN] == []
    assert len(LONG) <= 0.004 * len(counts)
