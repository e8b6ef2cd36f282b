"""The house keeps its own rules: rooms import only downward, and what is made from declarations is current."""

import ast
import importlib.util
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[1] / "benchmark" / "podeval"
FLOORS = (
    ("errors", "progress", "hub_sources", "__init__"),
    ("audio", "text", "stats"),
    ("models",),
    ("analysis",),
    ("judges",),
    ("metrics",),
    ("benchmarks", "systems", "human", "store", "hub", "sandbox"),
    ("runs", "data"),
    ("submissions", "arena", "listening", "leaderboard"),
    ("moderation", "questions"),
    ("evaluate_module", "metric_scripts", "metric_page", "docs", "cli", "client", "__main__"),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def room_of(path: Path) -> str:
    return path.relative_to(ENGINE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    parts = [name.split(".") for name in names if name.startswith("podeval.")]
    return {part[1] for part in parts if part[1] in FLOOR}


MODULES = sorted(ENGINE.rglob("*.py"))


def test_every_module_has_a_floor() -> None:
    assert {room_of(path) for path in MODULES} == set(FLOOR)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ENGINE)))
def test_a_room_imports_only_rooms_below_it(path: Path) -> None:
    own = room_of(path)
    above = {room for room in imported_rooms(path) - {own} if FLOOR[room] > FLOOR[own]}
    beside = {room for room in imported_rooms(path) - {own} if FLOOR[room] == FLOOR[own]}
    assert not above, f"{path} reaches up to {above}"
    if own in ("audio", "stats", "systems", "benchmarks", "human"):
        assert not beside, f"{path} reaches across to {beside}"


def test_pages_made_from_declarations_are_current() -> None:
    from podeval.cli.generate_docs import pages

    checkout = ENGINE.parents[1]
    stale = [str(p.relative_to(checkout)) for p, text in pages(checkout).items() if p.read_text("utf-8") != text]
    assert not stale, f"run `python -m podeval.cli.generate_docs`: {stale}"


def test_no_file_of_a_metric_space_is_left_over() -> None:
    from podeval.cli.generate_docs import pages

    checkout = ENGINE.parents[1]
    found = (path for path in (checkout / "hf_metrics").rglob("*") if path.is_file())
    there = {path for path in found if "__pycache__" not in path.parts}
    assert there == {path for path in pages(checkout) if "hf_metrics" in path.parts}


def test_torchaudio_is_not_in_this_environment() -> None:
    """Its wheel cannot load beside a CPU build of torch, and breaks transformers where it is found."""
    assert importlib.util.find_spec("torchaudio") is None
