"""A review: nothing passes that nobody kept, verdicts outlive a new table, and cells are never formulas."""

import csv
import io
from pathlib import Path

import pytest

from podeval.construction.review import ReviewRow, lay_out, read_decisions
from podeval.errors import BadInput

ENTRIES = [
    ReviewRow("a", {"why": "fine"}, {"text": "[A] Hello, there.\n[B] =1+1 is two."}),
    ReviewRow("b", {"why": "dull"}, {"text": "second"}),
    ReviewRow("c", {"why": ""}, {"text": "你好"}),
]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def fill(path: Path, delimiter: str = ",", **cells: dict[str, str]) -> None:
    """Write cells into the table as a spreadsheet would."""
    rows = table(path)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(row | cells.get(row["id"], {}) for row in rows)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    assert lay_out(tmp_path / "review.csv", ENTRIES).startswith("3 of 3 rows await a decision")
    return tmp_path / "review.csv"


def test_nothing_passes_unreviewed(path: Path) -> None:
    found = read_decisions(path, ENTRIES, "review")
    assert found.kept == {}
    assert [w.id for w in found.waiting] == ["a", "b", "c"]
    assert "the column `keep` of review.csv contains neither yes nor no" in found.waiting[0].reason


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_yes_keeps_no_leaves_out_and_corrections_are_taken(path: Path, delimiter: str) -> None:
    fill(path, delimiter, a={"keep": "Yes"}, b={"keep": "no", "remark": "dull, indeed"}, c={"text (edit)": "再见"})
    found = read_decisions(path, ENTRIES, "review")
    assert found.kept == {"a": {"text": ENTRIES[0].editable["text"]}}
    assert [(left.id, left.step, left.reason) for left in found.left_out] == [
        ("b", "review", "refused by a reviewer: dull, indeed")
    ]
    assert [w.id for w in found.waiting] == ["c"]
    everything = read_decisions(path, ENTRIES, "review", accept_all=True)
    assert everything.kept["c"] == {"text": "再见"}
    assert "b" not in everything.kept


def test_verdicts_outlive_a_new_table_while_the_row_is_what_was_seen(path: Path) -> None:
    fill(path, a={"keep": "yes", "text (edit)": "[A] Bye."}, b={"keep": "yes"})
    changed = [ENTRIES[0], ReviewRow("b", {"why": "dull"}, {"text": "rewritten"}), ENTRIES[2]]
    stale = read_decisions(path, changed, "review")
    assert [w.id for w in stale.waiting] == ["b", "c"]
    assert "the row changed after review.csv was written" in stale.waiting[0].reason
    assert lay_out(path, changed).startswith("2 of 3 rows await a decision")
    assert read_decisions(path, changed, "review").kept == {"a": {"text": "[A] Bye."}}


def test_no_cell_is_a_formula_and_every_cell_comes_back(path: Path, tmp_path: Path) -> None:
    odd = ["=HYPERLINK(1)", "+1", "-1", "@x", "'=1", "''-", "'plain", "\t=1"]
    entries = [ReviewRow(str(number), {}, {"text": text}) for number, text in enumerate(odd)]
    lay_out(tmp_path / "odd.csv", entries)
    assert not [row for row in table(tmp_path / "odd.csv") if row["text (edit)"][0] in "=+-@\t"]
    found = read_decisions(tmp_path / "odd.csv", entries, "review", accept_all=True)
    assert [found.kept[entry.id]["text"] for entry in entries] == odd


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda text: text.replace("a,,", "a,perhaps,"),
            r"line 2 \(a\): the column `keep` contains 'perhaps'; write yes or no",
        ),
        (lambda text: text.replace("keep,", "kept,"), "lacks the column keep"),
        (lambda text: text + text.splitlines()[-1] + "\n", "c appears twice"),
    ],
)
def test_a_table_that_cannot_be_used_is_a_sentence(path: Path, spoil: object, sentence: str) -> None:
    path.write_text(spoil(path.read_text(encoding="utf-8-sig")), encoding="utf-8")  # type: ignore[operator]
    with pytest.raises(BadInput, match=sentence):
        read_decisions(path, ENTRIES, "review")


def test_another_encoding_is_a_sentence(path: Path) -> None:
    path.write_bytes(path.read_text(encoding="utf-8-sig").encode("gb18030"))
    with pytest.raises(BadInput, match="save it as 'CSV UTF-8'"):
        read_decisions(path, ENTRIES, "review")
