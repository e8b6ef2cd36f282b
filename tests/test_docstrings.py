"""A gloss has a noun: `site: the site that receives it`, not `site: to which is submitted`."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):\n(.*?)(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"^    \*{0,2}(\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?: (\S+)", re.MULTILINE)
NO_NOUN = re.compile(
    r"(to|for|of|in|what|which|who|whom|whose|where|how|when|that|by|with|at|as|on|from|beside|below|after|before|if"
    r"|until|since|so)\W*",
    re.IGNORECASE,
)
"""Words that begin a clause, or lean on the name that the gloss explains; `whether` is not among them."""


def find_glosses(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the first word of each gloss of a module: entries, results, and texts below a name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for heading, text in SECTION.findall(ast.get_docstring(node) or ""):
                result = heading in ("Returns", "Yields")
                yield from [(heading, text.split()[0])] if result else ENTRY.findall(text)
        statements = getattr(node, "body", [])
        pairs = pairwise(statements) if isinstance(statements, list) else ()
        for named, below in pairs:
            match named, below:
                case (ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text)))):
                    yield ast.unparse(named).partition("=")[0].strip(), text.split()[0]


def test_a_gloss_begins_with_a_noun() -> None:
    planted = (
        'def f(a, *b):\n    """Do it.\n\n    Args:\n        a: to which it goes.\n        *b (int): the rest.\n\n'
        '    Returns:\n        What it is.\n\n    Raises:\n        BadInput: by a rule.\n    """\n\n'
        'C = 1\n"""How many."""\n'
    )
    assert sorted(find_glosses(planted)) == [
        ("BadInput", "by"), ("C", "How"), ("Returns", "What"), ("a", "to"), ("b", "the"),
    ]  # fmt: skip
    paths = sorted(path for folder in ("benchmark/podeval", "space") for path in (CHECKOUT / folder).rglob("*.py"))
    names = {path: path.relative_to(CHECKOUT).as_posix() for path in paths}
    wrong = [
        f"{names[path]}: {name}: {word}"
        for path in paths
        for name, word in find_glosses(path.read_text("utf-8"))
        if NO_NOUN.fullmatch(word)
    ]
    assert wrong == []
