"""What the tests of podeval.audio share."""

from pathlib import Path

import pytest

_SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real files and golden values beside the repository; absent in a public checkout."""
    if not _SHARED.is_dir():
        pytest.skip(f"no real files at {_SHARED}")
    return _SHARED
