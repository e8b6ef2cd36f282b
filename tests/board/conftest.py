"""The board's fixture of runs, shared with the tests of its face."""

import pandas as pd
import pytest

from podeval.board.runs_folder import RunsFolder
from tests.space.fixture_runs import write_runs


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunsFolder:
    return RunsFolder(write_runs(tmp_path_factory.mktemp("leaderboard") / "runs"))


@pytest.fixture(scope="session")
def board(folder: RunsFolder) -> pd.DataFrame:
    return folder.board()
