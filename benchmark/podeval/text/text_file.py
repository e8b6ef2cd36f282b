"""Read text from files, and detect file names that were passed in place of text."""

import codecs
import json
import os
import re
from pathlib import Path

from podeval.errors import BadInput, find_address
from podeval.text.characters import clean_text

# The byte order mark of UTF-32 begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
_SUFFIXES = (".json", ".jsonl", ".txt", ".yaml", ".yml", ".md", ".srt", ".vtt")


def read_text(path: Path) -> str:
    """Read a text file and clean its text; JSON is left unchanged, because its texts are cleaned when it is parsed.

    Raises:
        BadInput: the file is missing, a directory, empty, or not text, or is named .json but does not contain JSON.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if address := find_address(path):
            raise BadInput(
                f"{address} is a web address, which podeval does not fetch; download the file first"
            ) from None
        raise BadInput(f"{str(path)!r} is read as a file name, but does not exist; check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is a directory; name the files in it") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error}); save it as plain text or JSON") from None
    text = decode_text(content, str(path))
    if not text.strip():
        raise BadInput(f"{path} is empty; it should contain a text or a script")
    if path.suffix.lower() == ".json" and not _is_json(text):
        raise BadInput(f"{path} cannot be read as JSON; fix it, or name it .txt if it is plain text")
    return text


def decode_text(content: bytes, name: str) -> str:
    """Decode and clean the content of a text file: UTF-8, or UTF-16 or UTF-32 with a byte order mark; see `read_text`.

    Args:
        content: the file's bytes.
        name: the name of the file, for the message.

    Raises:
        BadInput: the content is not text.
    """
    try:
        text = content.decode(next((codec for mark, codec in _MARKS.items() if content.startswith(mark)), "utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} cannot be read as UTF-8 text ({error}); save it as plain text or JSON") from None
    if "\x00" in text:
        raise BadInput(f"{name} cannot be read as UTF-8 text (it has NUL characters); save it as plain text in UTF-8")
    return text if text.lstrip().startswith(("{", "[")) and _is_json(text) else clean_text(text)


def refuse_file_name(text: str) -> str:
    """Return a text unchanged, or refuse it if it is a file name, which would otherwise be scored as words.

    Raises:
        BadInput: the text is a single word that ends like the name of a text file, or names an existing file.
    """
    word = text.strip()
    if len(word.split()) == 1 and (word.lower().endswith(_SUFFIXES) or os.path.isfile(word)):
        raise BadInput(f"{word[:200]!r} is the name of a file, not a text; open the file first, or give a pathlib.Path")
    return text


def _is_json(text: str) -> bool:
    """Return whether the text is JSON or JSON lines."""
    return _is_readable_json(text) or all(
        _is_readable_json(line) for line in re.split(r"[\r\n]+", text) if line.strip()
    )


def _is_readable_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:  # the code that parses it reports the excessive nesting
        return True
    return True
