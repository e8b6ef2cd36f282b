"""Parses the answer of a judge: tolerant of its form, strict about its content.

Tolerated: reasoning before the answer, code fences, surrounding prose, trailing commas, comments, full-width colons and
commas, keys in another case or spelling or by the aliases of the answer's fields (Chinese ones), `36/45` where a
number is expected and 45 is its maximum, numbers as strings, 0 and 1 for no and yes. Not tolerated: a truncated
answer, several answers that differ, a key with two different values, NaN, a value out of range. An answer that cannot
be parsed is an `UnreadableAnswer` with a sentence; no value is ever made up for it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from podeval.judges.answer_validation import Answer, UnreadableAnswer, shorten, validate
from podeval.models.chat import ChatAnswer
from podeval.text.reasoning import strip_thoughts


def read_answer(answer: ChatAnswer, model: type[Answer]) -> Answer:
    """Return the answer in its type.

    Raises:
        UnreadableAnswer: there is no answer, or it does not fit the type.
    """
    text = _strip_thinking(answer.text or "")
    if not text.strip():
        raise UnreadableAnswer(_why_empty(answer))
    if answer.refusal:
        raise UnreadableAnswer(f"the judge refused: {shorten(answer.refusal)}")
    try:
        return parse(text, model)
    except UnreadableAnswer as problem:
        if answer.finish == "length":
            raise UnreadableAnswer(f"the answer was cut off at the longest that is allowed; {problem}") from None
        if answer.finish == "content_filter":
            raise UnreadableAnswer(f"a content filter stopped the answer; {problem}") from None
        raise


_MOST_OBJECTS = 1_000
"""More different objects than any real answer holds; each is validated, and repaired if possible."""


def parse(text: str, model: type[Answer]) -> Answer:
    """Parse the answer in a text into its type.

    Raises:
        UnreadableAnswer: see `read_answer`.
    """
    try:
        return _parse_object(text, model)
    except RecursionError:
        raise UnreadableAnswer("the answer is nested deeper than any answer that was asked for") from None


def _parse_object(text: str, model: type[Answer]) -> Answer:
    # Keyed by canonical form: comparing each with all before it takes quadratic time for thousands of objects.
    # All different objects in the text.
    objects: dict[str, Any] = {}
    problem: UnreadableAnswer | None = None
    for span in _objects(_strip_thinking(text)):
        try:
            data = _load(span)
        except ValueError as error:
            problem = problem or UnreadableAnswer(f"the answer is not valid JSON: {error}")
            continue
        objects.setdefault(json.dumps(data, sort_keys=True), data)
        if len(objects) > _MOST_OBJECTS:
            raise UnreadableAnswer(f"there are more than {_MOST_OBJECTS} different objects in the answer; give one")
    # All different answers that are valid.
    valid: dict[str, Answer] = {}
    for data in objects.values():
        try:
            value = validate(data, model)
        except UnreadableAnswer as error:
            problem = error
            continue
        valid.setdefault(value.model_dump_json(), value)
    # Exactly one may remain.
    if len(valid) == 1:
        return next(iter(valid.values()))
    if valid:
        raise UnreadableAnswer(f"there are {len(valid)} different answers; give one")
    raise problem or UnreadableAnswer(f"the answer holds no JSON object; it begins {shorten(text)!r}")


def _why_empty(answer: ChatAnswer) -> str:
    if answer.refusal:
        return f"the judge refused: {shorten(answer.refusal)}"
    if answer.tools:
        return f"instead of an answer the judge called the tool {', '.join(answer.tools)}; answer with the JSON object"
    if answer.finish == "content_filter":
        return "a content filter stopped the answer"
    if answer.finish == "length":
        return "the answer was cut off at the longest that is allowed before it began; think less, then answer"
    return "the answer is empty; answer with the JSON object"


_ONLY_FENCED = re.compile(r"\s*```[\w-]*[ \t]*\n(.*)\n```\s*", re.DOTALL)


def _strip_thinking(text: str) -> str:
    """Return the text after the reasoning; empty if the reasoning never ends.

    In a complete answer, such tags are words.
    """
    alone = _ONLY_FENCED.fullmatch(text)
    try:
        if isinstance(json.loads(alone[1] if alone else text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    return strip_thoughts(text)


_FENCED = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)


def _objects(text: str) -> Iterator[str]:
    """Yield the outermost {...} of the text, or of its fenced blocks if those contain any.

    Raises:
        UnreadableAnswer: one of them is truncated.
    """
    fenced = [block for block in _FENCED.findall(text) if "{" in block]
    for part in fenced or [text]:
        position = part.find("{")
        while position >= 0:
            end = _find_closing(part, position)
            if end is None:
                raise UnreadableAnswer("the answer breaks off before its JSON object ends")
            yield part[position:end]
            position = part.find("{", end)


def _find_closing(text: str, start: int) -> int | None:
    """Return the position after the brace that closes the one at `start`; braces inside strings do not count."""
    depth, in_string, escaped = 0, False, False
    for position in range(start, len(text)):
        sign = text[position]
        if in_string:
            if escaped:
                escaped = False
            elif sign == "\\":
                escaped = True
            elif sign == '"':
                in_string = False
        elif sign == '"':
            in_string = True
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return position + 1
    return None


def _load(text: str) -> Any:
    """Decode JSON as it is or, failing that, after repairing it."""
    try:
        return _decode(text)
    except json.JSONDecodeError as error:
        try:
            return _decode(_mend(text))
        except json.JSONDecodeError:
            raise ValueError(
                f"{error.msg} at character {error.pos}, near {text[error.pos : error.pos + 20]!r}"
            ) from None


def _decode(text: str) -> Any:
    # Line breaks inside strings do no harm.
    return json.loads(text, strict=False, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated_keys)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data and data[key] != value:
            raise ValueError(f"the key {key!r} stands there twice, with different values")
        data[key] = value
    return data


_PIECES = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*(?:"|\Z))|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<other>.)', re.DOTALL
)
_HALF_WIDTH = str.maketrans("：，", ":,")


def _mend(text: str) -> str:
    """Remove comments and trailing commas and use ASCII punctuation; strings stay as they are."""
    pieces: list[str] = []
    for match in _PIECES.finditer(text):
        if match["comment"]:
            continue
        pieces.append(match["string"] or match["other"].translate(_HALF_WIDTH))
    kept: list[str] = []
    following = ""
    for piece in reversed(pieces):
        if piece == "," and following in ("}", "]"):
            continue
        kept.append(piece)
        if not piece.isspace():
            following = piece
    return "".join(reversed(kept))
