import re
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "../shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The founders' reference material; only in their workplace."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"reference material is not beside the repository ({SHARED.resolve()})")
    return SHARED


@pytest.fixture(scope="session")
def transcripts(shared: Path) -> dict[str, str]:
    """PodEval's example transcripts, segment texts joined by one space."""
    texts = {}
    for path in sorted((shared / "data/podeval/real_pod/example_processed").glob("*/transcription.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        texts[path.parent.name] = " ".join(re.sub(r"^\[[\d.]+-[\d.]+\]:", "", line).strip() for line in lines)
    return texts
