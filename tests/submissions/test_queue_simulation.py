"""The study that simulates the queue, small: a few systems, few workers that often die, and all of its own checks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

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


def test_what_is_simulated_is_the_same_with_the_same_seed(tmp_path: Path) -> None:
    worlds = [small(seed=seed) for seed in (3, 3, 4)]
    drawn = []
    for number, world in enumerate(worlds):
        simulation = study.Simulation(replace(world, systems=200), tmp_path / f"{number}.db")
        drawn.append([(work.owner, work.wanted_at, work.seconds) for work in simulation._works])
        simulation._database.close()
    assert drawn[0] == drawn[1] != drawn[2]
    hours = [seconds / 3600 / world.scale for _, _, seconds in drawn[0]]
    model = cost_model
    mean = model.cost(model.KINDS[0], 1).gpu_hours
    assert sum(hours) / len(hours) == pytest.approx(36.8, rel=0.25), "as much as the cost model says on average"
    assert mean == pytest.approx(38.9, abs=0.1)


def test_percentiles_are_those_of_the_sorted_values() -> None:
    assert study.percentiles([float(value) for value in range(100, 0, -1)]) == (51.0, 91.0, 100.0, 100.0)


def test_the_page_shows_what_the_cost_model_says() -> None:
    page = (STUDIES.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    assert cost_model.table(1_000) in page
