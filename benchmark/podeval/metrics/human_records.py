"""Human judgements as input to a metric: votes, marks and answers, from a file or as data; each text is parsed only
once.

Votes may also be in the formats of other arenas and of judges (`podeval.metrics.battle_log`), and a table may be CSV
with commas, semicolons or tabs, Parquet, or a DataFrame. `read_webmushra` reads results of webMUSHRA as marks.

    {"first": "aria", "second": "basso", "outcome": "a", "voter": "p1"}                           a vote, one line each
    {"rater": "p1", "page": "Arts", "stimulus": "aria", "value": 71}                              a mark
    {"rater": "p1", "item": "Arts", "system": "aria", "question": "quality", "mark": 4, "reason": "clear"}    an answer

In addition to answers, lines `{"item", "system", "speakers", "music"}` state the facts about a clip, and lines
`{"system", "question", "judged"}` give a judge's score for the reasons.
"""

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from podeval.errors import BadInput, MissingInput, is_missing
from podeval.metrics.battle_log import clean_name, read_battles
from podeval.stats.battles import Battles
from podeval.stats.mushra_scores import Mark
from podeval.stats.questionnaire_scores import RATED, SPEAKERS, ClipFacts, QuestionnaireAnswer

_KEPT = 8
_CONTENT = re.compile(r"^\s*[\[{]|\n")
"""Pattern that matches content but no file name."""
_FIRST_LINES = re.compile(r'\A\ufeff?\s*(?:"?sep=[^\n]*\n)?\s*')
"""Pattern that matches the lines that Excel and editors write before the header line."""
_MUSIC = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
"""Values of the field that states whether a clip has music."""


@dataclass(frozen=True)
class QuestionnaireAnswers:
    """The answers, the facts about the clips by (item, system), and the judge's score J by (system, question)."""

    answers: tuple[QuestionnaireAnswer, ...]
    clips: Mapping[tuple[str, str], ClipFacts]
    judged: Mapping[tuple[str, str], float]


def read_votes(source: Any) -> Battles:
    """Read votes from JSON lines, a JSON list, CSV, data, or the path of a file in one of these forms.

    Raises:
        BadInput: the source has none of these forms, or contains something that is not a vote.
    """
    return source if isinstance(source, Battles) else _parse_votes(_read_source(source, "votes"))


def read_marks(source: Any) -> tuple[Mark, ...]:
    """Read marks from a source in any form that `read_votes` accepts.

    Raises:
        BadInput: the source has none of these forms, or contains something that is not a mark.
    """
    return _parse_marks(_read_source(source, "marks"))


def read_answers(source: Any) -> QuestionnaireAnswers:
    """Read answers from a source in any form that `read_votes` accepts.

    Raises:
        BadInput: the source has none of these forms, or contains something that is not an answer.
    """
    return source if isinstance(source, QuestionnaireAnswers) else _parse_answers(_read_source(source, "answers"))


@lru_cache(maxsize=_KEPT)
def _parse_votes(text: str) -> Battles:
    places, records = zip(*list_records(text, "vote"), strict=True)
    return read_battles(records, places)


@lru_cache(maxsize=_KEPT)
def _parse_marks(text: str) -> tuple[Mark, ...]:
    marks_read = []
    for location, record in list_records(text, "mark"):
        value, seconds = read_number(record.get("value")), read_number(record.get("seconds"))
        if value is None or not 0 <= value <= 100:
            raise BadInput(f"{location}: the value must be a number from 0 to 100, not {record.get('value')!r}")
        marks_read.append(
            Mark(
                rater=_word(record, "rater", location),
                page=_word(record, "page", location),
                stimulus=_word(record, "stimulus", location),
                value=value,
                scale=str(record.get("scale") or ""),
                seconds=seconds,
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
        if not is_missing(record.get("judged")):
            judged_mark = read_number(record["judged"])
            if judged_mark is None or not 1 <= judged_mark <= 5:
                raise BadInput(f"{location}: a judge's score must be a number from 1 to 5, not {record['judged']!r}")
            judged[system, _word(record, "question", location)] = judged_mark
            continue
        item = _word(record, "item", location)
        # The facts about a clip.
        if is_missing(record.get("question")):
            music = _MUSIC.get(str(record.get("music")).strip().casefold())
            if music is None and not is_missing(record.get("music")):
                raise BadInput(f"{location}: music must be true, false or null, not {record['music']!r}")
            clips[item, system] = ClipFacts(_read_count(record, "speakers", location), music)
            continue
        # A listener's answer.
        question = _word(record, "question", location).casefold()
        if question not in (*RATED, SPEAKERS) and "mark" in record and is_missing(record["mark"]):
            continue  # A question that was answered only in words.
        if question not in (*RATED, SPEAKERS):
            raise BadInput(
                f"{location}: the question must be one of {', '.join((*RATED, SPEAKERS))}, not {record['question']!r}"
            )
        mark = _read_count(record, "mark", location)
        if "mark" not in record or (question in RATED and mark not in (None, 1, 2, 3, 4, 5)):
            raise BadInput(
                f"{location}: the mark for {question} must be 1, 2, 3, 4, 5 or null, "
                + (f"not {record['mark']!r}" if "mark" in record else f"but the record has only {', '.join(record)}")
            )
        reason = "" if is_missing(record.get("reason")) else str(record["reason"])
        rater = _word(record, "rater", location)
        answers_read.append(QuestionnaireAnswer(rater, item, system, question, mark, reason))
    return QuestionnaireAnswers(tuple(answers_read), clips, judged)


def _read_source(source: Any, what: str) -> str:
    """Return the text of a source: the contents of a file, the text itself, or data as JSON."""
    if isinstance(source, Path) or (isinstance(source, str) and source and not _CONTENT.search(source)):
        try:
            if Path(source).suffix == ".parquet":
                import pandas

                return _read_source(pandas.read_parquet(source), what)
            return Path(source).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot read the {what} {str(source)[:200]!r}: {error}") from None
    return source if isinstance(source, str) else write_records(source, what)


def write_records(source: Any, what: str) -> str:
    """Return data as JSON: an object, a list of objects, or a DataFrame; numpy scalars become numbers.

    Raises:
        BadInput: the data have none of these forms.
    """
    rows = source.to_dict("records") if hasattr(source, "columns") else source
    try:
        return json.dumps(rows if isinstance(rows, Mapping) else list(rows), ensure_ascii=False, default=_to_plain)
    except TypeError:
        raise BadInput(
            f"{what} must be JSON Lines text, a list of objects, or a path to a JSON Lines file, not {type(source)}"
        ) from None


def _to_plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(type(value))


def list_records(source: Any, what: str) -> list[tuple[str, Mapping[str, Any]]]:
    """List the objects of JSON lines, a JSON list, CSV, data, or a file with these, each with its place; skip nulls.

    Args:
        source: the source of the objects.
        what: the kind of object: `vote`, `mark` or `answer`.

    Raises:
        MissingInput: there are no objects.
        BadInput: an entry is not an object, or not JSON.
    """
    text = _FIRST_LINES.sub("", _read_source(source, f"{what}s"))
    content = text.strip()
    records: list[tuple[str, Any]]
    if content.startswith("["):
        entries = _parse_line(content, what, 1)
        records = [(f"{what} {number}", entry) for number, entry in enumerate(entries, start=1)]
    elif not content.startswith(("{", "null")):
        delimiter = max(",;\t", key=content.partition("\n")[0].count)
        reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
        try:
            rows = [(f"line {reader.line_num}", row) for row in reader]
        except csv.Error as error:
            raise BadInput(f"line {reader.line_num + 1} contains no {what} in CSV: {error}") from None
        names = [name for name in map(_clean, reader.fieldnames or ()) if name]
        if len(set(names)) < len(names):
            raise BadInput(
                f"the header line contains names more than once: {', '.join(names)}; give every column its own name"
            )
        if longer := next((line for line, row in rows if any(row.get(None) or ())), ""):
            raise BadInput(
                f"{longer} has more cells than the header line: quote cells that contain commas, and write 4.5, not 4,5"
            )
        records = [
            (line, {_clean(name): one.strip() if isinstance(one, str) else one for name, one in row.items()})
            for line, row in rows
        ]
    else:
        lines = enumerate(text.split("\n"), start=1)
        records = [(f"line {number}", _parse_line(line, what, number)) for number, line in lines if line.strip()]
    records = [(location, record) for location, record in records if not is_missing(record)]
    for location, record in records:
        if not isinstance(record, Mapping):
            raise BadInput(f"{location} is not an object")
    if not records:
        raise MissingInput(f"reference_{what}s", f"the source contains no {what}s")
    return records


def _parse_line(text: str, what: str, number: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"line {number} contains no {what} in JSON: {error}") from None


def _clean(name: Any) -> str:
    return name.strip().lower() if isinstance(name, str) else ""


def _word(record: Mapping[str, Any], name: str, location: str) -> str:
    """Return a name as text; in the record, it may also be a number."""
    value = record.get(name)
    if is_missing(value) or isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"{location} lacks {name}; it has {', '.join(map(str, record)) or 'nothing'}")
    return clean_name(value)


def read_number(value: Any) -> float | None:
    """Return a value as a number (CSV stores it as text); None if it is not a number."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _read_count(record: Mapping[str, Any], name: str, location: str) -> int | None:
    """Return a whole number of 0 or more; None if it is missing.

    Raises:
        BadInput: the value is neither missing nor a whole number of 0 or more.
    """
    value, number = record.get(name), read_number(record.get(name))
    if is_missing(value):
        return None
    if number is None or number < 0 or number != int(number):
        raise BadInput(f"{location}: {name} must be a whole number or null, not {value!r}")
    return int(number)


_WEBMUSHRA = ("session_uuid", "trial_id", "rating_stimulus", "rating_score")
"""Columns of webMUSHRA's results from which a mark is read."""


def read_webmushra(path: Path) -> list[Mark]:
    """Read the marks from a results file of MUSHRA pages; each session is one listener.

    Raises:
        BadInput: the file cannot be read, lacks a column, or contains a mark that is not a number from 0 to 100.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"cannot read {path}: {error}") from None
    if missing := [name for name in _WEBMUSHRA if rows and name not in rows[0]] or (not rows and ["any line"]):
        raise BadInput(f"{path} is not a results file of webMUSHRA, because it lacks {', '.join(missing)}")
    pages: dict[str, dict[str, None]] = {}
    for row in rows:
        pages.setdefault(str(row["trial_id"]), {})[str(row["rating_stimulus"])] = None
    split = {page: split_names(page, list(stimuli)) for page, stimuli in pages.items()}
    if len({item for item, _ in split.values()}) < len(split):
        # The part that the stimuli share is the same on several pages, so it belongs to the names of the systems.
        split = {page: (page.removeprefix("trial_"), list(stimuli)) for page, stimuli in pages.items()}
    stimuli_of = {page: (item, dict(zip(pages[page], systems, strict=True))) for page, (item, systems) in split.items()}
    return [
        _read_webmushra_mark(path, number, row, *stimuli_of[str(row["trial_id"])])
        for number, row in enumerate(rows, start=2)
    ]


def split_names(page: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """Split the names of stimuli into the item, which is the shared part at their beginning or end, and the systems."""
    parts = [name.split("_") for name in names]
    shortest = min(len(part) for part in parts)
    for sign in (-1, 1):
        shared = 0
        while shared < shortest - 1 and len({part[::sign][shared] for part in parts}) == 1:
            shared += 1
        if shared and len(names) > 1:
            about = parts[0][-shared:] if sign == -1 else parts[0][:shared]
            rest = [part[:-shared] if sign == -1 else part[shared:] for part in parts]
            return "_".join(about), ["_".join(part) for part in rest]
    about_page = page.removeprefix("trial_")
    return about_page, [name.removesuffix(f"_{about_page}") for name in names]


def _read_webmushra_mark(
    path: Path, number: int, row: Mapping[str, str | None], category: str, systems: Mapping[str, str]
) -> Mark:
    value = read_number(row["rating_score"])
    if value is None or not 0 <= value <= 100:
        raise BadInput(f"{path}, line {number}: a mark must be a number from 0 to 100, not {row['rating_score']!r}")
    milliseconds = row.get("rating_time/ms") or row.get("rating_time") or ""
    seconds = float(milliseconds) / 1000 if re.fullmatch(r"\d+(\.\d+)?", milliseconds) else None
    return Mark(
        rater=str(row["session_uuid"]),
        page=category,
        stimulus=systems[str(row["rating_stimulus"])],
        value=value,
        seconds=seconds,
        comment=row.get("rating_comment") or "",
    )
