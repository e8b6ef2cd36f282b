"""The exceptions that podeval raises, each with a sentence for the person who can fix the problem.

Every message states the fault, its place, and the remedy. `BadInput` and its subclasses end a command with exit code 2;
`ModelMissing` leaves an item unscored. `is_missing` recognises values that represent a missing input.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pydantic import ValidationError


class CodedSentence(str):
    """A sentence with a code that lets a page find the same sentence in its reader's language.

    The sentence is a `str` and can be used wherever text is expected, so a reason keeps its code when it is stored and
    passed on.

    Attributes:
        code: identifier of the sentence, independent of its wording.
        parameters: the values that the sentence mentions, by name; a value may itself be a coded sentence.

    Example:
        >>> closed = CodedSentence("the test mos is closed", code="listening-test-closed", test="mos")
        >>> f"{closed}; thank you", closed.code, closed.parameters["test"]
        ('the test mos is closed; thank you', 'listening-test-closed', 'mos')
    """

    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, sentence: str, /, code: str, **parameters: Any) -> Self:
        """Create the text and attach its code and parameters."""
        self = super().__new__(cls, sentence)
        self.code, self.parameters = code, parameters
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Return the arguments that recreate the sentence when it is unpickled."""
        return (str(self),), {"code": self.code, **self.parameters}


class PodevalError(Exception):
    """Base class of all errors that podeval raises deliberately.

    Args:
        sentence: the message, which states the fault, its place, and the remedy; a `CodedSentence` also supplies its
            code and parameters.
        code: identifier of the sentence for programs and translations, independent of its wording.
        parameters: the values in the sentence, by name.

    Attributes:
        code: code of the sentence; empty if the sentence has no code yet.
        parameters: the values in the sentence; empty if the sentence is the same in every case.
    """

    def __init__(self, *sentence: object, code: str = "", parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(*sentence)
        coded = sentence[0] if sentence and isinstance(sentence[0], CodedSentence) else CodedSentence("", code="")
        self.code = code or coded.code
        self.parameters: Mapping[str, Any] = coded.parameters if parameters is None else parameters

    @property
    def sentence(self) -> CodedSentence:
        """The error's message with its code."""
        return CodedSentence(str(self), code=self.code, **self.parameters)


class BadInput(PodevalError):
    """An input cannot be used: a file, an option or a document."""


class BadAudio(BadInput):
    """A file cannot be read as audio: it is missing, empty, a directory, not audio, or too badly truncated."""


class ModelMissing(PodevalError):
    """A model is not installed, or its weights do not match their pinned SHA-256; the message names the remedy."""


class CannotScore(PodevalError):
    """Readable audio or text cannot be measured: it is silent or too short, contains NaN samples, or has too low a
    sample rate.
    """


class NoWords(CannotScore):
    """The text to be spoken has no words; this is never the recording's fault."""


def find_address(path: object) -> str | None:
    """Return the URL that was given instead of a path, or None if the value is a path.

    If `pathlib` has collapsed the double slash of a URL to a single slash, the URL is still recognised and restored.
    """
    match = re.match(r"(https?|ftp|s3|hf):/+(?=[^/])", str(path))
    return f"{match[1]}://{str(path)[match.end() :]}" if match else None


def require_known(what: str, choices: Iterable[str], *names: str) -> None:
    """Refuse names of things that do not exist.

    Args:
        what: the kind of thing that the names denote, for the message.
        choices: the names that exist.
        names: the names to look up.

    Raises:
        BadInput: a name is unknown; the message suggests the closest one and lists all.
    """
    existing = list(choices)
    if unknown := [name for name in names if name not in existing]:
        close = get_close_matches(unknown[0], existing, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise BadInput(f"there is no {what} {unknown[0]!r}; {hint}choose from {', '.join(existing)}")


def describe_validation_error(error: "ValidationError") -> str:
    """Describe the first mistake that pydantic reports, and the field that it concerns."""
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


class StoreUnusable(PodevalError):
    """The database cannot be reached, or does not keep acknowledged records; the message gives the remedy."""


class StoreReadOnly(StoreUnusable):
    """The database can be read but not written, because its disk is full or mounted read-only."""


def require_fields(what: str, fields: Mapping[str, object]) -> None:
    """Refuse a declaration, such as that of a metric or a model, that lacks an essential field.

    Args:
        what: the beginning of the message: the kind and the name of the declared thing.
        fields: the required fields with their values; an empty value counts as missing.

    Raises:
        ValueError: fields are missing; the message names them.
    """
    if missing := [name for name, value in fields.items() if not value]:
        raise ValueError(f"{what}: the declaration lacks {' and '.join(missing)}")


_WRITTEN = frozenset((
    "", "null", "NULL", "Null", "None", "NaN", "nan", "NAN", "-nan", "-NaN", "<NA>", "NaT", "NA", "N/A", "n/a", "#N/A",
    "#NA", "#N/A N/A", "<null>", "(null)", "(NULL)", "\\N", "undefined", "1.#QNAN", "1.#IND", "-1.#IND", "-1.#QNAN",
    "#NULL!", "#VALUE!", "#REF!", "#NAME?", "#DIV/0!",
))  # fmt: skip
"""Strings that programs write in place of a missing value."""


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN in any form, pandas' NA or NaT, an empty string, or a string whose
    lines are all missing values, for example JSON lines of `null`.

    Collections are never missing, whatever they contain.
    """
    if value is None:
        return True
    if isinstance(value, str):
        return all(line.strip(" \t\u00a0\u200b\u2060\ufeff") in _WRITTEN for line in value.splitlines())
    if hasattr(value, "__len__"):
        return False
    # NaN differs from itself, and pandas' NA has no truth value.
    return type(value).__name__ == "NAType" or bool(value != value)


class MissingInput(BadInput):
    """An item's input is missing: its cell, line or file is empty.

    Args:
        name: the name of the input.
        detail: additional words about the location of the input; may be empty.
    """

    def __init__(self, name: str, detail: str = "") -> None:
        super().__init__(f"has no {name.replace('_', ' ')}{detail and ': '}{detail}")
        self.detail = detail
