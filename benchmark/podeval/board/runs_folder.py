"""Read a folder of runs for the board: its Parquet tables, and the outputs that they point to."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.board.columns import Column
from podeval.board.query import Index, Numbers
from podeval.board.system_info import collect_by_system
from podeval.board.view import ResolvedView
from podeval.errors import BadInput
from podeval.runs.board_tables import (
    BOARD,
    ITEMS,
    SYSTEMS,
    BoardRow,
    ItemRow,
    SystemRow,
    read_table,
)

Stamp = tuple[int, int]


@dataclass(frozen=True)
class PlayableTurn:
    """The words of one speaker, from `start` to `end` seconds; None where the output does not give times."""

    speaker: str
    start: float | None
    end: float | None
    text: str


@dataclass(frozen=True)
class PlayableAnswer:
    """One answer in a dialogue: its audio, where there is any, and its words, where they are known."""

    audio: Path | None
    words: str


@dataclass(frozen=True)
class PlayableOutput:
    """The playable output of a system for one item; times in seconds.

    `failed` says why there is no output, `removed` gives the day on which its audio was removed to free the disk.
    """

    audio: Path | None
    turns: tuple[PlayableTurn, ...]
    duration: float | None
    wall_seconds: float | None
    answers: tuple[PlayableAnswer, ...] = ()
    failed: str = ""
    removed: str = ""


class RunsFolder:
    """The results of a folder of runs, cached until a table changes."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Stamp, pd.DataFrame]] = {}
        self._index: tuple[tuple[Stamp | None, ...], Index] | None = None
        self._arranging = threading.Lock()
        self._sampled: tuple[Stamp | None, dict[tuple[str, str], dict[str, str]]] = (None, {})

    def board(self) -> pd.DataFrame:
        """Return the table of `BoardRow`; no rows where nothing has been run."""
        return self._table(BOARD, list(BoardRow.model_fields))

    def items(self) -> pd.DataFrame:
        """Return the table of `ItemRow`; no rows where nothing has been run."""
        return self._table(ITEMS, list(ItemRow.model_fields))

    def systems(self) -> pd.DataFrame:
        """Return the table of `SystemRow`, the facts that documents state of systems; no rows where there are none."""
        return self._table(SYSTEMS, list(SystemRow.model_fields))

    def index(self) -> Index:
        """Return the board and the stated facts of its systems, arranged for readers; cached until a table changes.

        Raises:
            BadInput: a table cannot be read.
        """
        stamps = tuple(_stamp(self.path / name) for name in (BOARD, SYSTEMS))
        with self._arranging:
            if self._index is None or self._index[0] != stamps:
                self._index = (stamps, self._read_index(bool(stamps[0])))
            return self._index[1]

    def _read_index(self, exists: bool) -> Index:
        try:
            numbers = Numbers.read(self.path / BOARD) if exists else Numbers.of(self.board())
            return Index(numbers, collect_by_system(self.systems()))
        except (OSError, ValueError, KeyError) as error:
            sentence = f"the tables of the board cannot be read ({error}); `podeval report` makes them again"
            raise BadInput(sentence) from error

    def item_values(self, settled: ResolvedView, column: Column, systems: Sequence[str]) -> dict[str, list[float]]:
        """Return the values of single items under a view's protocol, by system, in ascending order.

        Only the necessary rows of the table are read; a slice by category is applied, any other is not known there.
        """
        path, view = self.path / ITEMS, settled.view
        stamp = _stamp(path)
        if stamp is None:
            return {}
        category = view.slice.removeprefix("category=") if view.slice.startswith("category=") else ""
        benchmark, _, split = view.board.partition("/")
        fields = (benchmark, split, view.profile, column.metric, settled.protocols[column.metric])
        return _item_values(path, stamp, fields, column.key, category, tuple(systems))

    def samples(self, board: str, profile: str) -> dict[str, str]:
        """Return an item to hear of each system of a board that left a recording of one: where it can be, the same.

        Args:
            board: `benchmark/split`.
            profile: under which they were measured.
        """
        stamp = _stamp(self.path / ITEMS)
        with self._lock:
            if stamp != self._sampled[0]:
                self._sampled = (stamp, {})
            kept = self._sampled[1].get((board, profile))
        if kept is None:
            kept = self._choose_samples(board, profile) if stamp else {}
            with self._lock:
                self._sampled[1][board, profile] = kept
        return kept

    def _choose_samples(self, board: str, profile: str) -> dict[str, str]:
        import pyarrow.parquet as pq

        benchmark, _, split = board.partition("/")
        filters = [("benchmark", "=", benchmark), ("split", "=", split), ("profile", "=", profile)]
        columns = ["system", "item", "output"]
        table = pq.read_table(self.path / ITEMS, columns=columns, filters=[*filters, ("output", "!=", "")])
        outputs: dict[str, dict[str, str]] = {}
        for row in table.group_by(columns).aggregate([]).to_pylist():
            outputs.setdefault(row["system"], {})[row["item"]] = row["output"]
        common = Counter(item for of_system in outputs.values() for item in of_system)
        by_spread = sorted(common, key=lambda item: (-common[item], item))
        samples = {}
        for system, of_system in outputs.items():
            item = next(item for item in by_spread if item in of_system)
            if self._can_be_heard(of_system[item]):
                samples[system] = item
        return samples

    def _can_be_heard(self, relative: str) -> bool:
        try:
            output = self.output(relative)
        except BadInput:
            return False
        return output.audio is not None or bool(output.answers and output.answers[0].audio)

    def output(self, relative: str) -> PlayableOutput:
        """Return the output whose document is at a path relative to the folder, with the audio beside it.

        Raises:
            BadInput: the path or the audio it names lies outside the folder, or cannot be read.
        """
        document = self._inside(self.path / relative, relative)
        try:
            data = json.loads(document.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(
                f"the output {relative!r} cannot be read ({error}); run the system on this item again"
            ) from None
        if not isinstance(data, dict):
            raise BadInput(f"the output {relative!r} is not a JSON object; run the system on this item again")
        return PlayableOutput(
            audio=self._audio(document, data.get("audio")),
            turns=_turns(data),
            duration=_number(data.get("duration")),
            wall_seconds=_number(data.get("wall_seconds")),
            answers=self._answers(document, data.get("answers")),
            failed=str(data.get("failed") or ""),
            removed=str(data.get("audio_removed") or ""),
        )

    def _table(self, name: str, columns: list[str]) -> pd.DataFrame:
        path = self.path / name
        with self._lock:
            stamp = _stamp(path)
            if stamp is None:
                return pd.DataFrame(columns=columns)
            kept = self._kept.get(name)
            if kept is None or kept[0] != stamp:
                kept = self._kept[name] = (stamp, read_table(path))
            return kept[1]

    def _answers(self, document: Path, entries: Any) -> tuple[PlayableAnswer, ...]:
        answers = [answer for answer in entries if isinstance(answer, dict)] if isinstance(entries, list) else []
        return tuple(
            PlayableAnswer(self._audio(document, answer.get("audio")), str(answer.get("words", "")))
            for answer in answers
        )

    def _audio(self, document: Path, name: Any) -> Path | None:
        if not name:
            return None
        audio = self._inside(document.parent / str(name), str(name))
        if audio.suffix.lower()[1:] not in AUDIO_ENDINGS:
            raise BadInput(f"the output names {str(name)!r} as its audio, which is not an audio file")
        return audio if audio.is_file() else None

    def _inside(self, path: Path, name: str) -> Path:
        resolved = path.resolve()
        if not resolved.is_relative_to(self.path):
            raise BadInput(f"the output path {name!r} leaves the folder of runs and is not opened")
        return resolved


@lru_cache(maxsize=64)
def _item_values(
    path: Path, stamp: Stamp, fields: tuple[str, ...], key: str, category: str, systems: tuple[str, ...]
) -> dict[str, list[float]]:
    import pyarrow.parquet as pq

    names = ("benchmark", "split", "profile", "metric", "protocol")
    filters: list[tuple[str, str, Any]] = [(name, "=", text) for name, text in zip(names, fields, strict=True)]
    filters.append(("system", "in", systems))
    if category:
        filters.append(("category", "=", category))
    table = pq.read_table(path, columns=["system", "result"], filters=filters)
    values_of: dict[str, list[float]] = {system: [] for system in systems}
    for system, result in zip(table["system"].to_pylist(), table["result"].to_pylist(), strict=True):
        value = json.loads(result).get(key)
        if isinstance(value, int | float) and math.isfinite(value):
            values_of[system].append(float(value))
    return {system: sorted(values) for system, values in values_of.items() if values}


def _stamp(path: Path) -> Stamp | None:
    """Return a value that changes when a file does; None where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (status.st_mtime_ns, status.st_size)


def _turns(data: dict[str, Any]) -> tuple[PlayableTurn, ...]:
    entries = data.get("turns") or data.get("script") or []
    return tuple(
        PlayableTurn(
            speaker=str(turn.get("speaker", "")),
            start=_number(turn.get("start")),
            end=_number(turn.get("end")),
            text=str(turn.get("text", "")),
        )
        for turn in entries
        if isinstance(turn, dict)
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
