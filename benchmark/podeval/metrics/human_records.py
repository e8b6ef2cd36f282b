"""Records of people as a metric's input: votes, marks and answers, from a file or as data; the same text is read once.

    {"first": "aria", "second": "basso", "outcome": "a", "voter": "p1"}                           a vote, one line each
    {"rater": "p1", "page": "Arts", "stimulus": "aria", "value": 71}                              a mark
    {"rater": "p1", "item": "Arts", "system": "aria", "question": "quality", "mark": 4, "reason": "clear"}    an answer

Beside answers, lines `{"item", "system", "speakers", "music"}` say what is known of a clip, and `{"system", "question",
"judged"}` what a judge read in the reasons.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from podeval.errors import BadInput
from podeval.stats.battles import Battles
from podeval.stats.mushra_scores import Mark
from podeval.stats.questionnaire_scores import RATED, SPEAKERS, ClipFacts, QuestionnaireAnswer

_KEPT = 8


@dataclass(frozen=True)
class QuestionnaireAnswers:
    """The answers, the facts of the clips by (item, system), and the judge's score J by (system, question)."""

    answers: tuple[QuestionnaireAnswer, ...]
    clips: Mapping[tuple[str, str], ClipFacts]
    judged: Mapping[tuple[str, str], float]


def read_votes(source: Any) -> Battles:
    """Read votes from JSON lines, a JSON list, data, or the path of a file that holds one of these.

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
    return Battles.of_records(_records(text, "vote"))


@lru_cache(maxsize=_KEPT)
def _parse_marks(text: str) -> tuple[Mark, ...]:
    marks_read = []
    for number, record in enumerate(_records(text, "mark"), start=1):
        value, seconds = record.get("value"), record.get("seconds")
        if not _is_number(value):
            raise BadInput(f"mark {number}: its value is a number, not {value!r}")
        marks_read.append(
            Mark(
                rater=_word(record, "rater", number),
                page=_word(record, "page", number),
                stimulus=_word(record, "stimulus", number),
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
    for number, record in enumerate(_records(text, "answer"), start=1):
        system = _word(record, "system", number)
        # A judge's score J.
        if "judged" in record:
            if not _is_number(record["judged"]) or not 1 <= record["judged"] <= 5:
                raise BadInput(f"answer {number}: what a judge read is a number from 1 to 5, not {record['judged']!r}")
            judged[system, _word(record, "question", number)] = float(record["judged"])
            continue
        item = _word(record, "item", number)
        # The facts of a clip.
        if "question" not in record:
            clips[item, system] = ClipFacts(record.get("speakers"), record.get("music"))
            continue
        # A listener's answer.
        question, mark = _word(record, "question", number), record.get("mark")
        if question in RATED and not (mark is None or (_is_number(mark) and mark in (1, 2, 3, 4, 5))):
            raise BadInput(f"answer {number}: the mark of {question} is 1, 2, 3, 4, 5 or null, not {mark!r}")
        if question in (*RATED, SPEAKERS):
            whole_mark = None if mark is None else int(mark)
            answers_read.append(
                QuestionnaireAnswer(
                    _word(record, "rater", number), item, system, question, whole_mark, str(record.get("reason") or "")
                )
            )
    return QuestionnaireAnswers(tuple(answers_read), clips, judged)


def _read_source(source: Any, what: str) -> str:
    """Return the text of a source: the content of a file, the text itself, or data as JSON."""
    if isinstance(source, Path) or (isinstance(source, str) and "{" not in source):
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


def _records(text: str, what: str) -> Iterable[Mapping[str, Any]]:
    """Return the objects of a JSON list or of JSON lines."""
    if text.lstrip().startswith("["):
        records = _parse_line(text, what, 1)
    else:
        lines = enumerate(text.splitlines(), start=1)
        records = [_parse_line(line, what, number) for number, line in lines if line.strip()]
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise BadInput(f"{what} {number} is not an object")
    if not records:
        raise BadInput(f"there is no {what} in it")
    return list(records)


def _parse_line(text: str, what: str, number: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"line {number} is no {what} in JSON: {error}") from None


def _word(record: Mapping[str, Any], name: str, number: int) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f"entry {number} lacks {name}; it has {', '.join(map(str, record)) or 'nothing'}")
    return value


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
