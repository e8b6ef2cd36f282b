"""The revision of a supplied folder: a digest of its content, like a commit of a repo."""

import hashlib
import json
import os
from pathlib import Path

from podeval.submissions import supplied_outputs


def hash_folder(folder: Path) -> str:
    """Compute the SHA-256 of the names and contents of all files below a folder, whatever its path.

    Raises:
        SubmissionRefused: there is no such folder, or it holds a link or something that is not a plain file.
    """
    files = {name: _file_digest(folder / name) for name in supplied_outputs.list_files(folder)}
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    # A link that came after the folder was listed is not followed.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
