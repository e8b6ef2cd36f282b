"""The house keeps the drawing of docs/architecture.md, and what is made from declarations is current."""

import ast
import importlib
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from podeval.cli.generate_docs import floors, imports, pages, room_of

CHECKOUT = Path(__file__).parents[1]
ENGINE = CHECKOUT / "benchmark" / "podeval"
FLOOR = floors(CHECKOUT)
SERVICES = 8
MODULES = sorted(ENGINE.rglob("*.py"))


@cache
def imported() -> dict[str, set[str]]:
    """Every module with those of the engine that it imports, for types too."""
    return imports(ENGINE)


def test_every_module_has_a_floor() -> None:
    assert {room_of(module) for module in imported()} - {""} == set(FLOOR)
    assert set(FLOOR.values()) == set(range(1, 10))


def test_every_module_that_the_drawing_names_is_there() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = {name for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", page) if not name.startswith("podeval.")}
    assert len(modules) > 30
    assert not {name for name in modules if f"podeval.{name}" not in imported()}
    assert not [path for path in re.findall(r"`(space/\S+\.py)`", page) if not (CHECKOUT / path).is_file()]


@pytest.mark.parametrize("room", sorted(FLOOR))
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    for module, others in imported().items():
        if room_of(module) != room:
            continue
        for other in {room_of(name) for name in others} - {room, ""}:
            assert FLOOR[other] <= FLOOR[room], f"{module} reaches up to {other}"
            beside = FLOOR[other] == FLOOR[room] == SERVICES
            assert not beside, f"{module} reaches across to {other}"


def folder_of(module: str) -> str:
    """The room of a module, or the folder within a room that it is in."""
    name = module.removeprefix("podeval.")
    return name if (ENGINE / name.replace(".", "/")).is_dir() else name.rpartition(".")[0]


def count_floors(graph: dict[str, set[str]]) -> int:
    """The most modules in a line of imports."""

    @cache
    def floor(module: str) -> int:
        return 1 + max((floor(other) for other in graph[module] & graph.keys() - {module}), default=0)

    return max(map(floor, graph))


def test_a_line_of_imports_is_counted() -> None:
    assert count_floors({"a": {"b", "c"}, "b": {"c", "out"}, "c": set(), "d": {"c"}}) == 3


def test_drawn_from_the_imports_the_house_has_nine_floors() -> None:
    rooms: dict[str, set[str]] = defaultdict(set)
    for module, others in imported().items():
        rooms[room_of(module)] |= set(map(room_of, others))
    assert rooms.pop("__main__") == {"cli"}
    assert count_floors(rooms) == 9


def test_no_room_has_more_than_six_floors_inside() -> None:
    folders: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for module, others in imported().items():
        folders[folder_of(module)][module] = others
    assert {name: count for name, graph in folders.items() if (count := count_floors(graph)) > 6} == {}


SMALL = 60
"""Lines below which a module with one importer belongs to it."""
FILES_OF_THEIR_OWN = ("metrics.*.*", "models.*", "systems.*", "store.migrations.*")
"""Modules that are a metric, a model, a system or a migration, however small."""


def test_small_modules_belong_to_their_only_importer() -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for module, others in imported().items():
        for other in others:
            users[other].add(module)
    small = {
        name
        for path in MODULES
        if (name := ".".join(path.relative_to(ENGINE).with_suffix("").parts))
        and path.name != "__init__.py"
        and path.read_text("utf-8").count("\n") < SMALL
        and len(users[f"podeval.{name}"]) == 1
        and not any(fnmatch(name, pattern) for pattern in FILES_OF_THEIR_OWN)
    }
    assert small <= {"integrations.trackio"}, "put each into the module that imports it"


def test_construction_is_imported_by_the_command_line_alone() -> None:
    users = {room_of(module) for module, others in imported().items() if "construction" in map(room_of, others)}
    assert users == {"construction", "cli"}


def circles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Every strongly connected part of a graph that has more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> Iterator[list[str]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                yield from visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                yield sorted(part)

    for node in sorted(graph):
        if node not in index:
            yield from visit(node)


def test_a_circle_would_be_seen() -> None:
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == [["a", "b", "c"]]


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert list(circles(imported())) == []


def imported_in_space() -> dict[str, set[str]]:
    """What each module of the site imports of the site, for types too."""
    folder = CHECKOUT / "space"
    paths = {".".join(path.relative_to(folder).with_suffix("").parts): path for path in folder.rglob("*.py")}
    graph: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                graph[name] |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        graph[name] &= paths.keys()
    return graph


def test_no_modules_of_the_site_import_each_other_in_a_circle() -> None:
    assert "website" in imported_in_space()["site_app"]
    assert list(circles(imported_in_space())) == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    rooms: dict[str, set[str]] = defaultdict(set)
    for module, others in imported().items():
        rooms[room_of(module)] |= {room_of(other) for other in others} - {room_of(module), ""}
    assert list(circles(rooms)) == []


@cache
def front_door(room: str) -> frozenset[str] | None:
    """What a room's `__init__` lists; None for a room that is one module."""
    path = ENGINE / room / "__init__.py"
    if not path.exists():
        return None
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]:
            return frozenset(ast.literal_eval(node.value))
    raise AssertionError(f"podeval.{room} has no __all__: list what other rooms may import of it")


@pytest.mark.parametrize("room", sorted(room for room in FLOOR if (ENGINE / room).is_dir()))
def test_a_room_is_used_through_its_front_door(room: str) -> None:
    listed = front_door(room)
    assert listed is not None
    used = {
        other.split(".")[2]
        for module, others in imported().items()
        for other in others
        if room_of(module) != room and room_of(other) == room and other.count(".") > 1
    }
    assert used <= listed, f"podeval.{room} does not list {sorted(used - listed)}"
    package = importlib.import_module(f"podeval.{room}")
    for name in listed:
        module = ENGINE / room / name
        exists = module.with_suffix(".py").exists() or module.is_dir() or hasattr(package, name)
        assert exists, f"there is no podeval.{room}.{name}"


made_pages = cache(pages)


def test_pages_made_from_declarations_are_current() -> None:
    stale = [str(p.relative_to(CHECKOUT)) for p, text in made_pages(CHECKOUT).items() if p.read_text("utf-8") != text]
    assert not stale, f"run `python -m podeval.cli.generate_docs`: {stale}"


def test_no_file_of_a_metric_space_is_left_over() -> None:
    files = (path for path in (CHECKOUT / "hf_metrics").rglob("*") if path.is_file())
    kept = {path for path in files if "__pycache__" not in path.parts}
    assert kept == {path for path in made_pages(CHECKOUT) if "hf_metrics" in path.parts}


def test_torchaudio_is_not_in_this_environment() -> None:
    """Its wheel cannot load beside a CPU build of torch, and breaks transformers where it is found."""
    assert importlib.util.find_spec("torchaudio") is None
