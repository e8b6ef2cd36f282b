"""List every sentence that the engine and the site show to a user, as found in the code.

`python studies/user_messages.py` prints the sentences by file and line, and their number. They are messages of
exceptions, reasons for unscored items, help and summaries of commands, output of commands, warnings, titles of running
tasks, and the texts of metrics: purpose, computation, parameters, and conclusions to avoid. In addition to the code,
the script reads the cards of datasets and the docs pages for users, paragraph by paragraph. A text that is put together
from parts contains `{…}` in place of each value.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
ROOTS = ("benchmark/podeval", "space", "dataset_builders", "hf_metrics")
PRINTED = frozenset(
    {"echo", "secho", "print", "warn", "warning", "info", "error", "confirm", "prompt", "fail", "write"}
)
"""Functions and methods whose texts people read."""
SAID_BY = frozenset({"Unscored", "Finding", "Refusal", "Problem", "CodedSentence", "Step", "Note", "Check", "Answer"})
"""Classes whose texts are sentences, in addition to exceptions."""
HELP = frozenset(
    {"help", "about", "caution", "intended_use", "limitations", "only_for", "unreached", "message", "source"}
    | {"description", "title", "summary", "note", "task", "purpose"}
)
"""Arguments whose texts are shown."""
PAGES = (
    *("README.md", "docs/README.md", "docs/guide.md", "docs/running.md", "docs/arena.md", "docs/listening-tests.md"),
    *("docs/adapters.md", "docs/gaming.md", "docs/validity.md", "docs/ratings.md", "docs/operating.md"),
    *("docs/performance.md", "docs/submitting.md", "docs/hub.md", "docs/programs.md", "docs/reading-scores.md"),
    *("docs/metrics.md", "dataset_builders/*/README.md", "hf_metrics/*/README.md"),
)
"""Documents for users."""
WORDY = 2
"""Minimum number of words in a text that may be a sentence."""


@dataclass(frozen=True)
class UserMessage:
    """A text with its position and its kind."""

    file: str
    line: int
    kind: str
    text: str


def list_messages(checkout: Path = CHECKOUT) -> list[UserMessage]:
    """Return every text that a user may read, by file and line."""
    files = sorted(path for root in ROOTS for path in (checkout / root).rglob("*.py"))
    pages = sorted(path for pattern in PAGES for path in checkout.glob(pattern))
    return [
        *(message for path in files for message in _read_file(path, checkout)),
        *(message for path in pages for message in _read_page(path, checkout)),
    ]


def _read_page(path: Path, checkout: Path) -> Iterator[UserMessage]:
    """Yield the paragraphs, rows and entries of a page, without code."""
    blocks: list[tuple[int, list[str]]] = []
    code = False
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and line.strip():
            begins = line.lstrip().startswith(("|", "- ", "#", "1. ", ">"))
            if begins or not blocks or blocks[-1][0] + len(blocks[-1][1]) != number:
                blocks.append((number, []))
            blocks[-1][1].append(line.strip())
    for number, lines in blocks:
        yield UserMessage(str(path.relative_to(checkout)), number, "page", " ".join(lines))


def _read_file(path: Path, checkout: Path) -> Iterator[UserMessage]:
    name = str(path.relative_to(checkout))
    tree = ast.parse(path.read_text("utf-8"))
    texts: dict[tuple[int, str], str] = {}
    for node in ast.walk(tree):
        for kind, expression in _find_texts(node, is_command_line="/cli/" in name):
            for line, text in _read_texts(expression):
                texts.setdefault((line, " ".join(text.split())), kind)
    if "\n@metric(\n" in path.read_text("utf-8"):
        for line, text in _read_metric(tree):
            texts.setdefault((line, " ".join(text.split())), "metric")
    # Constants of modules and classes contain sentences that are shown elsewhere.
    for line, text in _read_constants(tree):
        texts.setdefault((line, " ".join(text.split())), "constant")
    for (line, text), kind in sorted(texts.items()):
        if len(text.split()) >= WORDY and any(letter.isascii() and letter.islower() for letter in text):
            yield UserMessage(name, line, kind, text)


def _find_texts(node: ast.AST, *, is_command_line: bool) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from (("raised", argument) for argument in node.exc.args)
        yield from (("raised", keyword.value) for keyword in node.exc.keywords if keyword.arg != "code")
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in PRINTED or called in SAID_BY or called.endswith(("Error", "Refused", "Missing", "BadInput")):
            yield from (("said", argument) for argument in node.args)
        yield from (("shown", keyword.value) for keyword in node.keywords if keyword.arg in HELP)
    if is_command_line and isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
        yield "help", ast.copy_location(ast.Constant(ast.get_docstring(node, clean=False) or ""), node)
    if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
        yield "given", node.value


def _read_metric(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the description of a metric's computation, paragraph by paragraph, and of its parameters."""
    for part in (ast.get_docstring(tree) or "").split("\n\n"):
        yield 1, part
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            arguments = (ast.get_docstring(node) or "").partition("Args:\n")[2].partition("\n\n")[0]
            yield node.lineno, arguments


def _read_texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of an expression; those of inserted values are separate."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.lineno, node.value
    elif isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _read_texts(part.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _read_texts(child)


def _read_constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for statement in (one for body in bodies for one in body):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield from _read_texts(statement.value)


def main() -> None:
    """Print the messages and their number."""
    messages = list_messages()
    for message in messages:
        print(f"{message.file}:{message.line} [{message.kind}] {message.text}")
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(one.kind for one in messages).most_common())
    print(f"{len(messages)} texts ({kinds})", file=sys.stderr)


if __name__ == "__main__":
    main()
