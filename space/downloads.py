"""The shown table as files a reader can take away."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from collections import deque
from pathlib import Path

import pandas as pd

from podeval.leaderboard.table import csv_safe

KEPT = 64
"""Views whose files are kept; Gradio has its own copy of what it offers."""


class Downloads:
    """Writes tables as CSV and Parquet, and deletes the oldest."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="podeval-board-"))
        self._written: deque[Path] = deque()
        self._lock = threading.Lock()

    def write(self, frame: pd.DataFrame, name: str) -> tuple[str, str]:
        """Paths of a CSV and a Parquet file with these rows, named after what they show."""
        folder = Path(tempfile.mkdtemp(dir=self._root))
        stem = folder / re.sub(r"[^\w.-]+", "-", name)
        csv, parquet = stem.parent / f"{stem.name}.csv", stem.parent / f"{stem.name}.parquet"
        csv_safe(frame).to_csv(csv, index=False)
        frame.to_parquet(parquet, index=False)
        with self._lock:
            self._written.append(folder)
            stale = [self._written.popleft() for _ in range(len(self._written) - KEPT)]
        for old in stale:
            shutil.rmtree(old, ignore_errors=True)
        return str(csv), str(parquet)
