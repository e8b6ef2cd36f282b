"""The two walls of the sandbox, for tests that run against both: bubblewrap, and what stands where there is none."""

import pytest

from podeval import sandbox
from podeval.sandbox import second_wall

BUBBLEWRAP, SECOND = "bubblewrap", "the second wall"
_NO_BUBBLEWRAP, _NO_SECOND = sandbox.explain_missing_isolation(), sandbox.explain_missing_second_wall()
if _NO_SECOND is None and not second_wall.find_version():
    _NO_SECOND = "this kernel has no Landlock"

isolated = pytest.mark.skipif(_NO_BUBBLEWRAP is not None, reason=f"no isolation here: {_NO_BUBBLEWRAP}")
enclosed = pytest.mark.skipif(_NO_SECOND is not None, reason=f"no second wall here: {_NO_SECOND}")
WALLS = [pytest.param(BUBBLEWRAP, marks=isolated), pytest.param(SECOND, marks=enclosed)]


def stand_up(wall: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have a wall be the one that stands around podeval's own programs; for the second there is no bubblewrap."""
    if wall == SECOND:
        monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: "no bubblewrap here")
    return wall
