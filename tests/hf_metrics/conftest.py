import sys
from pathlib import Path

import pytest


@pytest.fixture
def installed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """This process as one whose `evaluate` is offline and has the modules installed; where each script went."""
    config = pytest.importorskip("evaluate.config")
    from podeval.measuring.space_files import install

    monkeypatch.setattr(config, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(config, "HF_METRICS_CACHE", str(tmp_path / "metrics"))
    monkeypatch.setattr(config, "HF_EVALUATE_OFFLINE", True)
    # `evaluate` puts the folder on the path and imports `evaluate_modules` from it, once a process.
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "evaluate_modules"]:
        monkeypatch.delitem(sys.modules, name)
    return install()
