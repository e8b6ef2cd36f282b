"""docs/security.md is true: every test that it names exists, and every threat has one."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(test_\w+)`")


def rows() -> list[list[str]]:
    """The rows of the table of threats, without its groups."""
    table = PAGE.partition("## Threats and defences")[2].partition("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return [row for row in cells if not row[0].startswith(("**", "threat"))]


def test_every_test_that_is_named_exists() -> None:
    files = (REPOSITORY / "tests").rglob("test_*.py")
    present = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8"))}
    names = set(NAMED.findall(PAGE))
    assert len(names) > 50
    assert not names - present


def test_every_threat_has_a_defence_and_a_test() -> None:
    assert len(rows()) > 30
    for row in rows():
        assert len(row) == 3, row
        assert len(row[1]) > 15, row
        assert NAMED.search(row[2]), row


def test_every_setting_that_is_named_is_read_somewhere() -> None:
    code = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("space", "benchmark")
        for path in (REPOSITORY / folder).rglob("*.py")
    )
    names = set(re.findall(r"`(PODEVAL_[A-Z_]+)`", PAGE))
    assert len(names) > 4
    assert not [name for name in names if f'"{name}"' not in code]
