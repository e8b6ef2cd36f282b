"""Scores written to files: a report, JSON, CSV or Parquet, by the name's ending."""

from __future__ import annotations

import json
from pathlib import Path

from podeval.errors import BadInput
from podeval.scoring.scores import Scores, ScoreTable
from podeval.text.table_files import make_csv_safe

ENDINGS = (".html", ".json", ".csv", ".parquet")


def check_ending(path: Path) -> None:
    """Refuse a name whose ending does not say what is to be written, or a folder that is not there.

    Raises:
        BadInput: says which endings there are.
    """
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{path} cannot be written: the name has to end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {path.parent}; make it first")


def write_scores(scores: Scores | ScoreTable, path: Path, language: str = "en") -> Path:
    """Write scores in the form that the name's ending says; an existing file is replaced.

    Args:
        scores: the scores to write.
        path: the path of the file.
        language: the language of a report, `en` or `zh`.

    Raises:
        BadInput: another ending, or the file cannot be written.
    """
    check_ending(path)
    ending = path.suffix.lower()
    try:
        if ending == ".html":
            scores.report(path, language)
        elif ending == ".json":
            content = json.dumps(scores.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
            path.write_text(content, encoding="utf-8", errors="backslashreplace")
        else:
            frame = scores.to_pandas()
            make_csv_safe(frame).to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path, index=False)
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error})") from None
    return path
