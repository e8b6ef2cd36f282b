"""Parse a judge's answer, tolerating errors of form but not of content.

Tolerated: reasoning before the answer, code fences, surrounding prose, trailing commas, comments, full-width colons and
commas, keys in another case or spelling, keys that are (Chinese) aliases of the answer's fields, `36/45` where a number
is expected and 45 is its maximum, numbers as strings, 0 and 1 for no and yes. Not tolerated: a truncated answer,
several answers that differ, a key with two different values, NaN, a value out of range. An answer that cannot be parsed
is an `UnreadableAnswer` with a sentence; podeval never invents a value for such an answer.
"""

import functools
import json
import re
import typing
from collections.abc import Iterator
from typing import Any, TypeVar

import pydantic
from pydantic.fields import FieldInfo

from podeval.errors import PodevalError
from podeval.models.chat import ChatAnswer
from podeval.text.reasoning import strip_thoughts

Answer = TypeVar("Answer", bound=pydantic.BaseModel)


class UnreadableAnswer(PodevalError):
    """Raised for an answer that cannot be parsed; the message states what the judge should correct."""


_REPAIRS = 200
"""Maximum number of errors of form that are corrected; no real answer contains that many errors."""


def validate(data: Any, model: type[Answer]) -> Answer:
    """Validate the answer with pydantic's strict rules, after correcting errors of form that pydantic reports.

    Raises:
        UnreadableAnswer: the answer is invalid; the message names up to five locations with their faults.
    """
    schema = _schema(model)
    data = _canonicalise_keys(data, model)
    for _ in range(_REPAIRS):
        try:
            return model.model_validate_json(json.dumps(data), strict=True)
        except pydantic.ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)
            # Try every object, because an object that cannot be repaired may be followed by an object that can.
            if not any([_repair(data, problem, schema) for problem in problems]):
                raise UnreadableAnswer(_describe_problems(problems)) from None
    raise UnreadableAnswer(f"the answer has more than {_REPAIRS} errors of form")


@functools.cache
def _schema(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _describe_problems(problems: list[Any]) -> str:
    sentences = []
    for problem in problems[:5]:
        location = ".".join(str(part) for part in problem["loc"]) or "the answer"
        value = "" if problem["type"] == "missing" else f", not {shorten(json.dumps(problem['input'], default=str))}"
        sentences.append(f"{location}: {problem['msg'].removeprefix('Value error, ')}{value}")
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    return "; ".join(sentences) + more


_NUMBERS = {"int_type", "float_type", "int_parsing", "float_parsing", "int_from_float", "literal_error", "enum"}
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)(?:\s*[/／]\s*(\d+(?:\.\d+)?))?")
_TRUTHS = {"true": True, "yes": True, "1": True, "是": True, "false": False, "no": False, "0": False, "否": False}


def _repair(data: Any, problem: Any, schema: dict[str, Any]) -> bool:
    """Correct one error of form in `data`; return False if the problem is of another kind."""
    *path, last = problem["loc"] or (None,)
    holder = _at(data, tuple(path))
    if isinstance(holder, dict):
        if last not in holder:
            return False
    elif not (isinstance(holder, list) and isinstance(last, int) and last < len(holder)):
        return False
    value = holder[last]
    mended: Any = None
    if problem["type"] in _NUMBERS:
        mended = _number(value, _node(schema, problem["loc"]))
    elif problem["type"] in ("bool_type", "bool_parsing") and str(value).strip().casefold() in _TRUTHS:
        mended = _TRUTHS[str(value).strip().casefold()]
    if mended is None or (mended == value and type(mended) is type(value)):
        return False
    holder[last] = mended
    return True


def _number(value: Any, node: dict[str, Any]) -> int | float | None:
    """Return the number that is meant by `"4"`, by `4.0` if an integer is expected, or by `"36/45"` if 45 is the
    maximum.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if value == int(value) and isinstance(value, float) else None
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        return None
    if match[2] is not None and float(match[2]) != node.get("maximum"):
        return None
    number = float(match[1])
    return int(number) if number == int(number) else number


def _canonicalise_keys(data: Any, kind: Any) -> Any:
    """Return the data with the schema's keys; keys match by field name or alias, regardless of case and spacing.

    Raises:
        UnreadableAnswer: two keys denote the same field.
    """
    models = _models(kind)
    if isinstance(data, list):
        return [_canonicalise_keys(item, kind) for item in data]
    if not isinstance(data, dict) or len(models) != 1:
        return data
    (model,) = models
    names: dict[str, tuple[str, Any]] = {}
    for field, about in model.model_fields.items():
        names |= {_plain(name): (_aliases(field, about)[0], about.annotation) for name in _aliases(field, about)}
    canonical: dict[str, Any] = {}
    for key, value in data.items():
        name, annotation = names.get(_plain(key), (key, None))
        if name in canonical:
            raise UnreadableAnswer(f"the answer contains {name} twice; give it once")
        canonical[name] = _canonicalise_keys(value, annotation)
    return canonical


def _models(kind: Any) -> list[type[pydantic.BaseModel]]:
    """Return the models in a type: the type itself, its list elements or its alternatives."""
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return [kind]
    models = [model for part in typing.get_args(kind) for model in _models(part)]
    return list(dict.fromkeys(models))


def _aliases(field: str, about: FieldInfo) -> list[str]:
    """Return the names of a field, with the schema's name first."""
    alias = about.validation_alias
    choices = list(alias.choices) if isinstance(alias, pydantic.AliasChoices) else [alias]
    names = [choice for choice in (*choices, about.alias, field) if isinstance(choice, str)]
    return list(dict.fromkeys(names))


def _plain(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).casefold()


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]
        # Any other step names the attempted type of a union and is not a location in the data.
    return data


def _node(schema: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """Return the part of a JSON schema that describes a location; empty if that part cannot be determined."""
    node: Any = schema
    for step in (*path, None):
        while isinstance(node, dict) and "$ref" in node:
            node = schema.get("$defs", {}).get(str(node["$ref"]).rpartition("/")[2], {})
        if step is None or not isinstance(node, dict):
            break
        if isinstance(step, int) and "items" in node:
            node = node["items"]
        elif step in node.get("properties", {}):
            node = node["properties"][step]
        elif isinstance(node.get("additionalProperties"), dict):
            node = node["additionalProperties"]
        else:
            node = {}
    return node if isinstance(node, dict) else {}


def shorten(text: str) -> str:
    """Shorten a text to one line of at most 120 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:117] + "..."


def read_answer(answer: ChatAnswer, model: type[Answer]) -> Answer:
    """Return the answer as an instance of its type.

    Raises:
        UnreadableAnswer: there is no answer, or it does not fit the type.
    """
    text = _strip_thinking(answer.text or "")
    if answer.refusal or not text.strip():
        raise UnreadableAnswer(_why_empty(answer))
    try:
        return parse(text, model)
    except UnreadableAnswer as problem:
        if answer.finish == "length":
            raise UnreadableAnswer(f"the answer was cut off at the maximum length; {problem}") from None
        if answer.finish == "content_filter":
            raise UnreadableAnswer(f"a content filter stopped the answer; {problem}") from None
        raise


_MOST_OBJECTS = 1_000
"""Maximum number of different objects, which no real answer reaches; each is validated, and repaired if possible."""


def parse(text: str, model: type[Answer]) -> Answer:
    """Parse the answer in a text into its type.

    Raises:
        UnreadableAnswer: the reasons are those of `read_answer`.
    """
    try:
        return _parse_object(text, model)
    except RecursionError:
        raise UnreadableAnswer("the answer is nested too deeply; give only the requested JSON object") from None


def _parse_object(text: str, model: type[Answer]) -> Answer:
    # Objects are keyed by their canonical form, because comparing each object with all earlier objects takes quadratic
    # time. Collect all different objects in the text.
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
            raise UnreadableAnswer(f"the answer has more than {_MOST_OBJECTS} different objects; give only one")
    # Collect all different valid answers.
    valid: dict[str, Answer] = {}
    for data in objects.values():
        try:
            value = validate(data, model)
        except UnreadableAnswer as error:
            problem = error
            continue
        valid.setdefault(value.model_dump_json(), value)
    # Exactly one answer must remain.
    if len(valid) == 1:
        return next(iter(valid.values()))
    if valid:
        raise UnreadableAnswer(f"there are {len(valid)} different answers; give only one")
    raise problem or UnreadableAnswer(f"the answer contains no JSON object; it begins {shorten(text)!r}")


def _why_empty(answer: ChatAnswer) -> str:
    if answer.refusal:
        return f"the judge refused: {shorten(answer.refusal)}"
    if answer.tools:
        return f"instead of an answer the judge called the tool {', '.join(answer.tools)}; answer with the JSON object"
    if answer.finish == "content_filter":
        return "a content filter stopped the answer"
    if answer.finish == "length":
        return "the output was cut off at the maximum length before the answer began; think less, then answer"
    return "the answer is empty; answer with the JSON object"


_ONLY_FENCED = re.compile(r"\s*```[\w-]*[ \t]*\n(.*)\n```\s*", re.DOTALL)


def _strip_thinking(text: str) -> str:
    """Return the text after the reasoning; empty if the reasoning does not end.

    In a complete answer, such tags are treated as text.
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
    """Yield the outermost {...} objects in the text, or in its fenced blocks if these contain any.

    Raises:
        UnreadableAnswer: an object is truncated.
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


_BRACES = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}]', re.DOTALL)
"""Pattern that matches braces, and also strings, because braces inside strings do not count."""


def _find_closing(text: str, start: int) -> int | None:
    """Return the position after the brace that closes the one at `start`; braces inside strings are ignored."""
    depth = 0
    for match in _BRACES.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return None


def _load(text: str) -> Any:
    """Decode JSON unchanged or, if that fails, after repairing it."""
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
    # Line breaks inside strings are harmless.
    return json.loads(text, strict=False, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated_keys)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a valid value")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data and data[key] != value:
            raise ValueError(f"the key {key!r} appears twice, with different values")
        data[key] = value
    return data


_PIECES = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*(?:"|\Z))|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<other>.)', re.DOTALL
)
_HALF_WIDTH = str.maketrans("：，", ":,")


def _mend(text: str) -> str:
    """Remove comments and trailing commas, and use ASCII punctuation; strings are not changed."""
    matches = (match for match in _PIECES.finditer(text) if not match["comment"])
    pieces = [match["string"] or match["other"].translate(_HALF_WIDTH) for match in matches]
    kept: list[str] = []
    following = ""
    for piece in reversed(pieces):
        if piece == "," and following in ("}", "]"):
            continue
        kept.append(piece)
        if not piece.isspace():
            following = piece
    return "".join(reversed(kept))
