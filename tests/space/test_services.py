"""What a Space takes that loses its disk at every restart."""

import secrets
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from podeval.store.secret import FILE_VARIABLE, VARIABLE
from tests.space.pages_fixture import build_pages


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a Space that has neither a database server nor a secret of its own."""
    monkeypatch.setenv("SPACE_ID", "podeval/leaderboard")
    for name in ("DATABASE_URL", "PODEVAL_BUCKET", VARIABLE, FILE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "bucket"


def test_a_space_without_a_lasting_place_takes_nothing(bucket: Path, tmp_path: Path) -> None:
    from services import open_services

    services = open_services(tmp_path / "runs")
    assert "DATABASE_URL or mount a bucket" in (services.closed or "")
    assert services.desk
    assert services.desk.closed == services.closed
    services.database.close()


def test_a_space_with_a_bucket_takes_votes_and_nothing_it_would_lose(
    bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pages import listening
    from services import open_services

    monkeypatch.setenv("PODEVAL_BUCKET", str(bucket))
    services = open_services(tmp_path / "runs")
    assert "its owner can set PODEVAL_SECRET" in (services.closed or "")
    services.database.close()

    monkeypatch.setenv(VARIABLE, secrets.token_hex(32))
    services = open_services(tmp_path / "runs")
    assert services.closed is None, "votes are taken"
    assert services.desk
    assert "only votes are accepted here" in services.desk.closed
    app = build_pages(services, listening, mode="oidc")
    told = TestClient(app, headers={"x-podeval": "1"}).post(
        "/listen/any/sessions", json={"pid": "ann", "consent": True}
    )
    assert (told.status_code, told.json()["reason"]) == (503, "closed")
    assert "DATABASE_URL" in told.json()["error"]
    services.database.close()
