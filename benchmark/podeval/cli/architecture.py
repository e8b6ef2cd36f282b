"""The house of the engine, read from its code: which floor a room is on, who imports whom, and both as a picture.

docs/architecture.md has the table of rooms that everything here starts from.
"""

import ast
import re
from pathlib import Path

from podeval.plots.svg import draw_layers

_ROOM = re.compile(r"^\| (\d) \| `(\w+)` \|", re.MULTILINE)


def floors(checkout: Path) -> dict[str, int]:
    """Read the floor of every room of the engine from the table in docs/architecture.md; the ground is 1."""
    page = (checkout / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {room: int(floor) for floor, room in _ROOM.findall(page)}


def imports(engine: Path) -> dict[str, set[str]]:
    """Find the modules of the engine that each of its modules imports: at its top, in functions, for types."""
    paths = {_module_name(path, engine): path for path in engine.rglob("*.py")}
    return {
        name: {module for module in _imported(ast.parse(path.read_bytes()), set(paths)) if module != name}
        for name, path in sorted(paths.items())
    }


def room_of(module: str) -> str:
    """Name the room of a module: `podeval.audio.decode` is in `audio`, the package itself in none."""
    return module.split(".")[1] if "." in module else ""


def picture(checkout: Path) -> str:
    """Draw the floors as SVG, with a line from a room to each room on the next floor below that it imports."""
    rooms = floors(checkout)
    layers = [[room for room in rooms if rooms[room] == floor] for floor in sorted(set(rooms.values()))]
    title = "The nine floors of the engine and the rooms on each"
    return draw_layers(layers, sorted(_arrows(checkout, rooms)), title)


def _arrows(checkout: Path, rooms: dict[str, int]) -> set[tuple[str, str]]:
    return {
        (upper, lower)
        for module, others in imports(checkout / "benchmark" / "podeval").items()
        for upper, lower in ((room_of(module), room_of(other)) for other in others)
        if upper in rooms and lower in rooms and rooms[upper] - rooms[lower] == 1
    }


def _module_name(path: Path, engine: Path) -> str:
    return ".".join(path.relative_to(engine.parent).with_suffix("").parts).removesuffix(".__init__")


def _imported(tree: ast.AST, modules: set[str]) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name in modules}
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= parts & modules
            if parts - modules:
                names.add(node.module)
    return names
