"""Where the recordings lie that people uploaded to a board, and how those of one submission are deleted."""

import re
import shutil
from pathlib import Path

from podeval.runs.run_folder import UPLOADS

TOKEN = re.compile(r"u[0-9a-f]{24}")
"""The name of an upload in it."""


def is_upload(document_folder: str) -> bool:
    """Tell whether the folder beside a document is that of a board's uploads."""
    return Path(document_folder).name == UPLOADS


def delete_upload(document_folder: str, token: str) -> None:
    """Delete an upload, if that is what a submission names; any other folder is its owner's."""
    if is_upload(document_folder) and TOKEN.fullmatch(token):
        folder = Path(document_folder) / token
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".json").unlink(missing_ok=True)
