from pathlib import Path

from podeval.submissions.rules import RULES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_for_submitters_names_every_rule_of_the_gate() -> None:
    page = (DOCS / "submitting.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for rule, asks in RULES.items():
        assert f"| `{rule}` | {asks} |" in rows
