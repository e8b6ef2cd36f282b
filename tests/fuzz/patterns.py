"""Every regular expression of podeval and its site, with how it is used and inputs that make a careless one slow.

A pattern is found in the sources, not in a list that somebody keeps: `re.compile` at the top of a module, and `re.sub`
and its like in functions. Inputs come from the pattern's own parse: a repeat that is filled and then fails, the words
before a repeat again and again, and single signs. A pattern that takes quadratic time on 16,000 characters of one of
them is seen at once.
"""

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

REPOSITORY = Path(__file__).parents[2]
ROOTS = (REPOSITORY / "benchmark", REPOSITORY / "space")

ANYWHERE = frozenset({"search", "sub", "subn", "findall", "finditer", "split"})
AT_THE_BEGINNING = frozenset({"match", "fullmatch"})

SIGNS = (
    " ",
    "\n",
    "\t",
    "a",
    "A",
    "1",
    "一",
    "a ",
    "1,",
    "1.",
    ". ",
    "，",
    ":",
    "：",
    "-",
    "_",
    "*",
    "/",
    "/a",
    "a@",
    "a.",
)
SIGNS += (
    "(",
    "[",
    "{",
    "<",
    '"',
    "'",
    "“",
    "《",
    "【",
    "|",
    "#",
    ">",
    "\\",
    "A: ",
    "Host 1: ",
    "<think>",
    "```\n",
    "1:",
)
ENDS = ("", "\0", "\n", "!")


@dataclass(frozen=True)
class Use:
    """A pattern, where it stands, and the methods of it that are used."""

    place: str
    pattern: re.Pattern[str]
    methods: frozenset[str]

    def run(self, text: str) -> None:
        """Look for it as its users do."""
        if not self.methods or self.methods - AT_THE_BEGINNING:
            for _ in self.pattern.finditer(text):
                pass
        if "match" in self.methods:
            self.pattern.match(text)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(text)


def uses() -> Iterator[Use]:
    """Every pattern that can be evaluated, once for each way it is used."""
    for root in ROOTS:
        for path in sorted(root.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if "re." in source and re.search(r"\bre\.\w+\(", source):
                yield from _uses_in(path, source, root)


def _uses_in(path: Path, source: str, root: Path) -> Iterator[Use]:
    tree = ast.parse(source)
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    names: Mapping[str, Any] = vars(importlib.import_module(name))
    place = str(path.relative_to(REPOSITORY))
    for variable, value in names.items():
        for pattern in _patterns(value):
            if isinstance(pattern.pattern, str) and re.search(rf"^{variable}\b", source, re.MULTILINE):
                methods = frozenset(re.findall(rf"\b{variable}\.(\w+)\(", source))
                yield Use(f"{place} {variable}", pattern, methods)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if not isinstance(call.func.value, ast.Name) or call.func.value.id != "re" or call.func.attr == "compile":
            continue
        if call.func.attr not in ANYWHERE | AT_THE_BEGINNING:
            continue
        try:
            written = eval(compile(ast.Expression(call.args[0]), place, "eval"), dict(names))
        except NameError:
            continue  # made of what only the function has
        if isinstance(written, str):
            flags = re.IGNORECASE if "re.I" in ast.unparse(call) else 0
            flags |= re.MULTILINE if "MULTILINE" in ast.unparse(call) else 0
            yield Use(
                f"{place} {call.func.attr} {written[:40]}", re.compile(written, flags), frozenset({call.func.attr})
            )


def _patterns(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _patterns(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _patterns(part)


def attacks(pattern: str, flags: int, size: int) -> Iterator[str]:
    """Texts of about so many characters that a careless pattern is slow on."""
    units = {*SIGNS, *_openings(parser.parse(pattern, flags))}
    for unit in sorted(units):
        body = unit * (size // len(unit))
        for end in ENDS:
            yield body + end
    for before, repeated in _repeats(parser.parse(pattern, flags)):
        filled = repeated * (size // len(repeated))
        for end in ENDS[1:3]:
            yield before + filled + end
        # Many beginnings, each of which looks as far as the last.
        yield (before or repeated) * (size // len(before or repeated)) + "\0"


def _openings(tree: Any) -> set[str]:
    """The words of a pattern before each of its repeats, and all of them."""
    return {before for before, _ in _repeats(tree) if before} | ({_sample(tree)} - {""})


def _repeats(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """For each repeat without a small limit: a text that leads to it, and one that it repeats."""
    for op, argument in tree:
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None)):
            _, most, body = argument
            yield from _repeats(body, before)
            if most > 15 and (sample := _sample(body)):
                yield before, sample
        elif op is codes.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch, before)
        elif op is codes.SUBPATTERN:
            yield from _repeats(argument[-1], before)
        elif op is getattr(codes, "ATOMIC_GROUP", None):
            yield from _repeats(argument, before)
        before += _sample([(op, argument)])


def _sample(tree: Any) -> str:
    """A short text that fits, as far as can be told without looking around."""
    return "".join(_sample_of(op, argument) for op, argument in tree)


def _sample_of(op: Any, argument: Any) -> str:
    if op is codes.LITERAL:
        return chr(argument)
    if op in (codes.ANY, codes.NOT_LITERAL):
        return "a" if argument != ord("a") else "b"
    if op is codes.IN:
        return _of_class(argument)
    if op is codes.BRANCH:
        return _sample(argument[1][0])
    if op is codes.SUBPATTERN:
        return _sample(argument[-1])
    if op is getattr(codes, "ATOMIC_GROUP", None):
        return _sample(argument)
    if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None)):
        least, _, body = argument
        return _sample(body) * max(min(least, 3), 0)
    return ""


_CLASSES = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_NOT_WORD: "!",
}


def _of_class(members: Any) -> str:
    """One sign of a class."""
    first, *_ = members
    if first[0] is codes.NEGATE:
        pattern = re.compile("".join(["[^", *(_written(member) for member in members[1:]), "]"]))
        return next((sign for sign in "a 1!\n~一\0" if pattern.match(sign)), "")
    op, argument = first
    if op is codes.LITERAL:
        return chr(argument)
    if op is codes.RANGE:
        return chr(argument[0])
    return _CLASSES[argument]


def _written(member: Any) -> str:
    op, argument = member
    if op is codes.LITERAL:
        return re.escape(chr(argument))
    if op is codes.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    written = {codes.CATEGORY_DIGIT: "d", codes.CATEGORY_SPACE: "s", codes.CATEGORY_WORD: "w"}
    negative = {codes.CATEGORY_NOT_DIGIT: "D", codes.CATEGORY_NOT_SPACE: "S", codes.CATEGORY_NOT_WORD: "W"}
    return "\\" + (written | negative)[argument]


def seconds(run: Callable[[], object], tries: int = 3) -> float:
    """Seconds of this thread's processor that a call takes; the least of some tries."""
    least = float("inf")
    for _ in range(tries):
        began = time.thread_time()
        run()
        least = min(least, time.thread_time() - began)
    return least
