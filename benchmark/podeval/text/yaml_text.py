"""Read untrusted YAML, with libyaml if it is installed, and check limits before the document takes up time.

Aliases are allowed, because the design of a listening test may repeat its stimuli; the size with every alias expanded
is checked first.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from podeval.errors import BadInput

LONGEST_YAML = 200_000
"""Maximum number of characters of a document; a listening test with five hundred items has fewer."""
DEEPEST = 100
"""Maximum depth of nesting, because libyaml would recurse until the stack overflows."""
MOST_VALUES = 300_000
"""Maximum number of values in a document with every alias expanded."""
LONGEST_NUMBER = 1_000
"""Maximum number of characters in a number, or in anything else that consists only of digits and colons."""

_NUMBER = re.compile(r"[-+\d:._]+")
PLAIN_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The YAML loader: libyaml's if it is installed."""

# With untrusted YAML, the loader raises more than YAMLError: KeyError for `!!bool maybe`, IndexError for `!!int ""`,
# ValueError for an invalid date, TypeError for a list as a key.
_ERRORS = (ValueError, LookupError, TypeError, AttributeError, OverflowError)


class _Loader(PLAIN_LOADER):  # type: ignore[misc]
    """A loader that reports the position of any value that it cannot construct."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _ERRORS as error:
            kind = node.tag.replace("tag:yaml.org,2002:", "!!")
            why = f": {error}" if isinstance(error, ValueError) else ""
            problem = f"this cannot be read as {kind}{why}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def read_yaml(text: str, longest: int = LONGEST_YAML) -> Any:
    """Read a YAML document as plain data.

    Raises:
        BadInput: the text is not YAML, or is longer, more deeply nested or, through its aliases, larger than allowed;
            the message does not name the document.
    """
    if len(text) > longest:
        raise BadInput(f"the YAML has {len(text):,} characters, but at most {longest:,} are read; split it into parts")
    return _load(text, bounded=True)


def _load(text: str, *, bounded: bool) -> Any:
    """Load a document, but first refuse one that would grow without bound."""
    try:
        if bounded:
            _refuse_endless(text)
        return yaml.load(text, _Loader)
    except RecursionError:
        raise BadInput("the YAML is nested too deeply") from None
    except (yaml.YAMLError, *_ERRORS) as error:
        raise BadInput(f"this is not YAML{_describe_error(error, text)}") from None


def read_yaml_file(path: Path, *, trusted: bool = False) -> Any:
    """Read a YAML file as plain data.

    Args:
        path: the path of the file.
        trusted: whether it is the operator's own file, whose size is not limited.

    Raises:
        BadInput: the file cannot be read, or is not YAML; the message names the file and the line and column of an
            error.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text; save it as plain text") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({(error.strerror or str(error)).lower()}); check the path") from None
    try:
        return _load(text, bounded=False) if trusted else read_yaml(text)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def find_place(text: str, location: Sequence[str | int]) -> str:
    """Return the position of a field in a parsed document, as `line 3, column 5`.

    Args:
        text: the document.
        location: keys and positions in lists that lead to the field. For a missing field, the result is the position of
            the block that should contain it; names that are not keys, such as those of a union's kinds, are skipped.
    """
    mark = find_mark(yaml.compose(text, PLAIN_LOADER), location)
    return _describe_mark(mark) if mark else "line 1, column 1"


def find_mark(node: yaml.Node | None, location: Sequence[str | int]) -> yaml.Mark | None:
    """Return the position of a field below a node, like `find_place`; None if there is no node."""
    mark = node.start_mark if node else None
    for part in location:
        entry = _look_up(node, part)
        if entry is not None:
            mark, node = entry[0].start_mark, entry[1]
    return mark


def describe_place(path: Path, location: Sequence[str | int]) -> str:
    """Return a file's name with the position of a field, as `judge.yaml, line 3, column 5`."""
    try:
        return f"{path}, {find_place(path.read_text(encoding='utf-8'), location)}"
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        # The file was read a moment ago, but has changed since then.
        return str(path)


def _look_up(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key, or of a list entry, and of its value."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    if not isinstance(node, yaml.MappingNode):
        return None
    merged: list[yaml.Node] = []
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == str(part):
            return key, value
        if key.tag == "tag:yaml.org,2002:merge":
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
    return next((entry for one in merged if (entry := _look_up(one, part))), None)


def _describe_error(error: Exception, text: str) -> str:
    """Describe an error by its line and column, counted from 1."""
    if isinstance(error, yaml.reader.ReaderError):
        return f": {_describe_character(text)}"
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return f": {error}"
    reasons = [getattr(error, "context", None), getattr(error, "problem", None)]
    return f": {_describe_mark(mark)}: {', '.join(reason for reason in reasons if reason)}"


def _describe_mark(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _describe_character(text: str) -> str:
    """Describe the first character that YAML does not allow; libyaml counts bytes and does not report their line."""
    match = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if match is None:
        return "a character is not allowed; save it as UTF-8"
    before = text[: match.start()]
    line, column = before.count("\n") + 1, match.start() - (before.rfind("\n") + 1) + 1
    return f"line {line}, column {column}: the character U+{ord(match[0]):04X} is not allowed; remove it"


def _refuse_endless(text: str) -> None:
    """Refuse deep nesting and aliases that multiply, using only the parser's events, before any data is built."""
    counts = [0]
    anchors: list[str | None] = [None]
    values: dict[str, int] = {}
    for event in yaml.parse(text, PLAIN_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            counts.append(1)
            anchors.append(event.anchor)
            if len(counts) > DEEPEST + 1:
                raise BadInput(f"the YAML is nested more than {DEEPEST} deep: {_describe_mark(event.start_mark)}")
        elif isinstance(event, yaml.CollectionEndEvent):
            count, anchor = counts.pop(), anchors.pop()
            counts[-1] += count
            if anchor:
                values[anchor] = count
        elif isinstance(event, yaml.AliasEvent):
            name = str(event.anchor)
            if name in anchors:
                location = _describe_mark(event.start_mark)
                raise BadInput(f"the list or block {name[:40]} contains itself: {location}")
            counts[-1] += values.get(name, 1)
            # This is checked while a node is open and not only at its end, because nested sums would grow without
            # bound.
            if counts[-1] > MOST_VALUES:
                location = _describe_mark(event.start_mark)
                raise BadInput(
                    f"the YAML's aliases repeat more than {MOST_VALUES:,} values: {location}; use fewer aliases"
                )
        elif isinstance(event, yaml.ScalarEvent):
            # `1:30:00` is a base-60 number in YAML 1.1; computing it takes quadratic time.
            if len(event.value) > LONGEST_NUMBER and _NUMBER.fullmatch(event.value):
                location = _describe_mark(event.start_mark)
                raise BadInput(
                    f"a number has {len(event.value):,} characters, but at most {LONGEST_NUMBER:,} are read: {location}"
                )
            counts[-1] += 1
            if event.anchor:
                values[event.anchor] = 1
    if counts[0] > MOST_VALUES:
        raise BadInput(f"the YAML has more than {MOST_VALUES:,} values; split it into parts")
