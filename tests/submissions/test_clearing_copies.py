"""Which words are known to quote what was taken down, and what becomes of each kind of file."""

import json
from pathlib import Path

import pandas as pd
import pytest

from podeval.submissions.clearing_copies import clear_file
from podeval.submissions.spoken_content import SpokenContent

SAYS = "The lighthouse keeper counted eleven herons, wrote nothing down, and told the harbour master there were twelve."
CONTENT = SpokenContent(texts={SAYS}, own_words={SAYS})


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        (f"It says: {SAYS.upper()}", True),
        ("it said “lighthouse keeper counted eleven herons,\nwrote nothing — down, and told”", True),
        ("The lighthouse keeper counted something else.", False),
        ("", False),
    ],
)
def test_words_in_a_row_are_a_quote_and_a_few_are_none(text: str, quotes: bool) -> None:
    assert CONTENT.is_quoted_in(text) is quotes


def test_of_the_benchmarks_own_words_only_a_whole_passage_is_a_quote() -> None:
    content = SpokenContent(texts={SAYS})
    assert content.is_quoted_in(f"A: {SAYS}")
    assert not content.is_quoted_in(SAYS[:90]), "another system reads the same script"


@pytest.mark.parametrize("ending", ["json", "jsonl", "parquet"])
def test_a_file_of_rows_keeps_its_rows_and_figures(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"answers.{ending}"
    rows = [{"item": "a", "reason": f"as in {SAYS!r}", "value": 3}, {"item": "b", "reason": "clear", "value": 4}]
    match ending:
        case "json":
            file.write_text(json.dumps(rows))
        case "jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case "parquet":
            pd.DataFrame(rows).to_parquet(file)
    assert clear_file(file, CONTENT) == f"{file}: the words are emptied"
    match ending:
        case "json":
            left = json.loads(file.read_text())
        case "jsonl":
            left = [json.loads(line) for line in file.read_text().splitlines()]
        case "parquet":
            left = pd.read_parquet(file).to_dict("records")
    assert left == [rows[0] | {"reason": ""}, rows[1]]
    before = file.read_bytes()
    assert clear_file(file, CONTENT) == "", "done again, it does nothing"
    assert file.read_bytes() == before


@pytest.mark.parametrize("ending", ["html", "md", "yaml"])
def test_a_page_that_quotes_is_deleted_and_another_stays(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"a.{ending}").write_text(f"<p>{SAYS.replace('herons', '<b>herons</b>')}</p>")
    (tmp_path / f"b.{ending}").write_text("<p>Figures, and no words.</p>")
    for name in "ab":
        clear_file(tmp_path / f"{name}.{ending}", CONTENT)
    assert [path.stem for path in tmp_path.iterdir()] == ["b"]
