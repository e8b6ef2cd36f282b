"""Fetch the results of a job from a bucket as they come: only requested items, within limits, under plain names."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.hub.buckets import BucketFolder
from podeval.submissions.collect_outputs import is_name
from podeval.submissions.generation import Unusable
from podeval.systems.adapters.hand_over import ENDED, FILES, list_files, name_line
from podeval.systems.adapters.job import Generated

_LINE_MOST = 2**20


class TooMuch(Unusable):
    """A job handed over more than the limit for outputs; it was stopped."""


class FetchedResults:
    """The part of a folder of results that was fetched; each line once, together with its files."""

    def __init__(self, results: BucketFolder, items: dict[str, Item], seed: int, out: Path, most: int) -> None:
        self.out = out
        self.done: set[str] = set()
        self.ours: list[str] = []
        """Reasons why items were not made by our fault."""
        self.refused = ""
        """Why the model cannot be run."""
        self.end: dict[str, Any] = {}
        """The generation's own report of how it ended; empty where there is none."""
        self._results, self._asked, self._seed, self._left = results, items, seed, most
        out.mkdir(parents=True, exist_ok=True)

    def fetch_new(self, *, final: bool) -> list[tuple[Item, Generated]]:
        """Fetch items that got a line since the last look, with their files in `out`.

        Args:
            final: nothing more will come, so files that are missing stay missing.

        Raises:
            TooMuch: their files are larger than the limit for outputs.
            HubUnavailable: the Hub does not answer; nothing is lost.
        """
        sizes = self._results.files()
        new = []
        for item in self._asked.values():
            name = name_line(item.id, self._seed)
            if item.id in self.done or not 0 < sizes.get(name, 0) <= _LINE_MOST:
                continue
            line = self._fetch_line(name, sizes[name])
            if line is None or line.item != item.id or line.seed != self._seed:
                self.done.add(item.id)
                continue
            files = list_files(line)
            if not final and any(f"{FILES}/{file}" not in sizes for file in files):
                continue
            self.done.add(item.id)
            if line.error is not None and line.cause == "ours":
                self.ours.append(f"{item.id} was not made: {line.error}")
                continue
            self._fetch(files, sizes)
            new.append((item, line))
        if final:
            self._read_end(sizes)
        return new

    def _fetch_line(self, name: str, size: int) -> Generated | None:
        """Fetch a line; return None if it is not valid."""
        file = self.out.parent / "line.json"
        try:
            self._results.fetch(name, size, file)
            return Generated.model_validate_json(file.read_bytes())
        except (BadInput, ValidationError):
            return None

    def _fetch(self, files: Sequence[str], sizes: Mapping[str, int]) -> None:
        for file in files:
            size = sizes.get(f"{FILES}/{file}")
            if size is None or not is_name(file):
                continue  # the intake says what is wrong with it
            self._left -= size
            if self._left < 0:
                raise TooMuch("the model made more than outputs can be; it was stopped")
            try:
                self._results.fetch(f"{FILES}/{file}", size, self.out / file)
            except BadInput:
                continue

    def _read_end(self, sizes: Mapping[str, int]) -> None:
        if not 0 < sizes.get(ENDED, 0) <= _LINE_MOST:
            return
        file = self.out.parent / ENDED
        try:
            self._results.fetch(ENDED, sizes[ENDED], file)
            document = json.loads(file.read_bytes())
        except (BadInput, ValueError, RecursionError):
            return
        if isinstance(document, dict):
            self.end = document
            reason = str(document.get("refused") or "")
            if reason and document.get("cause") == "ours":
                self.ours.append(reason)
            else:
                self.refused = reason
