"""Read PodBench's `meta`, an object or JSON text whose key names are only partly published.

Only keys in the table `facts.json` are read; facts with an unknown key or an unexpected value are left empty and listed
in the row's notes, never guessed.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from podeval.files import locate_hub_source
from podeval.text.tokens import detect_language

Facts = Mapping[str, Any]

_COUNT = re.compile(r"(\d{1,2})\s*(?:人|位|名|个人|speakers?|hosts?|people|persons?)?")


@cache
def read_facts() -> Facts:
    """Read the versioned table `dataset_builders/podbench/facts.json`: buckets, dimensions and key names."""
    path = locate_hub_source("dataset_builders") / "podbench" / "facts.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


def find_bucket(kind: str, number: int | None) -> str | None:
    """Return the name of the bucket into which a number falls; None if there is no number or no such bucket.

    Args:
        kind: `input_buckets` (tokens, K = 1024) or `speaker_buckets`.
        number: number of tokens or speakers.
    """
    if number is None:
        return None
    return next((b["name"] for b in read_facts()[kind] if b["from"] <= number < b["below"]), None)


def parse_object(meta: Any) -> dict[str, Any] | None:
    """Parse `meta`, removing the nulls that Parquet adds for keys of other rows; None if `meta` is not an object."""
    if isinstance(meta, str):
        try:
            meta = json.loads(meta)
        except ValueError:
            return None
    if not isinstance(meta, Mapping):
        return None
    return {str(key): _drop_nulls(value) for key, value in meta.items() if value is not None}


def read_meta(meta: Mapping[str, Any], instruction: str) -> dict[str, Any]:
    """Read the facts about a row from `meta` (as returned by `parse_object`).

    Returns:
        The columns, which are None or empty if `meta` lacks them; `notes` lists everything that was not understood.
    """
    used, notes = set[str](), list[str]()

    def find(fact: str) -> Any:
        return _find_fact(meta, fact, used, notes)

    sources = _read_sources(find("sources"), notes)
    dimensions = _read_dimensions(find("dimensions"), notes)
    columns = {
        "sources": sources,
        "dimensions": dimensions,
        "domain": _read_domain(find("domain"), notes),
        "input_tokens": _read_tokens(find("input_tokens"), notes),
        "speakers": _read_speakers(find("speakers"), dimensions, notes),
        "language": _read_language(find("language"), sources, instruction, notes),
    }
    notes += [f"meta.{key} is not read; it is in meta_json" for key in meta if key not in used]
    return {**columns, "notes": notes}


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_drop_nulls(inner) for inner in value] if isinstance(value, list | tuple) else value


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", name)).strip().casefold()


def _find_fact(meta: Mapping[str, Any], fact: str, used: set[str], notes: list[str]) -> Any:
    """Return the value under one of a fact's names; None if there is no value or if two values disagree."""
    names = read_facts()["keys"][fact]
    spellings = {tuple(map(_fold, name.split("."))) for name in (*names["seen"], *names["others"])}
    matches = {path: value for path, value in _list_paths(meta) if tuple(map(_fold, path)) in spellings}
    # If a container itself has one of the names, use the value under that name inside the container.
    inner = {path: value for path, value in matches.items() if not any(p[:-1] == path for p in matches)}
    used |= {path[0] for path in inner}
    values = list(inner.values())
    if any(value != values[0] for value in values):
        notes.append(
            f"{fact}: {' and '.join('meta.' + '.'.join(path) for path in inner)} disagree; none of them is used"
        )
        return None
    return values[0] if values else None


def _list_paths(meta: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in meta.items():
        yield (key,), value
        if isinstance(value, Mapping):
            yield from (((key, name), inner) for name, inner in value.items())


def _read_sources(value: Any, notes: list[str]) -> list[Any]:
    """Read the passages; a value that is not text is left unchanged and refused by the rules."""
    if value is None:
        notes.append("sources: meta has no content")
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        notes.append(f"sources: meta.content is a {type(value).__name__}, not a list of texts")
        return []
    return value


def _read_dimensions(value: Any, notes: list[str]) -> list[dict[str, str | None]]:
    """Read the requirement dimensions, each with its name in the table and its name in the source."""
    if value is None:
        notes.append("dimensions: meta has no dims")
        return []
    if not isinstance(value, Mapping):
        notes.append(f"dimensions: meta.dims is a {type(value).__name__}, not an object; it is ignored")
        return []
    dimensions: list[dict[str, str | None]] = []
    for spelling, content in value.items():
        name = find_dimension(spelling)
        if name is None:
            notes.append(f"dimensions: {spelling} is not in the table")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        dimensions.append({"dimension": name, "value": text, "named": spelling})
    return dimensions


def find_dimension(text: str) -> str | None:
    """Return the dimension that a name (the paper's, the README's, a Chinese one or ours) denotes; None if unknown."""
    for name, names in read_facts()["dimensions"].items():
        spellings = [name, names["paper"], names["readme"], *names["zh"]]
        if _fold(text) in {_fold(spelling) for spelling in spellings if spelling}:
            return str(name)
    return None


def _read_domain(value: Any, notes: list[str]) -> str | None:
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    notes.append(f"domain: {_abbreviate(value)} is not text")
    return None


def _read_tokens(value: Any, notes: list[str]) -> int | None:
    if value is None:
        notes.append("input_tokens: meta does not say how long the input is")
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        notes.append(f"input_tokens: {_abbreviate(value)} is not a number of tokens")
        return None
    if find_bucket("input_buckets", value) is None:
        notes.append(f"input_tokens: {value} is beyond the paper's longest input")
    return value


def _read_speakers(value: Any, dimensions: Sequence[Mapping[str, str | None]], notes: list[str]) -> int | None:
    """Read the requested number of speakers from `meta`, or from the dimension for the number of speakers."""
    stated = next((d["value"] for d in dimensions if d["dimension"] == "speaker_number"), None)
    counts = [count for count in (_read_count(value), _read_count(stated)) if count is not None]
    unread = [text for text in (value, stated) if text is not None and _read_count(text) is None]
    notes += [f"speakers: {_abbreviate(text)} is not a number of speakers" for text in unread]
    if len(set(counts)) > 1:
        notes.append(f"speakers: meta says {counts[0]}, its dimension {counts[1]}; neither is used")
        return None
    if not counts:
        notes.append("speakers: meta does not say how many")
        return None
    if find_bucket("speaker_buckets", counts[0]) is None:
        notes.append(f"speakers: {counts[0]} is not within the paper's range of 1 to 4")
    return counts[0]


def _read_count(value: Any) -> int | None:
    """Read a number of speakers from a number, a list of speakers, or words that state only the number."""
    if isinstance(value, list):
        return len(value) or None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value > 0 else None
    if not isinstance(value, str):
        return None
    folded = _fold(value)
    if match := _COUNT.fullmatch(folded):
        return int(match[1]) or None
    words = {_fold(word): int(number) for number, words in read_facts()["speaker_words"].items() for word in words}
    return words.get(folded)


def _read_language(value: Any, sources: Sequence[Any], instruction: str, notes: list[str]) -> str:
    """Read the language as `zh` or `en`; other values are returned unchanged, and the rules refuse them."""
    words = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    codes = {_find_language_code(word) for word in words if word is not None}
    if len(codes) == 1:
        return codes.pop()
    text = " ".join(source for source in sources if isinstance(source, str)) or instruction
    code = detect_language(text)
    why = f"meta names {len(codes)}" if codes else "meta names none"
    notes.append(f"language: {why}; {code}, the language of the {'sources' if sources else 'instruction'}, is used")
    return code


def _find_language_code(word: Any) -> str:
    for code, words in read_facts()["languages"].items():
        if isinstance(word, str) and _fold(word) in {_fold(spelling) for spelling in words}:
            return str(code)
    return word if isinstance(word, str) else _abbreviate(word)


def _abbreviate(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:60]
