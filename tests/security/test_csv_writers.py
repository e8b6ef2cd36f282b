"""Whatever writes CSV keeps spreadsheets from running its texts, wherever in the product it is."""

import ast
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podeval.board.exports import result_forms
from podeval.construction.review import read_table, write_table
from podeval.runs.board_tables import BoardRow
from podeval.text.table_files import make_csv_safe, mark_formulas, unmark_formulas

CHECKOUT = Path(__file__).parents[2]
PRODUCT = [path for room in ("benchmark", "space", "hf_metrics", "dataset_builders") for path in
           sorted((CHECKOUT / room).rglob("*.py"))]  # fmt: skip
BY_ITSELF = {"benchmark/podeval/construction/review.py": write_table}
"""Files that write CSV without pandas, each with the function that keeps texts from being formulas; tried below."""
FORMULAS = ("=HYPERLINK(1)", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1+1")
HIDDEN = ("harmless\r=HYPERLINK(1)", "harmless\n@SUM(1)", "harmless;=1+2;x", "harmless\t-1+2", 'x;"=1+2";y', "x;\t=1+2")
"""Formulas that become cells of their own in spreadsheets that split at more than commas."""
CELL_ENDS = re.compile(r"[;\t\r\n]")
"""Characters at which a spreadsheet may split, besides the comma; quotes that begin within a cell keep it from none."""


def list_formulas(content: str) -> list[str]:
    """What spreadsheets take for formulas in a file of CSV: those that split at commas, and those that do elsewhere."""
    cells = [cell for row in csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline="")) for cell in row]
    cells += [cell.lstrip('"') for cell in CELL_ENDS.split(content.removeprefix("\ufeff"))]
    return [
        cell for cell in cells if cell.startswith(tuple("=+-@\t\r\n＝＋－＠")) and not is_number(cell.split(",")[0])
    ]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call in a file that writes CSV: by pandas, or by Python's own writers."""
    # All of them have this in their name, and most files do not have it.
    for node in ast.walk(ast.parse(text if "csv" in (text := path.read_text(encoding="utf-8")) else "")):
        assert not (isinstance(node, ast.ImportFrom) and node.module == "csv"), (
            f"{path}: `import csv`, to be found here"
        )
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("to_csv", "DictWriter", "write_csv") or ast.unparse(node.func) == "csv.writer":
                yield name, node


def is_safe(node: ast.Call) -> bool:
    """Whether `to_csv` is called on what `make_csv_safe` returned, without the index, which that leaves as it is."""
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    has_no_index = "index=False" in map(ast.unparse, node.keywords)
    return has_no_index and isinstance(of, ast.Call) and ast.unparse(of.func) == "make_csv_safe"


def test_every_writer_of_csv_keeps_spreadsheets_from_running_texts() -> None:
    writers = {(str(path.relative_to(CHECKOUT)), name, node) for path in PRODUCT for name, node in calls(path)}
    assert len(writers) > 8, "the writers are not called what they are looked for by"
    for file, name, node in sorted(writers, key=lambda one: one[0]):
        if file not in BY_ITSELF:
            assert name == "to_csv", f"{file} writes CSV by {name}: use pandas, and make_csv_safe"
            assert is_safe(node), f"{file}, line {node.lineno} writes texts that a spreadsheet runs"


@pytest.mark.parametrize("text", [*FORMULAS, *HIDDEN])
def test_a_table_of_formulas_has_none(text: str) -> None:
    table = pd.DataFrame({"before": ["a"], "text": [text], "value": [-1.5], "after": ["b"]})
    assert list_formulas(table.to_csv(index=False)), "this is none"
    assert list_formulas(make_csv_safe(table).to_csv(index=False)) == []


@given(st.text("=+-@\t\r\n;,'\"＝ a1"))
def test_no_text_is_a_formula_and_a_marked_one_is_read_back(text: str) -> None:
    written = make_csv_safe(pd.DataFrame({"before": ["a"], "text": [text], "after": ["b"]})).to_csv(index=False)
    assert list_formulas(written) == []
    assert unmark_formulas(mark_formulas(text)) == text


def test_the_one_that_writes_without_pandas_marks_formulas_too(tmp_path: Path) -> None:
    path, texts = tmp_path / "table.csv", [*FORMULAS, *HIDDEN]
    write_table(path, ["id", "text"], [{"id": "1", "text": text} for text in texts])
    assert list_formulas(path.read_bytes().decode("utf-8-sig")) == []
    assert [row["text"] for row in read_table(path, {"text"})] == texts


def test_the_board_that_is_exported_as_csv_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*FORMULAS, *HIDDEN]
    table = pd.DataFrame([dict.fromkeys(BoardRow.model_fields, text) | {"value": -1.5} for text in texts])
    monkeypatch.setattr(result_forms, "_read_tables", lambda runs: {"results": table})
    result_forms.write_results(tmp_path, tmp_path / "board.csv")
    content = (tmp_path / "board.csv").read_bytes().decode("utf-8")
    assert "\r" not in content
    assert list_formulas(content) == []
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    assert [unmark_formulas(row["system_title"]) for row in rows] == [text.replace("\r", "\n") for text in texts]
    assert {row["value"] for row in rows} == {"-1.5"}, "a number with its sign stays one"
