"""Read untrusted submission documents, within limits, and report mistakes by line and field."""

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
from podeval.systems.submission import BLOCKS, PATTERNS_IN_WORDS, RESULTS_FILE, ReportedFigure, Submission
from podeval.text.yaml_text import PLAIN_LOADER, find_mark, read_yaml
from podeval.texts import parse_sentence, write_sentence

MAX_BYTES = 256 * 1024
MOST_PROBLEMS = 50
"""Maximum number of mistakes that are reported for one document."""
FILE_NAME = "submission.yaml"
_SHOWN = 10
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

Location = tuple[str | int, ...]
_RESULTS: Location = ("source", "results")


@dataclass(frozen=True)
class DocumentProblem:
    """One mistake: its file, its position (line and column, from 1), its field, and the remedy.

    The column is 0 if a line has no useful columns, as in a table.
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
    """A submission document with mistakes; `problems` lists them, and the message shows the first ten."""

    def __init__(self, problems: list[DocumentProblem]) -> None:
        lines = [str(problem) for problem in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            lines.append(f"and {len(problems) - _SHOWN} more")
        super().__init__("\n".join(lines))
        self.problems = tuple(problems)


@dataclass
class _Located:
    """Plain data with the positions of its values: in a YAML document, and in a file of results next to it."""

    file: str
    data: Any
    node: yaml.Node | None = None
    results: str = ""
    lines: list[int] = field(default_factory=list)

    def problem(self, path: Location, message: str) -> DocumentProblem:
        """Return a problem at a path or, if the path does not exist, at the block that should contain it."""
        if self.lines and path[:2] == _RESULTS and len(path) > 2:
            return DocumentProblem(self.results, self.lines[int(path[2])], _write_path(path), message)
        mark = find_mark(self.node, path)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 0)
        return DocumentProblem(self.file, line, _write_path(path), message, column)


def load(path: Path) -> Submission:
    """Read a submission document, given its path or that of its folder.

    Raises:
        BadInput: there is no such file, or it is too large or not UTF-8.
        BadDocument: the document is not valid; every mistake is reported with its line and field.
    """
    file = path / FILE_NAME if path.is_dir() else path
    return parse(_read(file), name=str(file), folder=file.parent)


def load_all(folder: Path) -> dict[str, Submission]:
    """Read every submission in a folder of systems, by system id, in alphabetical order.

    Raises:
        BadInput: a document is invalid, or its system id is not the name of its folder.
    """
    submissions = {}
    for file in sorted(folder.glob(f"*/{FILE_NAME}")):
        submission = load(file)
        if submission.system.id != file.parent.name:
            raise BadInput(
                f"{file}: the system id is {submission.system.id}, but the folder is {file.parent.name}; "
                "rename one of them, because the folder is named after the system"
            )
        submissions[submission.system.id] = submission
    return submissions


def parse(text: str, name: str = "the document", folder: Path | None = None) -> Submission:
    """Read a submission from YAML text.

    Args:
        text: the document.
        name: name of the document in errors.
        folder: the folder from which a results file is read; None if there is no folder, as for a form.

    Raises:
        BadInput: the text is too large, or not YAML.
        BadDocument: the document is not valid; every mistake is reported with its line and field.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadInput(f"{name} is larger than {MAX_BYTES // 1024} KiB; put long results in a CSV file next to it")
    try:
        document = _Located(name, read_yaml(text, MAX_BYTES), yaml.compose(text, PLAIN_LOADER))
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None
    if not isinstance(document.data, dict):
        raise BadDocument([document.problem((), "the document is not a list of fields; start from the template")])
    _refuse_repeated_fields(document, document.node, ())
    return _validate(document, folder)


def parse_form(data: dict[str, Any]) -> Submission:
    """Read a submission from plain data, as sent by a page or a program.

    Raises:
        BadDocument: the submission is not valid; every mistake is reported with its field.
        BadInput: the data contain something that is not text.
    """
    try:
        document = _validate(_Located("the form", data), None)
        document.model_dump_json().encode()
    except (RecursionError, UnicodeError, ValueError):
        raise BadInput(write_sentence("form-not-unicode")) from None
    return document


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


def _refuse_repeated_fields(document: _Located, node: yaml.Node | None, path: Location) -> None:
    """Refuse a field that occurs twice in a block, because YAML would silently use its last occurrence."""
    if isinstance(node, yaml.SequenceNode):
        for index, entry in enumerate(node.value):
            _refuse_repeated_fields(document, entry, (*path, index))
    elif isinstance(node, yaml.MappingNode):
        names = set()
        for key, value in node.value:
            inside = (*path, str(key.value))
            if inside in names:
                mark = key.start_mark
                problem = DocumentProblem(
                    document.file, mark.line + 1, _write_path(inside), "appears twice; keep one", mark.column + 1
                )
                raise BadDocument([problem])
            names.add(inside)
            _refuse_repeated_fields(document, value, inside)


def _put_results_in_place(document: _Located, folder: Path | None) -> None:
    """Replace the name of a results file with its rows, so figures in a file are checked like those in a document."""
    source = document.data.get("source")
    name = source.get("results") if isinstance(source, dict) else None
    if not isinstance(name, str):
        return
    if not re.fullmatch(RESULTS_FILE, name):
        raise BadDocument([document.problem(_RESULTS, "results must be the name of a .csv file next to the document")])
    if folder is None:
        raise BadDocument(
            [document.problem(_RESULTS, "results name a file, but a form has none; list the figures here")]
        )
    file = folder / name
    if file.is_symlink() or not file.is_file():
        raise BadDocument([document.problem(_RESULTS, f"{name} is not a file next to the document")])
    source["results"] = list(_read_rows(document, file))


def _read_rows(document: _Located, file: Path) -> Iterator[dict[str, str]]:
    """Read the rows of a results file without their empty cells."""
    reader = csv.DictReader(io.StringIO(_read(file), newline=""), strict=True)
    try:
        columns = _read_columns(reader, file)
        document.results = str(file)
        for row in reader:
            line = reader.line_num
            if None in row:
                message = f"the row has more cells than the {len(columns)} columns"
                raise BadDocument([DocumentProblem(str(file), line, "", message)])
            document.lines.append(line)
            yield {name: cell for name, cell in row.items() if cell}
    except csv.Error as error:
        line = reader.reader.line_num
        raise BadDocument([DocumentProblem(str(file), line, "", f"the file is not valid CSV: {error}")]) from None


def _read_columns(reader: "csv.DictReader[str]", file: Path) -> list[str]:
    """Read the header of a results file."""
    columns = list(reader.fieldnames or [])
    for name in columns:
        if name not in ReportedFigure.model_fields:
            hint = _suggest(name, list(ReportedFigure.model_fields))
            raise BadDocument([DocumentProblem(str(file), 1, name, f"this is not a column of a results file; {hint}")])
    if len(set(columns)) < len(columns):
        raise BadDocument([DocumentProblem(str(file), 1, "", "the header contains a column twice; keep one")])
    return columns


def _drop_consequences(error: ValidationError) -> list[ErrorDetails]:
    """Drop errors that only follow from other errors: a list is reported as empty if all its entries are wrong."""
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
    """Explain a validation error in terms that the document's author knows."""
    path, block = _path_and_block(document.data, detail["loc"])
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    match kind:
        case "missing":
            name, about = path[-1], block.model_fields[str(path[-1])].description
            message = (
                write_sentence("field-missing-about", name=name, about=about)
                if about
                else write_sentence("field-missing", name=name)
            )
        case "extra_forbidden":
            message = write_sentence("field-unknown", hint=_suggest(str(path[-1]), list(block.model_fields)))
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
    """Return the path as written, without pydantic's name for the kind of source, and the block of its last field."""
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
    """Write a path with positions counted from 1: `system.links.code`, `benchmarks[2].name`."""
    text = ""
    for part in path:
        # An invalid name could disturb the terminal that shows it.
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part if _NAME.fullmatch(part) else '?'}"
    return text.lstrip(".")
