"""Records of people as a metric's input: votes, marks and answers, from a file or as data; the same text is read once.

Votes may also have the forms of other arenas and of judges (`podeval.stats.battles`), and a table may be CSV.

    {"first": "aria", "second": "basso", "outcome": "a", "voter": "p1"}                           a vote, one line each
    {"rater": "p1", "page": "Arts", "stimulus": "aria", "value": 71}                              a mark
    {"rater": "p1", "item": "Arts", "system": "aria", "question": "quality", "mark": 4, "reason": "clear"}    an answer

Beside answers, lines `{"item", "system", "speakers", "music"}` say what is known of a clip, and `{"system", "question",
"judged"}` what a judge read in the reasons.
"""

import csv
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from podeval.errors import BadInput
from podeval.metrics.inputs import MissingInput
from podeval.stats.battles import Battles
from podeval.stats.mushra_scores import Mark
from podeval.stats.questionnaire_scores import RATED, SPEAKERS, ClipFacts, QuestionnaireAnswer
from podeval.text.missing_value import is_missing

_KEPT = 8
_CONTENT = re.compile(r"^\s*[\[{]|\n")
"""What the name of a file has not."""


@dataclass(frozen=True)
class QuestionnaireAnswers:
    """The answers, the facts of the clips by (item, system), and the judge's score J by (system, question)."""

    answers: tuple[QuestionnaireAnswer, ...]
    clips: Mapping[tuple[str, str], ClipFacts]
    judged: Mapping[tuple[str, str], float]


def read_votes(source: Any) -> Battles:
    """Read votes from JSON lines, a JSON list, CSV, data, or the path of a file that contains one of these.

    Raises:
        BadInput: the source is none of these, or holds something that is not a vote.
    """
    return source if isinstance(source, Battles) else _parse_votes(_read_source(source, "votes"))


def read_marks(source: Any) -> tuple[Mark, ...]:
    """Read marks, in the same forms.

    Raises:
        BadInput: the source is none of these forms, or holds something that is not a mark.
    """
    return _parse_marks(_read_source(source, "marks"))


def read_answers(source: Any) -> QuestionnaireAnswers:
    """Read answers, in the same forms.

    Raises:
        BadInput: the source is none of these forms, or holds something that is not an answer.
    """
    return source if isinstance(source, QuestionnaireAnswers) else _parse_answers(_read_source(source, "answers"))


@lru_cache(maxsize=_KEPT)
def _parse_votes(text: str) -> Battles:
    places, records = zip(*list_records(text, "vote"), strict=True)
    return Battles.of_records(records, places)


@lru_cache(maxsize=_KEPT)
def _parse_marks(text: str) -> tuple[Mark, ...]:
    marks_read = []
    for location, record in list_records(text, "mark"):
        value, seconds = record.get("value"), record.get("seconds")
        if not _is_number(value):
            raise BadInput(f"{location}: its value is a number, not {value!r}")
        marks_read.append(
            Mark(
                rater=_word(record, "rater", location),
                page=_word(record, "page", location),
                stimulus=_word(record, "stimulus", location),
                value=float(value),
                scale=str(record.get("scale") or ""),
                seconds=float(seconds) if _is_number(seconds) else None,
            )
        )
    return tuple(marks_read)


@lru_cache(maxsize=_KEPT)
def _parse_answers(text: str) -> QuestionnaireAnswers:
    answers_read: list[QuestionnaireAnswer] = []
    clips: dict[tuple[str, str], ClipFacts] = {}
    judged: dict[tuple[str, str], float] = {}
    for location, record in list_records(text, "answer"):
        system = _word(record, "system", location)
        # A judge's score J.
        if "judged" in record:
            if not _is_number(record["judged"]) or not 1 <= record["judged"] <= 5:
                raise BadInput(f"{location}: what a judge read is a number from 1 to 5, not {record['judged']!r}")
            judged[system, _word(record, "question", location)] = float(record["judged"])
            continue
        item = _word(record, "item", location)
        # The facts of a clip.
        if "question" not in record:
            clips[item, system] = ClipFacts(record.get("speakers"), record.get("music"))
            continue
        # A listener's answer.
        question, mark = _word(record, "question", location), record.get("mark")
        if question in RATED and not (mark is None or (_is_number(mark) and mark in (1, 2, 3, 4, 5))):
            raise BadInput(f"{location}: the mark of {question} is 1, 2, 3, 4, 5 or null, not {mark!r}")
        if question in (*RATED, SPEAKERS):
            whole_mark = None if mark is None else int(mark)
            answers_read.append(
                QuestionnaireAnswer(
                    _word(record, "rater", location),
                    item,
                    system,
                    question,
                    whole_mark,
                    str(record.get("reason") or ""),
                )
            )
    return QuestionnaireAnswers(tuple(answers_read), clips, judged)


def _read_source(source: Any, what: str) -> str:
    """Return the text of a source: the content of a file, the text itself, or data as JSON."""
    if isinstance(source, Path) or (isinstance(source, str) and source and not _CONTENT.search(source)):
        try:
            return Path(source).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot read the {what} {str(source)[:200]!r}: {error}") from None
    if isinstance(source, str):
        return source
    try:
        return json.dumps(source if isinstance(source, Mapping) else list(source), ensure_ascii=False)
    except TypeError:
        raise BadInput(f"{what} are JSON lines, a list of objects, or a file of such, not {type(source)}") from None


def list_records(source: Any, what: str) -> list[tuple[str, Mapping[str, Any]]]:
    """List the objects of JSON lines, a JSON list, CSV, data, or a file of these, each with its place; null is none.

    Args:
        source: the place of the objects.
        what: what they are: `vote` (only these may be CSV), `mark` or `answer`.

    Raises:
        MissingInput: there is none.
        BadInput: one is not an object, or not JSON.
    """
    text = _read_source(source, f"{what}s").removeprefix("\ufeff")
    content = text.strip()
    records: list[tuple[str, Any]]
    if content.startswith("["):
        entries = _parse_line(content, what, 1)
        records = [(f"{what} {number}", entry) for number, entry in enumerate(entries, start=1)]
    elif what == "vote" and not content.startswith(("{", "null")):
        reader = csv.DictReader(io.StringIO(text))
        try:
            records = [(f"line {reader.line_num}", row) for row in reader]
        except csv.Error as error:
            raise BadInput(f"line {reader.line_num + 1} is no {what} in CSV: {error}") from None
    else:
        lines = enumerate(text.split("\n"), start=1)
        records = [(f"line {number}", _parse_line(line, what, number)) for number, line in lines if line.strip()]
    records = [(location, record) for location, record in records if not is_missing(record)]
    for location, record in records:
        if not isinstance(record, Mapping):
            raise BadInput(f"{location} is not an object")
    if not records:
        raise MissingInput(f"reference_{what}s", f"there is no {what} in it")
    return records


def _parse_line(text: str, what: str, number: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"line {number} is no {what} in JSON: {error}") from None


def _word(record: Mapping[str, Any], name: str, location: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f"{location} lacks {name}; it has {', '.join(map(str, record)) or 'nothing'}")
    return value


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
