"""A gloss of an argument has a noun: `site: the site that receives it`, not `site: to which is submitted`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
ENTRY = re.compile(r"^    \*{0,2}(\w+)(?: \([^)]*\))?: (\S+)", re.MULTILINE)
NO_NOUN = frozenset(["of", "that", "to", "whose", "which", "by", "who", "where", "when", "if"])
"""What begins a clause, or leans on the name that it should explain."""


def find_glosses(source: str) -> Iterator[tuple[str, str]]:
    """Yield each argument in the docstrings of a module, with the first word of its gloss."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            entries = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", ast.get_docstring(node) or "", re.DOTALL | re.MULTILINE)
            yield from ENTRY.findall(entries[1] if entries else "")


def test_a_gloss_begins_with_what_the_argument_is() -> None:
    planted = (
        'def f(a, *b):\n    """Do it.\n\n    Args:\n        a: to which it goes.\n        *b (int): the rest.\n    """'
    )
    assert list(find_glosses(planted)) == [("a", "to"), ("b", "the")]
    paths = sorted(path for folder in ("benchmark/podeval", "space") for path in (CHECKOUT / folder).rglob("*.py"))
    wrong = [
        f"{path.relative_to(CHECKOUT)}: {name}: {word}"
        for path in paths
        for name, word in find_glosses(path.read_text("utf-8"))
        if word.strip(",").lower() in NO_NOUN
    ]
    assert wrong == []
