"""The house of the engine, read from its code: which floor a room is on, who imports whom, and both as a picture.

docs/architecture.md has the table of rooms that everything here starts from.
"""

import ast
import re
from collections import defaultdict
from html import escape
from pathlib import Path

_ROOM = re.compile(r"^\| (\d) \| `(\w+)` \|", re.MULTILINE)

_WIDTH, _STORY, _HEIGHT = 900, 88, 34
"""Of the picture, of a floor with the space above it, and of a room, in pixels."""


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
    stories: dict[int, list[str]] = defaultdict(list)
    for room, floor in rooms.items():
        stories[floor].append(room)
    top = max(stories)
    places: dict[str, tuple[float, float]] = {}
    boxes = []
    for floor, names in stories.items():
        y = (top - floor) * _STORY + 40
        boxes.append(f'<text class="floor" x="14" y="{y + 5}">{floor}</text>')
        step = (_WIDTH - 50) / len(names)
        for number, room in enumerate(names):
            x = 40 + step * (number + 0.5)
            places[room] = (x, y)
            size = f'width="{step - 12:.0f}" height="{_HEIGHT}"'
            boxes.append(f'<rect x="{x - step / 2 + 6:.0f}" y="{y - _HEIGHT / 2:.0f}" rx="5" {size}/>')
            boxes.append(f'<text class="room" x="{x:.0f}" y="{y + 5}">{escape(room)}</text>')
    lines = [
        f'<line x1="{places[upper][0]:.0f}" y1="{places[upper][1] + _HEIGHT / 2:.0f}" '
        f'x2="{places[lower][0]:.0f}" y2="{places[lower][1] - _HEIGHT / 2:.0f}"/>'
        for upper, lower in sorted(_arrows(checkout, rooms))
    ]
    height = top * _STORY
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        'aria-label="The eight floors of the engine and the rooms on each">\n'
        "<style>rect{fill:#eef3fa;stroke:#35608f}line{stroke:#8a9bb0;stroke-width:1}"
        "text{font:14px sans-serif;fill:#16263a}.room{text-anchor:middle}"
        ".floor{font-weight:bold;fill:#5a6b80}</style>\n"
        f'<rect width="{_WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>\n'
        + "\n".join([*lines, *boxes])
        + "\n</svg>\n"
    )


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
