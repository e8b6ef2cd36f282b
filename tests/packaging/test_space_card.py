"""The card of the Space says what finders look for, and what whoever copies it must set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from podeval.datasets import catalogue

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def card() -> tuple[dict[str, Any], str]:
    _, head, text = (REPOSITORY / "space" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), text


def test_finders_of_leaderboards_find_it(card: tuple[dict[str, Any], str]) -> None:
    head, _ = card
    assert head["datasets"] == [f"podeval/{name}" for name in catalogue.NAMES]
    wanted = {"leaderboard", "arena", "mcp-server", "submission:automatic", "test:public", "judge:auto", "judge:humans"}
    assert wanted | {"modality:audio", "eval:generation", "language:english", "language:chinese"} <= set(head["tags"])
    assert len(head["short_description"]) <= 60, "the Hub takes no longer one"


def test_what_a_copy_must_set_is_what_the_code_reads(card: tuple[dict[str, Any], str]) -> None:
    _, text = card
    table = text.partition("## A copy of your own")[2].partition("\n\nTools")[0]
    names = set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE))
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for top in ("space", "benchmark/podeval")
        for path in (REPOSITORY / top).rglob("*.py")
    )
    assert {"PODEVAL_SECRET", "DATABASE_URL", "PODEVAL_BUCKET", "PODEVAL_RUNS"} <= names
    assert not [name for name in names if f'"{name}"' not in code]
