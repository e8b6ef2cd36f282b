"""The documentation, searched: the passages that hold the words asked for, rare words counting more."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel

from podeval.hub_sources import hub_source
from podeval.metrics import catalogue

LONGEST = 2_400
"""Characters of a passage."""

_WORD = re.compile(r"[a-z0-9_]+|[一-鿿]")


class DocumentationPassage(BaseModel):
    """Part of a page under one heading."""

    page: str
    heading: str
    text: str


class Documentation:
    """The pages of a folder and the documentation of every metric.

    Args:
        folder: of Markdown files; that of this installation by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def search(self, query: str, most: int = 5) -> list[DocumentationPassage]:
        """The passages that fit best, the best first; none where none of the words occurs.

        Args:
            query: words.
            most: passages.
        """
        wanted = set(_words(query))
        ranked = sorted(((self._fit(number, wanted), -number) for number in range(len(self._passages))), reverse=True)
        return [self._passages[-number] for fit, number in ranked[:most] if fit > 0]

    def _fit(self, number: int, wanted: set[str]) -> float:
        """BM25 with its usual constants (k1 1.2, b 0.75), words of the heading three times."""
        counts, length = self._counts[number]
        mean = self._mean_length
        return sum(
            self._rarity(word) * counts[word] * 2.2 / (counts[word] + 1.2 * (0.25 + 0.75 * length / mean))
            for word in wanted
            if counts[word]
        )

    def _rarity(self, word: str) -> float:
        holding = self._holding[word]
        return math.log(1 + (len(self._passages) - holding + 0.5) / (holding + 0.5))

    @cached_property
    def _passages(self) -> list[DocumentationPassage]:
        folder = self._folder or hub_source("docs")
        found: list[DocumentationPassage] = []
        for path in sorted(folder.rglob("*.md")):
            found += _split(path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8"))
        for metric in catalogue.all_metrics():
            found += _split(f"metric {metric.name}", f"# {metric.title}\n{metric.documentation}")
        return found

    @cached_property
    def _counts(self) -> list[tuple[Counter[str], int]]:
        counted = (Counter([*_words(p.text), *3 * _words(f"{p.page} {p.heading}")]) for p in self._passages)
        return [(counts, counts.total()) for counts in counted]

    @cached_property
    def _holding(self) -> Counter[str]:
        return Counter(word for counts, _ in self._counts for word in counts)

    @cached_property
    def _mean_length(self) -> float:
        return sum(length for _, length in self._counts) / max(1, len(self._counts))


def _split(page: str, content: str) -> Iterable[DocumentationPassage]:
    """By headings; what is longer than a passage may be, by paragraphs."""
    heading, lines, fenced = "", list[str](), False
    for line in [*content.splitlines(), "# "]:
        fenced ^= line.startswith("```")
        if not line.startswith("#") or fenced:
            lines.append(line)
            continue
        yield from (
            DocumentationPassage(page=page, heading=heading, text=text) for text in _cut("\n".join(lines).strip())
        )
        heading, lines = line.lstrip("# ").strip(), []


def _cut(text: str) -> Iterable[str]:
    while len(text) > LONGEST:
        end = text.rfind("\n\n", 0, LONGEST)
        end = end if end > 0 else LONGEST
        yield text[:end].strip()
        text = text[end:].strip()
    if text:
        yield text


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
