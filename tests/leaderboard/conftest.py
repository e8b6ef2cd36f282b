"""The board's fixture of runs, shared with the tests of its face."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "space"))

from fixture_runs import write_runs

from podeval.leaderboard.runs_folder import RunsFolder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunsFolder:
    return RunsFolder(write_runs(tmp_path_factory.mktemp("leaderboard") / "runs"))


@pytest.fixture(scope="session")
def board(folder: RunsFolder) -> pd.DataFrame:
    return folder.board()
