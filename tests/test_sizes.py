"""A module fits on a few screens and a function on one; the whole stays within a budget; exceptions say why.

The budget is the table in docs/decisions/house.md; `python tests/test_sizes.py` prints what there is.
"""

import ast
import gc
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
MODULE, FULLER, FUNCTION = 400, 580, 60
"""Most lines of a module, of one that was asked whether it is two things, and of a function."""

ONE_THING = {
    "texts.py": "one table of sentences, which may be longer",
    "audio/container.py": "a WAV file is read here and nowhere else",
    "audio/decode.py": "from a file to its samples",
    "audio/loudness.py": "the meter of one standard",
    "audio/samples.py": "everything that a recording is asked before it is measured",
    "measuring/engine.py": "the one path of `measure` and `score`",
    "measuring/inputs.py": "what is given, and what can be measured with it",
    "metrics/catalogue.py": "what a metric declares, and where it is found",
    "recording/recording.py": "a recording with its facts, from whatever it is opened",
}
"""Fuller modules, with the reason why each is one thing."""

FROZEN = "a migration that has run on databases is never edited"
OPTIONS = "its parameters are the command's options, each with its help"
TEXT = "its docstring gives the formula or the parameters; the body is far below"
UNTOUCHED = "votes and ratings are left as they were checked; their steps are told by comments"

LONG = {
    "store/migrations/versions/0001_the_tables_of_human_judgement.py:upgrade": FROZEN,
    "store/migrations/versions/0002_the_tables_of_submissions.py:upgrade": FROZEN,
    "cli/worker.py:worker": OPTIONS,
    "cli/compare.py:compare": OPTIONS,
    "cli/measure.py:measure": OPTIONS,
    "cli/report.py:audit": OPTIONS,
    "cli/run.py:run": OPTIONS,
    "cli/score.py:score": OPTIONS,
    "cli/datasets.py:construct": OPTIONS,
    "cli/judge.py:battles": OPTIONS,
    "cli/validation.py:agreement": OPTIONS,
    "cli/data_tools.py:segments": OPTIONS,
    "measuring/engine.py:measure": TEXT,
    "metrics/audio/reverb_consistency.py:reverb_consistency": TEXT,
    "metrics/catalogue.py:metric": TEXT,
    "metrics/speech/timbre_consistency.py:timbre_consistency": TEXT,
    "runs/measure.py:measure": TEXT,
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
    long = {path: lines for path, text in modules() if (lines := text.count("\n")) > MODULE}
    assert long.keys() == ONE_THING.keys(), f"is each one thing? {long}"
    assert max(long.values()) <= FULLER, long


def test_no_function_is_longer_than_a_screen() -> None:
    counts = [(f"{path}:{name}", lines, steps) for path, text in modules() for name, lines, steps in functions(text)]
    long = {name: lines for name, lines, _ in counts if lines > FUNCTION}
    assert long.keys() == LONG.keys(), {name: lines for name, lines in long.items() if name not in LONG}
    # Whoever is on the list for its options or its docstring has a body that fits all the same.
    assert [name for name, _, steps in counts if steps > FUNCTION and LONG[name] is not FROZEN] == []
    assert len(LONG) <= 0.004 * len(counts)


BUDGET = CHECKOUT / "docs" / "decisions" / "house.md"
TESTS_FOR_PRODUCT = 1.5
"""Statements of tests that an issue may add for each statement of product that it may."""
ROOMS = {"tests": "statements of tests", "studies": "statements of studies"}


def count_statements(source: str) -> int:
    """Count the statements of a module; docstrings and texts below constants are free."""
    nodes = list(ast.walk(ast.parse(source)))
    free = sum(isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str) for node in nodes)
    return sum(isinstance(node, ast.stmt) for node in nodes) - free


def count_commands(command: Any) -> int:
    """Count what can be run below a command of the command line."""
    nested = getattr(command, "commands", None)
    return sum(map(count_commands, dict(nested).values())) if nested else 1


def measure() -> Counter[str]:
    """What there is of everything that has a limit."""
    import typer.main

    from podeval.cli import app

    counts = Counter({"commands": count_commands(typer.main.get_command(app))})
    listed = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    for path in filter(Path.is_file, map(CHECKOUT.joinpath, listed.splitlines())):
        room = ROOMS.get(path.relative_to(CHECKOUT).parts[0], "statements of product")
        if path.suffix == ".py":
            counts[room] += count_statements(path.read_text("utf-8"))
            counts["modules"] += room == "statements of product"
        elif path.suffix in (".js", ".html", ".css") and room == "statements of product":
            counts["lines of JavaScript, templates and stylesheets"] += path.read_text("utf-8").count("\n")
    return counts


def read_budget(page: str) -> dict[str, float]:
    """Read the limit of everything that is counted, with the allowances of the issues that have begun."""
    part = page.partition("## The budget\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("| ")]
    numbers = {row[0]: float(row[1].replace(",", "").replace("−", "-")) for row in rows if row[1][-1:].isdigit()}
    begun = sum(numbers.pop(row[0]) for row in rows if row[-1] == "begun")
    limits = {name: limit for name, limit in numbers.items() if not name.startswith("issue: ")}
    limits["statements of product"] += begun
    limits["statements of tests"] += TESTS_FOR_PRODUCT * max(begun, 0)
    return limits


def test_an_allowance_counts_once_its_issue_has_begun() -> None:
    limits = "| what | limit |\n|---|---|\n| statements of product | 1,000 |\n| statements of tests | 900 |\n"
    issues = "| issue | allowance | state |\n|---|---|---|\n| issue: a | +200 | begun |\n| issue: b | −700 | |\n"
    page = f"## The budget\n{limits}\n{issues}\n## Next\n| z | 1 |\n"
    assert read_budget(page) == {"statements of product": 1_200, "statements of tests": 1_200}
    assert count_statements('"""Free."""\nA = 1\n"""Free."""\n\ndef f():\n    """Free."""\n    return A\n') == 3


def test_the_house_stays_within_its_budget() -> None:
    limits, counts = read_budget(BUDGET.read_text("utf-8")), measure()
    assert limits.keys() == counts.keys()
    assert {name: count for name, count in counts.items() if count > limits[name]} == {}, limits


if __name__ == "__main__":
    gc.disable()  # Trees have no circles, and looking for some takes longer than reading all.
    print("\n".join(f"| {name} | {count:,} |" for name, count in sorted(measure().items())))
