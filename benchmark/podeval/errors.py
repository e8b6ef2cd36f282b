"""What can go wrong, as sentences for the person who can fix it.

Every message says what was wrong, where, and what to do. `BadInput` and its kin end a command with exit
code 2; `ModelMissing` turns an item into an unscored one.
"""

import re


class PodevalError(Exception):
    """Any error podeval raises on purpose."""


class BadInput(PodevalError):
    """Something handed in cannot be used: a file, an option, a document."""


class BadAudio(BadInput):
    """A file that cannot be read as audio: missing, empty, a directory, not audio, truncated beyond use."""


class ModelMissing(PodevalError):
    """A model is not installed or its weights do not match their pinned SHA-256; says the command that helps."""


class CannotScore(PodevalError):
    """Readable audio or text that a measurement has to refuse: silence, NaN samples, too short, too low a rate."""


def address_in(path: object) -> str | None:
    """The address that was given where a path belongs, also where `pathlib` took one of its slashes; None for paths."""
    match = re.match(r"(https?|ftp|s3|hf):/+(?=[^/])", str(path))
    return f"{match[1]}://{str(path)[match.end() :]}" if match else None


class StoreUnusable(PodevalError):
    """The database cannot be reached, or does not keep what it acknowledges; says what to do."""
