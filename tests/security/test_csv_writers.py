"""Whatever writes CSV keeps spreadsheets from running its texts, wherever in the product it is."""

import ast
import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from podeval.board import result_forms
from podeval.construction.review import write_table
from podeval.runs.board_tables import BoardRow

CHECKOUT = Path(__file__).parents[2]
PRODUCT = [path for room in ("benchmark", "space", "hf_metrics", "dataset_builders") for path in
           sorted((CHECKOUT / room).rglob("*.py"))]  # fmt: skip
BY_ITSELF = {"benchmark/podeval/construction/review.py": write_table}
"""Files that write CSV without pandas, each with the function that keeps texts from being formulas; tried below."""
FORMULAS = ("=HYPERLINK(1)", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1")
HIDDEN = "harmless\r=HYPERLINK(1)"
"""A formula behind a carriage return, which CSV does not quote and a spreadsheet takes for the end of a line."""


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call in a file that writes CSV: by pandas, or by Python's own writers."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("to_csv", "DictWriter", "write_csv") or ast.unparse(node.func) == "csv.writer":
                yield name, node


def is_safe(node: ast.Call) -> bool:
    """Whether `to_csv` is called on what `make_csv_safe` returned."""
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(of, ast.Call) and ast.unparse(of.func) == "make_csv_safe"


def test_every_writer_of_csv_keeps_spreadsheets_from_running_texts() -> None:
    writers = {(str(path.relative_to(CHECKOUT)), name, node) for path in PRODUCT for name, node in calls(path)}
    assert len(writers) > 8, "the writers are not called what they are looked for by"
    for file, name, node in sorted(writers, key=lambda one: one[0]):
        if file not in BY_ITSELF:
            assert name == "to_csv", f"{file} writes CSV by {name}: use pandas, and make_csv_safe"
            assert is_safe(node), f"{file}, line {node.lineno} writes texts that a spreadsheet runs"


def test_the_one_that_writes_without_pandas_marks_formulas_too(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", ["id", "text"], [{"id": "1", "text": text} for text in FORMULAS])
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_bytes().decode("utf-8-sig"), newline="")))
    assert [row["text"] for row in rows] == [f"'{text}" for text in FORMULAS]


def test_the_board_that_is_exported_as_csv_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*FORMULAS, HIDDEN]
    table = pd.DataFrame([dict.fromkeys(BoardRow.model_fields, text) | {"value": -1.5} for text in texts])
    monkeypatch.setattr(result_forms, "_read_tables", lambda runs: {"results": table})
    result_forms.write_results(tmp_path, tmp_path / "board.csv")
    content = (tmp_path / "board.csv").read_bytes().decode("utf-8")
    assert "\r" not in content
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    assert [row["system_title"] for row in rows] == [
        *(f"'{text}" for text in FORMULAS[:-1]), "'\n=1", HIDDEN.replace("\r", "\n")
    ]  # fmt: skip
    assert {row["value"] for row in rows} == {"-1.5"}, "a number with its sign stays one"
