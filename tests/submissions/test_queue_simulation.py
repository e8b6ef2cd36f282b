"""The study that simulates the queue, small: a few systems, few workers that often die, and all of its own checks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podeval import benchmarks
from studies import cost_model
from studies import queue_simulation as study

STUDIES = Path(__file__).parents[2] / "studies"


def small(**changes: Any) -> Any:
    """Items of minutes, workers that fail every few hours: as much happens in a day as else in a month."""
    world = study.World(systems=14, workers=3, days=0.4, scale=0.02, failure_hours=5.0, down_hours=0.2, broken=0.15)
    return replace(world, silence_hours=8.0, faults=0.1, shared_work=True, **changes)


def test_whatever_dies_every_submission_ends_once_and_as_it_must(empty_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(empty_store.read_bytes())
    world = small()
    report = study.Simulation(world, path).run()
    assert report.published + report.failed + report.given_up == world.systems
    assert report.published >= 10
    assert report.failed >= 1
    assert report.deaths + report.lost_leases >= 1, "something has to go wrong for it to be a test"
    assert report.attempts > world.systems
    assert len(report.waits["all"]) == world.systems
    assert 0.2 < report.used <= 1
    assert 0 <= report.again < 0.6


def test_the_page_shows_what_the_cost_model_says() -> None:
    page = (STUDIES.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    assert cost_model.table(1_000) in page
    scripts = benchmarks.get("real_pod").items("topics")
    words = sum(len(turn.text.split()) for item in scripts for turn in item.script.turns) / len(scripts)
    assert cost_model.VOICE.audio_seconds == pytest.approx(words / cost_model.WORDS_PER_MINUTE * 60, rel=1e-3)
