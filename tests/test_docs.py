"""What the pages point at is there."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "hf_metrics/*/README.md",
        "dataset_builders/**/README.md",
        "space/README.md",
    )
    for path in REPOSITORY.glob(pattern)
)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_link_into_the_repository_leads_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_start_page_lists_every_page_in_four_groups_the_guide_first() -> None:
    docs = REPOSITORY / "docs"
    start = (docs / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^## (.*)", start) == ["Start", "Measure", "Run a board", "Studies and decisions"]
    listed = LINK.findall(start)
    pages = {path.relative_to(docs).as_posix() for path in (*docs.rglob("*.md"), *docs.glob("tutorials/*.py"))}
    assert listed[0] == "guide.md"
    assert sorted(listed) == sorted(pages - {"README.md", "tutorials/audio/README.md"}), "each page once"
