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


SEARCHED = {
    "hallucination": "content_errors",
    "skipped text": "content_errors",
    "voice drift": "timbre_consistency",
    "speaker swap": "speaker_attribution",
    "volume fade": "endurance",
    "latency": "rtf",
    "TTFA": "rtf",
    "barge-in": "turn_taking",
}
"""Words that people search for, with a metric that answers them."""


@pytest.mark.parametrize(("word", "metric"), SEARCHED.items())
def test_what_people_search_for_is_on_the_card_and_in_the_table_of_questions(word: str, metric: str) -> None:
    card = (REPOSITORY / "hf_metrics" / metric / "README.md").read_text(encoding="utf-8")
    assert word.lower() in " ".join(card.split()).lower()
    page = (REPOSITORY / "docs" / "reading-scores.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and word.lower() in line.lower()]
    assert any(f"hf_metrics/{metric}/README.md" in row for row in rows)


def test_the_start_page_lists_every_page_in_five_groups_the_guide_first() -> None:
    docs = REPOSITORY / "docs"
    start = (docs / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^## (.*)", start) == ["Start", "Measure", "Run a board", "Operate", "How we know"]
    listed = LINK.findall(start)
    pages = {path.relative_to(docs).as_posix() for path in (*docs.rglob("*.md"), *docs.glob("tutorials/*.py"))}
    assert listed[0] == "guide.md"
    assert sorted(listed) == sorted(pages - {"README.md", "tutorials/audio/README.md"}), "each page once"


def test_messages_of_the_page_on_troubleshooting_are_the_product_s() -> None:
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"“([^”]+)”", " ".join(page.split()))
    assert len(messages) >= 10
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("benchmark/podeval", "space")
        for path in (REPOSITORY / folder).rglob("*.py")
    )
    pieces = [piece.strip() for message in messages for piece in message.split("…") if piece.strip()]
    assert not [piece for piece in pieces if piece not in sources]


def test_ratios_of_the_page_on_performance_are_those_that_the_bench_printed() -> None:
    page, bench = ((REPOSITORY / "docs" / name).read_text("utf-8") for name in ("performance.md", "studies/speed.md"))
    section = page.partition("## Against other tools")[2].partition("\n## ")[0]
    claims, rows = (re.findall(r"^\| (.+) \|$", text, re.MULTILINE)[2:] for text in (section, bench))
    cells = [row.split(" | ") for row in rows]
    assert len(claims) > 12
    assert set(claims) <= {" | ".join((what, against, times)) for what, _, against, _, times, *_ in cells}


def test_the_site_of_the_docs_can_be_built_and_its_navigation_lists_pages_that_exist() -> None:
    """Building it is left to tests/packaging/test_docs_site.py, which takes a minute."""
    configuration = pytest.importorskip("mkdocs.config").load_config(str(REPOSITORY / "mkdocs.yml"))
    pages = re.findall(r"[\w/-]+\.md", str(configuration.nav))
    assert len(pages) > 40
    assert not [
        page
        for page in pages
        if not (REPOSITORY / "docs" / page).is_file() and not (REPOSITORY / "docs" / page).with_suffix(".py").is_file()
    ]
