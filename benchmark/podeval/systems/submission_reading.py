"""Reader of submission documents that strangers wrote: bounded, plain data only, with mistakes by line and field."""

import csv
import difflib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from podeval.errors import BadInput, CodedSentence
from podeval.sentences import parse_sentence, write_sentence
from podeval.systems.submission import BLOCKS, PATTERNS_IN_WORDS, RESULTS_FILE, ReportedFigure, Submission

MAX_BYTES = 256 * 1024
MAX_DEPTH = 12
MOST_PROBLEMS = 50
"""Mistakes that are told of one document."""
FILE_NAME = "submission.yaml"
_SHOWN = 10
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "timestamp")}

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class DocumentProblem:
    """One mistake: in which file, where (line and column, from 1), in which field, and what to do about it.

    The column is 0 where a line has no columns to tell, as in a table.
    """

    file: str
    line: int
    field: str
    message: str
    column: int = 0

    def __str__(self) -> str:
        position = f"{self.file}, line {self.line}" + (f", column {self.column}" if self.column else "")
        return f"{position}, {self.field}: {self.message}" if self.field else f"{position}: {self.message}"


class BadDocument(BadInput):
    """A submission document with mistakes; `problems` lists them, the message shows the first ten."""

    def __init__(self, problems: list[DocumentProblem]) -> None:
        lines = [str(problem) for problem in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            lines.append(f"and {len(problems) - _SHOWN} more")
        super().__init__("\n".join(lines))
        self.problems = tuple(problems)


@dataclass
class _Located:
    """Plain data with the file, line and column where each of its values stands."""

    file: str
    data: Any = None
    places: dict[Location, tuple[str, int, int]] = field(default_factory=dict)

    def problem(self, path: Location, message: str) -> DocumentProblem:
        """Return a problem at a path; if the path does not exist, at the block that should hold it."""
        ancestor = path
        while ancestor and ancestor not in self.places:
            ancestor = ancestor[:-1]
        file, line, column = self.places.get(ancestor, (self.file, 1, 0))
        return DocumentProblem(file, line, _write_path(path), message, column)


def load(path: Path) -> Submission:
    """Read a submission document, or the one in a folder.

    Raises:
        BadInput: there is no such file, it is too large or not UTF-8.
        BadDocument: it is not a valid document; every mistake has its line and field.
    """
    file = path / FILE_NAME if path.is_dir() else path
    return parse(_read(file), name=str(file), folder=file.parent)


def load_all(folder: Path) -> dict[str, Submission]:
    """Read every submission of a folder of systems, by system id, in alphabetical order.

    Raises:
        BadInput: a document is invalid, or its system id is not the name of its folder.
    """
    submissions = {}
    for file in sorted(folder.glob(f"*/{FILE_NAME}")):
        submission = load(file)
        if submission.system.id != file.parent.name:
            raise BadInput(
                f"{file}: the system id is {submission.system.id}, the folder {file.parent.name}; "
                "rename one of them, the folder is named after the system"
            )
        submissions[submission.system.id] = submission
    return submissions


def parse(text: str, name: str = "the document", folder: Path | None = None) -> Submission:
    """Read a submission from YAML text.

    Args:
        text: the document.
        name: what to call it in errors.
        folder: the folder of a results file; None if there is no such place, as in a form.

    Raises:
        BadDocument: it is not a valid document; every mistake has its line and field.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadInput(f"{name} is larger than {MAX_BYTES // 1024} KiB; put long results in a CSV file beside it")
    return _validate(_read_yaml(text, name), folder)


def parse_form(data: dict[str, Any], name: str = "the form") -> Submission:
    """Read a submission from plain data, as a page or a program sends it.

    Raises:
        BadDocument: it is not valid; every mistake has its field.
    """
    return _validate(_Located(name, data), None)


def _validate(document: _Located, folder: Path | None) -> Submission:
    _put_results_in_place(document, folder)
    try:
        return Submission.model_validate(document.data)
    except ValidationError as error:
        causes = _drop_consequences(error)
        problems = [_explain(document, detail) for detail in causes[:MOST_PROBLEMS]]
        if len(causes) > MOST_PROBLEMS:
            problems.append(document.problem((), write_sentence("more-mistakes", count=len(causes) - MOST_PROBLEMS)))
        raise BadDocument(problems) from None


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}; check the path and its permissions") from error
    if len(content) > MAX_BYTES:
        raise BadInput(f"{file} is larger than {MAX_BYTES // 1024} KiB; a submission should fit on a page")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 text (byte {error.start}); save it again as UTF-8") from error


class _Bounded(yaml.SafeLoader):
    """A SafeLoader that refuses aliases (they can multiply) and deep nesting while composing, before it costs."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark: Any = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases (*name) are refused; repeat the value", problem_mark=mark)
        if self.depth >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _read_yaml(text: str, name: str) -> _Located:
    document = _Located(name)
    loader = None
    try:
        loader = _Bounded(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise BadDocument([DocumentProblem(name, 1, "", "is not a list of fields; start from the template", 1)])
        document.data = _read_plain(loader, node, (), document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        message = f"is not valid YAML: {error.problem or error.context}"
        raise BadDocument([DocumentProblem(name, line, "", message, column)]) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", 0)
        line = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        message = "holds a character that YAML does not allow; remove it or save as UTF-8"
        raise BadDocument([DocumentProblem(name, line, "", message, column)]) from None
    finally:
        if loader is not None:
            loader.dispose()
    return document


def _read_plain(loader: _Bounded, node: yaml.Node, path: Location, document: _Located) -> Any:
    """Return a node as plain data, and note where each value stands."""
    document.places[path] = (document.file, *_locate(node))
    if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
        block: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            line, column = _locate(key_node)
            if key is None or not _NAME.fullmatch(key):
                message = "has a key that is no field name (letters, digits and underscores)"
                raise BadDocument([DocumentProblem(document.file, line, _write_path(path), message, column)])
            if key in block:
                message = "appears twice; keep one"
                raise BadDocument([DocumentProblem(document.file, line, _write_path((*path, key)), message, column)])
            block[key] = _read_plain(loader, value_node, (*path, key), document)
            document.places[(*path, key)] = (document.file, line, column)
        return block
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        return [_read_plain(loader, entry, (*path, index), document) for index, entry in enumerate(node.value)]
    if not isinstance(node, yaml.ScalarNode) or node.tag not in _PLAIN:
        raise BadDocument([document.problem(path, f"has the tag {node.tag}; write a plain value")])
    try:
        return loader.construct_object(node)
    except ValueError as error:
        message = f"cannot be read as a value ({error}); put it in quotes"
        raise BadDocument([document.problem(path, message)]) from None


def _locate(node: yaml.Node) -> tuple[int, int]:
    """Return the line and column of a node, counted from 1."""
    return node.start_mark.line + 1, node.start_mark.column + 1


def _put_results_in_place(document: _Located, folder: Path | None) -> None:
    """Replace the name of a results file by its rows, so that both ways of writing figures are checked alike."""
    path: Location = ("source", "results")
    source = document.data.get("source")
    name = source.get("results") if isinstance(source, dict) else None
    if not isinstance(name, str):
        return
    if not re.fullmatch(RESULTS_FILE, name):
        raise BadDocument([document.problem(path, "must be the name of a .csv file beside the document")])
    if folder is None:
        raise BadDocument([document.problem(path, "names a file, but there is none; list the figures here")])
    file = folder / name
    if file.is_symlink() or not file.is_file():
        raise BadDocument([document.problem(path, f"names {name}, which is not a file beside the document")])
    source["results"] = list(_read_rows(document, path, file))


def _read_rows(document: _Located, path: Location, file: Path) -> Iterator[dict[str, str]]:
    """Read the rows of a results file without their empty cells."""
    reader = csv.DictReader(io.StringIO(_read(file), newline=""), strict=True)
    try:
        columns = _read_columns(reader, file)
        for index, row in enumerate(reader):
            line = reader.line_num
            if None in row:
                message = f"has more cells than the {len(columns)} columns"
                raise BadDocument([DocumentProblem(str(file), line, "", message)])
            document.places[(*path, index)] = (str(file), line, 0)
            document.places.update({(*path, index, name): (str(file), line, 0) for name in columns})
            yield {name: cell for name, cell in row.items() if cell}
    except csv.Error as error:
        line = reader.reader.line_num
        raise BadDocument([DocumentProblem(str(file), line, "", f"is not valid CSV: {error}")]) from None


def _read_columns(reader: "csv.DictReader[str]", file: Path) -> list[str]:
    """Read the header of a results file."""
    columns = list(reader.fieldnames or [])
    for name in columns:
        if name not in ReportedFigure.model_fields:
            hint = _suggest(name, list(ReportedFigure.model_fields))
            raise BadDocument([DocumentProblem(str(file), 1, name, f"is no column of a results file; {hint}")])
    if len(set(columns)) < len(columns):
        raise BadDocument([DocumentProblem(str(file), 1, "", "names a column twice; keep one")])
    return columns


def _drop_consequences(error: ValidationError) -> list[ErrorDetails]:
    """Drop errors that only follow from others: a list counts as empty if all its entries are wrong."""
    details = error.errors()
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(_lies_in(other["loc"], detail["loc"]) for other in details if other is not detail)
    ]


def _lies_in(location: Location, whole: Location) -> bool:
    return len(location) > len(whole) and location[: len(whole)] == whole


def _explain(document: _Located, detail: ErrorDetails) -> DocumentProblem:
    """Explain a validation error in the words of the document's author."""
    path, block = _path_and_block(document.data, detail["loc"])
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    match kind:
        case "missing":
            description = block.model_fields[str(path[-1])].description
            message = write_sentence("field-missing", name=path[-1])
            if description:
                message = write_sentence("field-missing-about", name=path[-1], about=description)
        case "extra_forbidden":
            hint = _suggest(str(path[-1]), list(block.model_fields))
            message = write_sentence("field-unknown", hint=hint)
        case "string_type":
            message = write_sentence("must-be-text", value=_render_value(value))
        case "string_pattern_mismatch":
            rule = PATTERNS_IN_WORDS.get(context["pattern"], context["pattern"])
            message = write_sentence("must-match", value=_render_value(value), rule=rule)
        case "literal_error":
            message = write_sentence("must-be", choices=context["expected"], value=_render_value(value))
        case "union_tag_invalid":
            path = (*path, "kind")
            tag = _render_value(context["tag"])
            message = write_sentence("must-be-one-of", choices=context["expected_tags"], value=tag)
        case "union_tag_not_found":
            path = (*path, "kind")
            message = write_sentence("kind-missing")
        case "value_error":
            error = str(context["error"])
            message = parse_sentence(error) or CodedSentence(error, code="")
        case "model_type" | "model_attributes_type":
            message = write_sentence("must-be-block", value=_render_value(value))
        case "too_short":
            message = write_sentence("too-few-entries", count=context["min_length"])
        case "tuple_type":
            message = write_sentence("must-be-list", value=_render_value(value))
        case _:
            problem = detail["msg"].replace("Input should", "should")
            message = write_sentence("value-is-not", problem=problem, value=_render_value(value))
    return document.problem(path, message)


def _path_and_block(data: Any, location: Location) -> tuple[Location, Any]:
    """Return the path as written, without pydantic's name of the source's kind, and the block of its last field."""
    path = location
    if len(location) > 1 and location[0] == "source" and location[1] == data["source"].get("kind"):
        path = (location[0], *location[2:])
    names = tuple(part for part in location[:-1] if isinstance(part, str))
    return path, BLOCKS.get(names)


def _suggest(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return write_sentence("did-you-mean", name=near[0]) if near else write_sentence("there-are", names=", ".join(names))


def _render_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 60 else f"{text[:57]}…"


def _write_path(path: Location) -> str:
    """Write a path as a reader counts: `system.links.code`, `benchmarks[2].name`."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")
