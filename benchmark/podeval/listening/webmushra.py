"""Read webMUSHRA's test configurations as designs, and write tests in its layout.

webMUSHRA (International Audio Laboratories Erlangen) is the tool with which PodEval's listening tests were run. The
stimuli of a page can have any names; PodEval writes `<system>_<category>` on MUSHRA pages and `<category>_<system>` in
the questionnaire, so the part that all stimuli of a page share is the category.

The questions of a questionnaire are kept if they are rated with labels (`rate2`, `likert`) or stars (`rate`; eleven
stars mean 0 to 10), answered by a choice from a list (`select`), or answered in words (`text`, `long_text`, `option`).
A text field that asks for the reason for a rating is kept with its question. Questions of PodEval's own questionnaire
get the names of podeval's nine questions, and are screened and scored like podeval's. Questions about the listener on
the last page become the last page of the test. A file with questions of other types is refused, and the message names
these questions.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from podeval.errors import BadInput
from podeval.listening.designs import Design, read_design
from podeval.listening.questionnaire import name_questions
from podeval.metrics.human_records import split_names
from podeval.stats.mushra_scores import HIGH, LOW
from podeval.stats.questionnaire_scores import SPEAKERS
from podeval.text.table_files import make_csv_safe
from podeval.text.yaml_text import LONGEST_YAML, read_yaml

COLUMNS = (
    "session_test_id",
    "username",
    "gender",
    "Age",
    "session_uuid",
    "trial_id",
    "rating_stimulus",
    "rating_score",
    "rating_time/ms",
    "rating_comment",
)
"""Columns of a results file from PodEval's fork; upstream files have `rating_time` and other listener questions."""

_KINDS = {"mushra": "mushra", "likert_single_stimulus": "questionnaire"}
_KEY = re.compile(r"^[ \t]*(?:-[ \t]+)*\w+:(?=[ \t]|$)[ \t]*")
_IN_WORDS = ("text", "long_text", "option")
_BY_LABELS = ("rate2", "likert", "likert2", "rate", "select")
_TEN = 11
"""Number of stars on PodEval's scale from 0 to 10."""
_WHY = re.compile(r"why\b|please explain|warum\b|为什么", re.IGNORECASE)
_MASK = "\ue000"


@dataclass(frozen=True)
class Imported:
    """The designs from a configuration, one for each kind of page, and notes about parts that were not imported."""

    designs: tuple[Design, ...]
    notes: tuple[str, ...]


def read_configuration(path: Path) -> Imported:
    """Read designs from a webMUSHRA configuration; the designs have no time limit, because webMUSHRA does not have one.

    Raises:
        BadInput: the configuration cannot be read (for example, because it has more than `LONGEST_YAML` characters),
            has no page of a known kind, or contains a question that podeval's pages cannot ask.
    """
    content = _read(path)
    if not isinstance(content, Mapping) or not isinstance(content.get("pages"), list):
        raise BadInput(f"{path} is not a webMUSHRA configuration: it has no list of pages")
    notes: list[str] = []
    pages: dict[str, list[dict[str, Any]]] = {}
    questionnaires: list[list[dict[str, Any]]] = []
    demographics: list[dict[str, Any]] = []
    # Sort the pages by kind, and note which pages are left out.
    for page in _flat(content["pages"]):
        kind = _KINDS.get(str(page.get("type")))
        if page.get("type") == "finish" and isinstance(page.get("questionnaire"), list):
            demographics = _list_demographics(page["questionnaire"], notes)
        if kind is None:
            if page.get("type") not in ("generic", "finish", "volume"):
                notes.append(f"page {page.get('id')} of type {page.get('type')} was left out")
            continue
        pages.setdefault(kind, []).append(_item(page, kind, notes))
        if kind == "questionnaire":
            questionnaires.append(_questions(page, path, notes))
    # Check that the pages of each kind fit into one design.
    if not pages:
        raise BadInput(f"{path} has no page of type {' or '.join(_KINDS)}")
    if any(questions != questionnaires[0] for questions in questionnaires):
        raise BadInput(f"the pages of {path} ask different questions; make a separate file for each set of questions")
    name = re.sub(r"[^a-z0-9_-]+", "-", str(content.get("testId") or path.stem).lower()).strip("-_") or "test"
    # Make a design for each kind.
    designs = []
    for kind, items in pages.items():
        systems = list(dict.fromkeys(system for item in items for system in item["stimuli"]))
        designs.append(
            read_design(
                {
                    "kind": kind,
                    "id": name if len(pages) == 1 else f"{name}-{kind}",
                    "title": str(content.get("testname") or name).strip(),
                    "systems": systems,
                    "items": items,
                    "minutes": None,
                    "questions": questionnaires[0] if kind == "questionnaire" else (),
                    "demographics": demographics,
                }
            )
        )
    return Imported(tuple(designs), tuple(dict.fromkeys(notes)))


_SESSION = ("session_test_id", "session_uuid", "trial_id")

CHOICES = ("choice_reference", "choice_non_reference", "choice_answer", "choice_time", "choice_comment")
"""Columns of webMUSHRA's paired comparison, which is an ABX test: which of two stimuli is the reference?"""

SINGLE = ("stimuli_rating", "stimuli", "rating_time")
"""Columns of webMUSHRA's likert_single_stimulus."""

_TABLES = {"mushra": COLUMNS, "abx": (*_SESSION, *CHOICES), "mos": (*_SESSION, *SINGLE)}


def tabulate(test: str, kind: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Write a test in the form of webMUSHRA's `mushra.csv`, `paired_comparison.csv` or `lss.csv`, escaping formulas.

    Args:
        test: id of the test.
        kind: `mushra`, `abx` or `mos`.
        rows: rows from `session_results.tabulate_marks_of_test`; rows that do not count are left out.

    Raises:
        BadInput: webMUSHRA has no table for the kind.
    """
    if kind not in _TABLES:
        raise BadInput(f"webMUSHRA has no table for a {kind} test, only for mushra, abx and mos; use csv instead")
    cells = [_list_cells(test, kind, row) for row in rows if row["counted"]]
    return make_csv_safe(pd.DataFrame(cells, columns=_TABLES[kind])).to_csv(index=False, lineterminator="\n")


def _list_cells(test: str, kind: str, row: Mapping[str, Any]) -> list[Any]:
    """Return the cells of a mark; each scale of a MOS test is a separate trial."""
    trial, listener, mark = f"trial_{row['item']}", row["listener"], f"{row['mark']:g}"
    time = "" if row["seconds"] is None else round(1000 * row["seconds"])
    match kind:
        case "mushra":
            stimulus = f"{row['stimulus']}_{row['item']}"
            return [test, listener, "", "", listener, trial, stimulus, mark, time, row["reason"]]
        case "abx":
            answer = "correct" if row["mark"] else "incorrect"
            return [test, listener, trial, row["stimulus"], row["compared_with"], answer, time, ""]
        case _:
            return [test, listener, f"{trial}_{row['scale']}", mark, row["stimulus"], time]


def _read(path: Path) -> Any:
    """Read the document; if only webMUSHRA's own parser accepts it as YAML, mask the colons in its texts."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {error}") from None
    try:
        return read_yaml(text)
    except BadInput as error:
        if len(text) > LONGEST_YAML:
            raise BadInput(f"{path}: {error}") from None
    # A mask is as long as a colon, so that the reported position of an error is correct.
    masked = "\n".join(_mask(line) for line in text.splitlines())
    try:
        return _unmask(read_yaml(masked))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _mask(line: str) -> str:
    """Return a line with the colons in its text masked, so that only the key's colon is parsed."""
    key = _KEY.match(line)
    start = key.end() if key else 0
    text = line[start:]
    return line if text.startswith(('"', "'", "{", "[")) else line[:start] + re.sub(r":(?=\s)", _MASK, text)


def _unmask(value: Any) -> Any:
    """Return the parsed content with the masks replaced by characters that HTML shows as colons."""
    if isinstance(value, dict):
        return {_unmask(key): _unmask(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_unmask(each) for each in value]
    return value.replace(_MASK, "&#58;") if isinstance(value, str) else value


def _flat(pages: Sequence[Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the pages in order, including the pages in random blocks."""
    for page in pages:
        if isinstance(page, Mapping):
            yield page
        elif isinstance(page, list):
            yield from _flat(page)


def _item(page: Mapping[str, Any], kind: str, notes: list[str]) -> dict[str, Any]:
    name, stimuli = str(page.get("id")), page.get("stimuli")
    if not isinstance(stimuli, Mapping) or not stimuli:
        raise BadInput(f"page {name} has no stimuli")
    category, systems = split_names(name, [str(key) for key in stimuli])
    recordings = {
        system: dict(audio) if isinstance(audio, Mapping) else {"audio": str(audio)}
        for system, audio in zip(systems, stimuli.values(), strict=True)
    }
    item: dict[str, Any] = {"id": category, "stimuli": recordings}
    if kind == "mushra":
        for key, anchor in (("high", HIGH), ("low", LOW)):
            if anchor in recordings:
                item[key] = recordings.pop(anchor)
        if page.get("reference"):
            item["reference"] = {"audio": str(page["reference"])}
        for option, band in (("createAnchor35", "3.5"), ("createAnchor70", "7")):
            if page.get(option):
                notes.append(
                    f"page {name}: podeval does not create the {band} kHz low-pass anchor; supply it under the key "
                    f"`low`"
                )
    return item


def _questions(page: Mapping[str, Any], path: Path, notes: list[str]) -> list[dict[str, Any]]:
    """Return the questions that a page asks about each stimulus; empty if podeval's own questions are to be asked.

    Raises:
        BadInput: the page asks questions that podeval's pages cannot ask; the message names all these questions.
    """
    response = page.get("response") or []
    entries = [entry for part in response for entry in (part if isinstance(part, list) else [part])]
    if entries and all(isinstance(entry, Mapping) and "label" in entry and not entry.get("type") for entry in entries):
        # In webMUSHRA's own layout, the page is one question, and its responses are the marks.
        entries = [{"type": "likert", "label": page.get("content") or page.get("name"), "response": entries}]
    questions: list[dict[str, Any]] = []
    strange: list[str] = []
    required: list[str] = []
    for entry in entries:
        kind, text, labels = _entry(entry)
        if not text or (kind in _BY_LABELS and len(labels) < 2) or kind not in (*_IN_WORDS, *_BY_LABELS):
            strange.append(f"{text[:60] or 'a question without a text'!r} of type {kind or 'none'}")
        elif kind in _BY_LABELS:
            question = {"name": f"q{len(questions) + 1}", "text": text, "labels": labels}
            questions.append(question | ({"choice": True} if kind == "select" else {}))
        elif _WHY.match(text) and questions and questions[-1].get("labels") and not questions[-1].get("reason"):
            questions[-1]["reason"] = True
        else:
            questions.append({"name": f"q{len(questions) + 1}", "text": text})
            if kind != "option" and not (isinstance(entry, Mapping) and entry.get("optional")):
                required.append(text)
    if strange:
        more = f" and {len(strange) - 3} more" if strange[3:] else ""
        raise BadInput(
            f"{path} asks questions that podeval's pages cannot ask: {'; '.join(strange[:3])}{more}; use "
            f"labels (rate2 with "
            "rate_labels), stars (rate), a list (select) or free text (text), or write a design of podeval's own"
        )
    questions = name_questions(questions)
    in_words = [question["text"] for question in questions if not question.get("labels")]
    speakers = next((question["text"] for question in questions if question["name"] == SPEAKERS), "")
    left = [text for text in required if text in in_words and text != speakers]
    notes += [f"{text[:60]!r} is answered in words; here, listeners may skip this question" for text in left]
    if any(question.get("labels", [""])[0].startswith("0") for question in questions):
        notes.append("marks given with eleven stars are 1 to 11 here, one more than the 0 to 10 that listeners see")
    if speakers:
        notes.append(
            "the questions are PodEval's: their answers are screened, and scored with Q and J, as for podeval's "
            "nine questions"
        )
    if not questions:
        notes.append("the pages have no questions of their own, so podeval's nine questions about a podcast are used")
    return questions


def _entry(entry: Any) -> tuple[str, str, list[str]]:
    """Return the type, text and labels of an entry in a page's `response`."""
    if not isinstance(entry, Mapping):
        return "", str(entry), []
    kind, stars, labels = str(entry.get("type") or ""), entry.get("rate"), entry.get("rate_labels")
    listed = [part for part in entry.get("response") or () if isinstance(part, Mapping)]
    # The list of choices may be a separate response.
    selects = [part.get("select_value") for part in (entry, *listed) if part.get("type") == "select"]
    if kind == "rate" and isinstance(stars, int) and 2 <= stars <= 20:
        labels = _label_stars(entry, stars)
    elif selects:
        kind, labels = "select", str(selects[0] or "").split("/")
    elif labels is None:
        labels = [option.get("label") for option in listed]
    labels = [_text(label) for label in labels] if isinstance(labels, list) else []
    if isinstance(stars, int) and stars != len(labels):
        labels = []
    return kind, _text(entry.get("label")), labels if all(labels) else []


def _label_stars(entry: Mapping[str, Any], stars: int) -> list[str]:
    """Return the numbers of stars as labels, with the page's words added at both ends and in the middle."""
    numbers = range(stars) if stars == _TEN else range(1, stars + 1)
    keys = {0: "min_value", stars // 2: "mid_value", stars - 1: "max_value"}
    meanings = {number: str(entry[key]) for number, key in keys.items() if entry.get(key)}
    return [f"{label}: {meanings[n]}" if n in meanings else str(label) for n, label in enumerate(numbers)]


def _list_demographics(entries: Sequence[Any], notes: list[str]) -> list[dict[str, Any]]:
    """Return the last page's questions about the listener, except for the name; the list is empty if no question has
    labels.
    """
    questions: list[dict[str, Any]] = []
    for number, entry in enumerate(entries, 1):
        kind, text, labels = _entry(entry)
        plain = re.sub(r"[^a-z0-9_]", "", str(entry.get("name") or "").lower()) if isinstance(entry, Mapping) else ""
        name = plain if re.match("[a-z]", plain) else f"d{number}"
        if not text or plain in ("username", "email"):
            continue
        multiple = kind == "likert2" or len(labels) < 2
        options = f" ({', '.join(labels)})" if multiple and labels else ""
        choices = {} if multiple else {"labels": labels, "choice": True}
        questions.append({"name": name[:40], "text": text + options, **choices})
    if not any(question.get("labels") for question in questions):
        return []
    notes.append(f"a last page asks listeners {len(questions)} questions about themselves")
    return questions


def _text(markup: Any) -> str:
    """Return the visible text of a piece of HTML."""
    plain = html.unescape(re.sub(r"<[^<>]*>", "", str(markup if markup is not None else "")))
    return re.sub(r"\s+", " ", plain).strip()
