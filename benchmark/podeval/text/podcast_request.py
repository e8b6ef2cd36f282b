"""A request for a podcast script, and the requested properties that can be counted in the script: language, speakers,
length.

A request is plain text, or an object with `instruction` and optionally `sources` (or `content`), `language`, `speakers`
(a number or several allowed numbers), `minutes` and an approved `checklist`. Rows of the dataset `podbench` have this
form.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from podeval.errors import BadInput
from podeval.text.asked_length import Minutes, is_length_strict, read_requested_length
from podeval.text.characters import clean_text
from podeval.text.json_text import parse_json
from podeval.text.language import IdentifiedLanguage, identify_language
from podeval.text.script import Script
from podeval.text.script_format import NAMES, UNITS, count_length, rate_of
from podeval.text.tokens import PER_MINUTE

Kind = Literal["explicit", "implied"]

TOLERANCE, STRICT_TOLERANCE = 0.2, 0.05
"""Tolerance as a share of the length; the second is for strict requests, and is always used in PodBench's variant."""

_TEXT_KEYS = ("instruction", "request", "query", "text")
_SOURCE_KEYS = ("sources", "content")
_MOST_VALUES = 100_000


@dataclass(frozen=True)
class PodcastRequest:
    """A request for a script; `language`, `speakers` and `minutes` are None if they are not stated."""

    text: str
    sources: tuple[str, ...] = ()
    language: str | None = None
    speakers: tuple[int, ...] | None = None
    minutes: Minutes | None = None
    checklist: tuple[tuple[str, Kind], ...] = ()

    @property
    def strict(self) -> bool:
        """Whether the request states that its length must be exact."""
        return self.minutes is not None and is_length_strict(self.text)

    @classmethod
    def parse(cls, source: "str | Mapping[str, Any] | PodcastRequest") -> "PodcastRequest":
        """Create a request from text, JSON or data; if there is no field for the length, the length is read from the
        wording of the request.

        Raises:
            BadInput: there is no instruction, or a field cannot be used.
        """
        if isinstance(source, PodcastRequest):
            return source
        data = read_request_fields(source) if isinstance(source, str) else source
        text = next((data[key] for key in _TEXT_KEYS if isinstance(data.get(key), str) and data[key].strip()), None)
        if text is None:
            raise BadInput(f"a request needs a text in the field {' or '.join(_TEXT_KEYS)}")
        return cls(
            text=clean_text(text),
            sources=_parse_texts(next((data[key] for key in _SOURCE_KEYS if data.get(key)), ())),
            language=_parse_language(data.get("language")),
            speakers=_parse_speakers(data.get("speakers")),
            minutes=_parse_minutes(data.get("minutes")) or read_requested_length(text),
            checklist=tuple(_parse_requirements(data.get("checklist") or ())),
        )


@dataclass(frozen=True)
class Counted:
    """Counted facts about a script, and whether each is as requested; None if not requested or undecidable."""

    language: str | None
    """Code of the language; `mul` for several languages, None if unknown."""
    shares: Mapping[str, float]
    """Share of the words by language, if several languages have at least 10 % each."""
    speakers: int
    length: int
    minutes: float | None
    """Estimated minutes of speech; None if words cannot be counted, as in Japanese."""
    language_as_asked: bool | None
    speakers_as_asked: bool | None
    length_as_asked: bool | None
    sentences: tuple[str, ...]
    """The same facts in words, one sentence each."""


def count_facts(script: Script, request: PodcastRequest, tolerance: float | None = None) -> Counted:
    """Count the properties of a script that a request specifies.

    Args:
        script: the script with its speakers.
        request: the request that the script should meet.
        tolerance: allowed deviation in either direction, as a share of the length; None means 20 %, or 5 % if strict.
    """
    # Count the facts.
    text = script.text
    written = identify_language(text)
    rate = rate_of(text)
    words = count_length(text)
    speakers = len(script.speakers)
    # Compare the length with the one requested.
    allowed = tolerance if tolerance is not None else STRICT_TOLERANCE if request.strict else TOLERANCE
    span = request.minutes
    fits = None
    if span is not None and rate is not None:
        fits = span.least * (1 - allowed) * rate - 1e-6 <= words <= span.most * (1 + allowed) * rate + 1e-6
    # Describe the facts for a judge.
    facts = [
        _describe_language(written, request),
        _describe_speakers(speakers, request),
        _describe_length(words, rate, request, allowed, fits),
    ]
    return Counted(
        written.code,
        written.noted,
        speakers,
        words,
        None if rate is None else words / rate,
        None if request.language is None else written.is_in(request.language),
        None if request.speakers is None else speakers in request.speakers,
        fits,
        tuple(fact for fact in facts if fact),
    )


def _describe_language(written: IdentifiedLanguage, request: PodcastRequest) -> str:
    """Describe the language in words; return "" if it is unknown, because a judge would treat a guess as a fact."""
    if written.code is None:
        return ""
    suffix = f"; {NAMES[request.language]} was asked for" if request.language else ""
    return f"The script is in {written.words}{suffix}."


def _describe_speakers(speakers: int, request: PodcastRequest) -> str:
    suffix = f"; {' or '.join(map(str, request.speakers))} asked for" if request.speakers else ""
    return f"It has {speakers} {'speaker' if speakers == 1 else 'speakers'}{suffix}."


def _describe_length(words: int, rate: int | None, request: PodcastRequest, allowed: float, fits: bool | None) -> str:
    if rate is None:
        return ""
    unit = UNITS["zh" if rate == PER_MINUTE["zh"] else "en"]
    length = f"It has {words} {unit}, {words / rate:.1f} minutes at {rate} a minute"
    if request.minutes is None:
        return f"{length}; no length was asked for."
    least, most = request.minutes.least, request.minutes.most
    span = (
        f"{least:g} minutes"
        if least == most
        else f"at least {least:g} minutes"
        if most == float("inf")
        else f"{least:g} to {most:g} minutes"
        if least
        else f"at most {most:g} minutes"
    )
    return f"{length}; {span} asked for, which it is{'' if fits else ' not'} within {allowed:.0%}."


def read_request_fields(text: str) -> Mapping[str, Any]:
    """Read the fields of a request in JSON; plain text is taken as the instruction.

    Raises:
        BadInput: the text begins like JSON, but is not JSON.
    """
    if not text.lstrip().startswith("{"):
        return {"instruction": text}
    try:
        data = parse_json(text.encode(), _MOST_VALUES)
    except ValueError as error:
        raise BadInput(f"the request looks like JSON, but is not valid JSON: {error}") from None
    return data if isinstance(data, Mapping) else {"instruction": text}


def _parse_texts(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise BadInput("the sources of a request must be a list of texts")
    return tuple(map(clean_text, texts))


def _parse_language(value: Any) -> str | None:
    if value is None:
        return None
    codes = {"english": "en", "chinese": "zh", "中文": "zh", "英文": "en", "英语": "en"}
    language = codes.get(str(value).lower(), str(value).lower()[:2])
    if language not in NAMES:
        raise BadInput(f"the language of a request must be en or zh, not {value!r}")
    return language


def _parse_speakers(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers = [value] if isinstance(value, int) else value
    if (
        not isinstance(numbers, Sequence)
        or not numbers
        or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in numbers)
    ):
        raise BadInput(f"the speakers of a request must be a number or a list of numbers, not {value!r}")
    return tuple(numbers)


def _parse_minutes(value: Any) -> Minutes | None:
    if value is None:
        return None
    span = [value, value] if isinstance(value, int | float) and not isinstance(value, bool) else value
    try:
        least, most = (float(end) for end in span)
    except (TypeError, ValueError):
        raise BadInput(f"the minutes of a request must be a number or two numbers, not {value!r}") from None
    if not 0 <= least <= most or most == 0:
        raise BadInput(f"the minutes of a request must be positive, with the smaller number first, not {value!r}")
    return Minutes(least, most)


def _parse_requirements(entries: Any) -> Iterator[tuple[str, Kind]]:
    for number, entry in enumerate(entries, 1):
        entry = {"requirement": entry} if isinstance(entry, str) else entry
        text = entry.get("requirement") if isinstance(entry, Mapping) else None
        kind = entry.get("kind", "explicit") if isinstance(entry, Mapping) else None
        if not isinstance(text, str) or not text.strip() or kind not in ("explicit", "implied"):
            raise BadInput(f"item {number} of the checklist needs a requirement and a kind (explicit or implied)")
        yield text, "implied" if kind == "implied" else "explicit"
