"""The whole site, board and all, at a public address, over runs and a database in the same folder."""

from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]
SPACE = REPOSITORY / "space"


@pytest.fixture(scope="session")
def folder_of_runs(board_app: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.space.fixture_runs import write_runs

    return Path(write_runs(tmp_path_factory.mktemp("secure") / "runs"))


@pytest.fixture(scope="session")
def public_site(board_app: ModuleType, folder_of_runs: Path) -> object:
    """The site as the world reaches it; who signs in is asked of a provider that nobody needs here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OAUTH_CLIENT_ID", "podeval")
        patch.setenv("OAUTH_CLIENT_SECRET", "very-secret")
        patch.setenv("OPENID_PROVIDER_URL", "http://127.0.0.1:9")
        return board_app.build(folder_of_runs, "0.0.0.0")
