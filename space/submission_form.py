"""The form of a submission, by the document's own JSON Schema: what can be filled in, and what the gate says of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.errors import BadInput, CodedSentence
from podeval.runs.hf_jobs import HfJobs
from podeval.submissions.benchmark_entries import get_preset_settings, list_entries
from podeval.submissions.gate import judge_model
from podeval.submissions.job_budget import estimate_costs
from podeval.submissions.rules import RULES, SubmissionRefused
from podeval.submissions.service import SubmissionService, Submitter
from podeval.systems.submission import PARAGRAPH, PATTERNS_IN_WORDS, Submission, build_json_schema
from podeval.systems.submission_reading import BadDocument, parse_form
from podeval.texts import write_sentence

FOLDED = ("organisation", "authors", "homepage", "code", "paper", "demo", "size_parameters")
"""Fields of a system that most leave empty."""
_NOT_HERE = ("kind", "folder")
"""The kind is chosen by which part of the form is filled in; a folder beside the document does not exist here."""


@dataclass(frozen=True)
class FormField:
    """One field.

    Attributes:
        path: place of its value in the document, as `system.links.code`.
        name: name for people.
        help: explanation of the field.
        looks: `text`, `area`, `number`, `flag`, `list` (of short texts) or `choice`.
        required: whether it must be filled in.
        choices: the choices, if it is a choice.
        group: `system`, or the kind of source that it is a field of.
        folded: whether most leave it empty, so that it is folded away.
    """

    path: str
    name: str
    help: str
    looks: str
    required: bool
    choices: tuple[str, ...] = ()
    group: str = ""
    folded: bool = False


KINDS = {"model": "Model", "outputs": "Outputs", "human": "Human"}
"""The kinds of source that a stranger can enter, with the name of each one's block in the schema."""


def list_fields(block: str, path: str, texts: dict[str, Any], group: str) -> list[FormField]:
    """The fields of a block of the schema, those of the blocks in it after its own.

    Args:
        block: name in the schema's `$defs`.
        path: the path of the block.
        texts: `list_fields` and `helps` of the page's language, by the last name of a path.
        group: `system`, or the kind of source.
    """
    form_fields, nested = [], []
    schema = _blocks()[block]
    for name, declared in schema["properties"].items():
        if name in _NOT_HERE:
            continue
        field_path, about = f"{path}.{name}", _without_null(declared)
        if "$ref" in about:
            nested += list_fields(about["$ref"].rpartition("/")[2], field_path, texts, group)
            continue
        required = name in schema.get("required", ()) and field_path.count(".") == 1
        # Outputs without a folder need the repo.
        required = required or "folder" in schema["properties"]
        pattern = about.get("items", about).get("pattern", "")
        help = texts["helps"].get(name) or declared.get("description") or PATTERNS_IN_WORDS.get(pattern, "")
        parent = path.rpartition(".")[2]
        label = texts["fields"].get(f"{parent}.{name}") or texts["fields"].get(name) or declared["title"]
        choices = tuple(about.get("enum", ()))
        is_folded = name in FOLDED if group == "system" else not required
        looks = _looks(about, pattern)
        form_fields.append(FormField(field_path, label, help, looks, required, choices, group, is_folded))
    return form_fields + nested


@cache
def _blocks() -> dict[str, Any]:
    return dict(build_json_schema()["$defs"])


def _without_null(declared: dict[str, Any]) -> dict[str, Any]:
    """What a field holds where it is filled in."""
    kinds = [each for each in declared.get("anyOf", ()) if each.get("type") != "null"]
    return kinds[0] if len(kinds) == 1 else declared


def _looks(about: dict[str, Any], pattern: str) -> str:
    if "enum" in about:
        return "choice"
    simple = {"boolean": "flag", "integer": "number", "array": "list"}
    return simple.get(about["type"], "area" if pattern == PARAGRAPH else "text")


def build_document(kind: str, tracks: list[Any], given: Iterable[tuple[FormField, Any]]) -> dict[str, Any]:
    """What is filled in, as the document that `podeval submit` reads.

    Args:
        kind: the kind of source.
        tracks: the tracks, as in `benchmark.track`.
        given: values of fields as they were sent; what is empty is left out.
    """
    document: dict[str, Any] = {"schema_version": 1, "system": {}, "benchmarks": [], "source": {"kind": kind}}
    values = [(field, read) for field, value in given if (read := _read_value(field, value)) is not None]
    typed = {field.path.rpartition(".")[0] for field, _ in values if field.looks != "choice"}
    for field, read in values:
        *blocks, last = field.path.split(".")
        if field.looks == "choice" and len(blocks) > 1 and ".".join(blocks) not in typed:
            # A choice always has a value: a block of which nothing else is filled in is left out.
            continue
        section = document
        for block in blocks:
            section = section.setdefault(block, {})
        section[last] = read
    entered: dict[str, list[str]] = {}
    for each in tracks:
        benchmark, _, track = str(each).partition(".")
        entered.setdefault(benchmark, []).append(track)
    document["benchmarks"] = [{"name": name, "tracks": names} for name, names in entered.items()]
    return document


def get_value(document: dict[str, Any], field: FormField) -> Any:
    """What a field shows of a document; None where the document does not say."""
    value: Any = document
    for name in field.path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read_value(field: FormField, value: Any) -> Any:
    if field.looks == "flag":
        return value is True
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        return None
    if field.looks == "list":
        return [part for part in map(str.strip, text.split(",")) if part]
    digits = field.looks == "number" and text.isascii() and text.isdigit() and len(text) < 16
    return int(text) if digits else text


def check_document(
    desk: SubmissionService, plain: dict[str, Any], who: Submitter, beside: Path | None = None
) -> dict[str, Any]:
    """What the gate says of a document, nothing queued: `passed`, every refusal, and what would run where it passes.

    Args:
        desk: the desk that takes submissions.
        plain: the document as it is filled in.
        who: wants to submit it.
        beside: folder of what was uploaded, where the document names some of it.

    Raises:
        HubUnavailable: the Hub does not answer.
    """
    try:
        document = read_document(plain)
        pinned = desk.check(document, who, document_folder=beside)
    except (BadDocument, SubmissionRefused) as error:
        return {"passed": False, "refusals": list_refused_rules(error)}
    return {"passed": True, "refusals": [], "preview": make_preview(desk, document, pinned.to_json())}


def give_verdict(desk: SubmissionService, plain: dict[str, Any], jobs: HfJobs | None) -> dict[str, Any]:
    """Whether the model of a document can be run, for its submitter: as what, how much of it, when and for how much.

    Args:
        desk: the desk that takes submissions.
        plain: the document as it is filled in so far.
        jobs: machines of the Hub on which models are run here, if they are.

    Raises:
        HubUnavailable: the Hub does not answer.
    """
    try:
        document = read_document(plain)
        runs_as, reasons = judge_model(document, desk.gate)
    except BadDocument as error:
        return {"runs_as": "", "reasons": list_refused_rules(error), "dollars": None, "runs": []}
    preparation: dict[str, Any] = {"runs_as": runs_as, "dollars": None, "runs": [], "seconds": None}
    preparation["most_seconds"] = None
    preparation["reasons"] = [asdict(each) for each in reasons]
    if runs_as:
        preparation |= make_preview(desk, document, {"parameters": 0})
        if jobs is not None:
            costs = estimate_costs(document, jobs)
            preparation["dollars"] = sum(costs.values())
            preparation["most_seconds"] = 60.0 * jobs.minutes * len(costs)
    return preparation


def read_document(plain: dict[str, Any]) -> Submission:
    """The document that was sent.

    Raises:
        BadDocument: the document has mistakes; the error lists every one with its field.
        BadInput: it is no text at all.
    """
    try:
        document = parse_form(plain)
        document.model_dump_json().encode()
    except (RecursionError, UnicodeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(write_sentence("form-not-unicode")) from None
    return document


def list_refused_rules(error: BadDocument | SubmissionRefused) -> list[dict[str, str]]:
    """Every rule that is not kept: its name, what it asks, what was found; mistakes of the document by their field."""
    if isinstance(error, BadDocument):
        return [_describe_refusal("document", problem.message, problem.field) for problem in error.problems]
    return [_describe_refusal(each.rule, each.message) for each in error.refusals]


def _describe_refusal(rule: str, message: str, field: str = "") -> dict[str, str]:
    code = message.code if isinstance(message, CodedSentence) else ""
    return {"rule": rule, "asks": RULES[rule], "field": field, "message": message, "code": code}


def make_preview(desk: SubmissionService, document: Submission, pinned: dict[str, Any]) -> dict[str, Any]:
    """What would run, under which settings, and when it would be done at the latest."""
    standing = desk.queue.end()
    runs = []
    for entry in list_entries(document):
        try:
            count = len(entry.items(desk.gate.data))
        except BadInput:
            # Its items are built on the machine of the worker.
            count = None
        runs.append(
            {
                "benchmark": benchmarks.get(entry.benchmark).title,
                "split": entry.split,
                "track": entry.track,
                "items": count,
                "preset": get_preset_settings(entry) if document.source.kind == "model" else "",
            }
        )
    return {
        "runs": runs,
        "position": standing.position,
        "seconds": standing.seconds,
        "parameters": pinned["parameters"] or None,
    }
