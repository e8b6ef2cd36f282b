"""What can go wrong, as sentences for the person who can fix it.

Every message says what was wrong, where, and what to do. `BadInput` and its kin end a command with exit
code 2; `ModelMissing` turns an item into an unscored one.
"""

import re
from collections.abc import Mapping
from typing import Any, Self


class CodedSentence(str):
    """A sentence with a code, by which a page finds the same sentence in its reader's language.

    It is text wherever text is wanted, so that a reason which is kept and passed on keeps its code.

    Attributes:
        code: names the sentence, however it is worded.
        parameters: what the sentence says of this one case, by name; a value may be a coded sentence itself.

    Example:
        >>> closed = CodedSentence("the test mos is closed", code="listening-test-closed", test="mos")
        >>> f"{closed}; thank you", closed.code, closed.parameters["test"]
        ('the test mos is closed; thank you', 'listening-test-closed', 'mos')
    """

    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, sentence: str, /, code: str, **parameters: Any) -> Self:
        """Text that knows its code."""
        self = super().__new__(cls, sentence)
        self.code, self.parameters = code, parameters
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """What makes it again, in another process too."""
        return (str(self),), {"code": self.code, **self.parameters}


class PodevalError(Exception):
    """Any error podeval raises on purpose.

    Args:
        sentence: what was wrong, where, and what to do; a `CodedSentence` brings its code and parameters along.
        code: names the sentence for programs and translations, however it is worded.
        parameters: what the sentence says of this one case, by name.

    Attributes:
        code: empty where a sentence has none yet.
        parameters: empty where a sentence is the same in every case.
    """

    def __init__(self, *sentence: object, code: str = "", parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(*sentence)
        coded = sentence[0] if sentence and isinstance(sentence[0], CodedSentence) else CodedSentence("", code="")
        self.code = code or coded.code
        self.parameters: Mapping[str, Any] = coded.parameters if parameters is None else parameters

    @property
    def sentence(self) -> CodedSentence:
        """What the error says, with its code."""
        return CodedSentence(str(self), code=self.code, **self.parameters)


class BadInput(PodevalError):
    """Something handed in cannot be used: a file, an option, a document."""


class BadAudio(BadInput):
    """A file that cannot be read as audio: missing, empty, a directory, not audio, truncated beyond use."""


class ModelMissing(PodevalError):
    """A model is not installed or its weights do not match their pinned SHA-256; says the command that helps."""


class CannotScore(PodevalError):
    """Readable audio or text that a measurement has to refuse: silence, NaN samples, too short, too low a rate."""


def find_address(path: object) -> str | None:
    """The address that was given where a path belongs, also where `pathlib` took one of its slashes; None for paths."""
    match = re.match(r"(https?|ftp|s3|hf):/+(?=[^/])", str(path))
    return f"{match[1]}://{str(path)[match.end() :]}" if match else None


class StoreUnusable(PodevalError):
    """The database cannot be reached, or does not keep what it acknowledges; says what to do."""
