"""Every trick of docs/gaming.md has what it brought, what it brings now, and a test that exists."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "gaming.md"
_TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


def test_every_trick_names_a_test_that_exists() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    tricks = [row for row in rows if not row.startswith("| trick |")]
    assert len(tricks) >= 28, "the tricks of the audit and those found since"
    for trick in tricks:
        cells = [cell.strip() for cell in trick.strip("|").split(" | ")]
        assert len(cells) == 4, trick
        assert all(cells), trick
        match = _TEST.fullmatch(cells[3].rstrip(" |"))
        assert match, trick
        source = (PAGE.parents[1] / match[2]).read_text(encoding="utf-8")
        assert f"def {match[1]}(" in source, trick
