"""The board's fixture of runs, shared with the tests of its face."""

from pathlib import Path

import pandas as pd
import pytest

from podeval.board.runs_folder import RunsFolder
from tests.board.measured_run import write_run
from tests.space.fixture_runs import write_runs


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunsFolder:
    return RunsFolder(write_runs(tmp_path_factory.mktemp("leaderboard") / "runs"))


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model and one of a person, as `podeval run` leaves them; tests leave them as they are."""
    runs = tmp_path_factory.mktemp("on-disk") / "runs"
    write_run(runs, "robot", "model", 3.0)
    write_run(runs, "person", "human", 3.5)
    return runs


@pytest.fixture(scope="session")
def board(folder: RunsFolder) -> pd.DataFrame:
    return folder.board()
