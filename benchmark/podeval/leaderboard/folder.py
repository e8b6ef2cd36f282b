"""A folder of runs as the board reads it: two Parquet tables, and the outputs they point to."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from podeval.errors import BadInput
from podeval.store.results import BOARD, ITEMS, BoardRow, ItemRow, read_table

AUDIO_SUFFIXES = frozenset({".flac", ".wav", ".mp3", ".ogg", ".opus", ".m4a"})


@dataclass(frozen=True)
class Turn:
    """Words of one speaker, from `start` to `end` seconds; None where the output does not say."""

    speaker: str
    start: float | None
    end: float | None
    text: str


@dataclass(frozen=True)
class Output:
    """What a system said for one item; times in seconds."""

    audio: Path | None
    turns: tuple[Turn, ...]
    duration: float | None
    wall_seconds: float | None


class RunsFolder:
    """The results of a folder of runs, read once and again whenever a table has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[tuple[int, int], pd.DataFrame]] = {}

    def board(self) -> pd.DataFrame:
        """One row a `BoardRow`; no rows where nothing has been run."""
        return self._table(BOARD, list(BoardRow.model_fields))

    def items(self) -> pd.DataFrame:
        """One row an `ItemRow`; no rows where nothing has been run."""
        return self._table(ITEMS, list(ItemRow.model_fields))

    def output(self, relative: str) -> Output:
        """The output document at a path relative to the folder, with the audio beside it.

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
        return Output(
            audio=self._audio(document, data.get("audio")),
            turns=_turns(data),
            duration=_number(data.get("duration")),
            wall_seconds=_number(data.get("wall_seconds")),
        )

    def _table(self, name: str, columns: list[str]) -> pd.DataFrame:
        path = self.path / name
        with self._lock:
            try:
                status = path.stat()
            except FileNotFoundError:
                return pd.DataFrame(columns=columns)
            stamp = (status.st_mtime_ns, status.st_size)
            kept = self._kept.get(name)
            if kept is None or kept[0] != stamp:
                kept = self._kept[name] = (stamp, read_table(path))
            return kept[1]

    def _audio(self, document: Path, name: Any) -> Path | None:
        if not name:
            return None
        audio = self._inside(document.parent / str(name), str(name))
        if audio.suffix.lower() not in AUDIO_SUFFIXES:
            raise BadInput(f"the output names {str(name)!r} as its audio, which is not an audio file")
        return audio if audio.is_file() else None

    def _inside(self, path: Path, named: str) -> Path:
        resolved = path.resolve()
        if not resolved.is_relative_to(self.path):
            raise BadInput(f"the output path {named!r} leaves the folder of runs and is not opened")
        return resolved


def _turns(data: dict[str, Any]) -> tuple[Turn, ...]:
    listed = data.get("turns") or data.get("script") or []
    return tuple(
        Turn(
            speaker=str(turn.get("speaker", "")),
            start=_number(turn.get("start")),
            end=_number(turn.get("end")),
            text=str(turn.get("text", "")),
        )
        for turn in listed
        if isinstance(turn, dict)
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
