"""Write to tests/coverage_by_room.md how much of each package `make test-all` runs, according to its coverage report.

python studies/coverage_by_room.py .venv/share/podeval/coverage.json
"""

import json
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PAGE = CHECKOUT / "tests" / "coverage_by_room.md"
BEGIN, END = "<!-- coverage: made by studies/coverage_by_room.py -->\n", "<!-- /coverage -->"


def room_of(path: str) -> str:
    """Return the package of a file: a folder or module of the engine, or a folder next to it."""
    inside = path.partition("benchmark/podeval/")[2]
    return (inside or path).split("/")[0].removesuffix(".py")


def write_table(report: dict[str, dict[str, dict[str, dict[str, int]]]], day: str) -> str:
    """Return the table of a JSON report of coverage.py."""
    lines: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, file in report["files"].items():
        for room in (room_of(path), "all"):
            lines[room][0] += file["summary"]["covered_lines"]
            lines[room][1] += file["summary"]["num_statements"]
    rooms = sorted(lines, key=lambda room: (room == "all", room))
    rows = [f"| {name} | {lines[name][1]:,} | {lines[name][0] / max(lines[name][1], 1):.0%} |" for name in rooms]
    return "\n".join([f"Measured on {day}.", "", "| room | lines of code | run by tests |", "|---|---|---|", *rows, ""])


def main() -> None:
    """Replace the table in the page."""
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    report = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    PAGE.write_text(
        before + BEGIN + write_table(report, f"{datetime.now(UTC):%d %B %Y}") + END + rest.partition(END)[2], "utf-8"
    )


if __name__ == "__main__":
    main()
