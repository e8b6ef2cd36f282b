"""The content of runs that a takedown deletes, and whether a text or a file holds the same content."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from podeval.audio.decode import hash_file
from podeval.runs.run_folder import RunFolder
from podeval.store.files import read_lines
from podeval.submissions.content_marks import compute_marks_of_run, compute_sound_mark, list_outputs

LEAST_QUOTED = 24
"""Fewest letters of a whole passage that count as a quote, whatever their case, spaces and punctuation."""

LEAST_COPIED = 40
"""Fewest consecutive letters of the system's own words that count as a quote; `_STRIDE` more are always noticed."""

_STRIDE = 10
_RECORD = re.compile(r"\b([0-9a-f]{16})-\d+-\d+\b")


@dataclass
class SpokenContent:
    """The content of runs: recordings, texts, and the digests by which both are recognised.

    Attributes:
        marks: digests by which it is recognised.
        contents: SHA-256 of the recordings' files, by which cached facts are found.
        texts: passages that judges, readers and listeners may have been shown.
        own_words: those of them that are the system's own words, and not the benchmark's.
        records: keys of exchanges with judges, as far as results name them.
    """

    marks: set[str] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    own_words: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    def add(self, run: RunFolder) -> None:
        """Add the content of a run."""
        self.marks |= compute_marks_of_run(run)
        for path in run.outputs.glob("*"):
            if path.suffix != ".json" and path.is_file() and path.stat().st_size:
                self.contents.add(hash_file(path))
        scripted = set()
        for output in list_outputs(run):
            self.own_words |= {answer.words for answer in output.answers}
            if run.plan().track == "write":
                self.own_words |= {turn.get("text", "") for turn in output.script}
            elif output.script:
                scripted.add(output.item)
        for path in run.path.glob("*/results.jsonl"):
            for line in read_lines(path):
                notes = line["result"].get("notes", {})
                self.records.update(_RECORD.findall(json.dumps(notes)))
                if isinstance(transcript := notes.get("transcript"), str):
                    # Of a script of the benchmark's every system says the same.
                    (self.texts if line["item"] in scripted else self.own_words).add(transcript)
        self.texts |= self.own_words
        self.__dict__.pop("_openings", None)
        self.__dict__.pop("_stretches", None)

    def is_quoted_in(self, text: str) -> bool:
        """Tell whether a text quotes a whole passage, or a stretch of the system's own words."""
        letters = _letters(text)
        for start in range(len(letters) - LEAST_QUOTED + 1):
            passages = self._openings.get(letters[start : start + LEAST_QUOTED], ())
            if any(letters.startswith(passage, start) for passage in passages):
                return True
            if letters[start : start + LEAST_COPIED] in self._stretches:
                return True
        return False

    def is_shown_in(self, line: Mapping[str, Any]) -> bool:
        """Tell whether a line of judges' records is about the content."""
        if line["key"][:16] in self.records:
            return True
        return self.is_quoted_in("\n".join(list_texts([line.get("messages", ()), line.get("answer", ())])))

    def is_heard_in(self, path: Path) -> bool:
        """Tell whether a file is one of the recordings, or has its samples."""
        if not self.contents and not self.marks:
            return False
        return hash_file(path) in self.contents or compute_sound_mark(path) in self.marks - {""}

    @cached_property
    def _openings(self) -> dict[str, list[str]]:
        kept: dict[str, list[str]] = {}
        for passage in map(_letters, self.texts):
            if len(passage) >= LEAST_QUOTED:
                kept.setdefault(passage[:LEAST_QUOTED], []).append(passage)
        return kept

    @cached_property
    def _stretches(self) -> set[str]:
        return {
            passage[start : start + LEAST_COPIED]
            for passage in map(_letters, self.own_words)
            for start in range(0, len(passage) - LEAST_COPIED + 1, _STRIDE)
        }


def list_texts(value: Any) -> Iterator[str]:
    """List every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from list_texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from list_texts(part)


def _letters(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKC", text).casefold() if letter.isalnum())
