"""Read books as passages in reading order from EPUB, plain text, Markdown, subtitles and JSON.

A passage is a heading or a paragraph, and has a kind: text that is read aloud (`body`, `heading`), or text that readers
usually skip: front and back matter (title page, contents, copyright, index, licence) and notes. An EPUB states the
kind by `epub:type` and ARIA roles (W3C, EPUB Structural Semantics Vocabulary); in other formats, headings such as
"Contents" and openings such as `[Footnote 1:` indicate it. Note markers are omitted.

Limits apply because files are untrusted: an EPUB is read member by member up to a total size; defusedxml parses its
package, and a parser without entity expansion parses its pages.
"""

import json
import posixpath
import re
import zipfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from typing import Literal
from urllib.parse import unquote
from xml.etree.ElementTree import ParseError

import regex

from podeval.errors import BadInput
from podeval.text.characters import clean_text
from podeval.text.markup import strip_surroundings, strip_tags
from podeval.text.script_format import read_any_script
from podeval.text.subtitles import VOICE, read_cues
from podeval.text.text_file import read_text

PassageKind = Literal["heading", "body", "front_matter", "back_matter", "note"]

LONGEST_BOOK = 6_000_000
"""Maximum number of characters in a book: a hundred hours of English."""
UNPACKED_BYTES = 64 * 2**20
"""Maximum total size of an EPUB's unpacked pages, in bytes."""
MOST_MEMBERS, DEEPEST = 20_000, 256
"""Maximum number of files in an EPUB, and maximum depth of the elements in its pages."""

_MATTER_NAMES = (
    r"(?:table of )?contents|list of (?:illustrations|figures|plates|tables|maps)|illustrations|copyright.*|dedication"
    r"|title ?page|half ?title.*|cover|imprint|colophon|also by .*|books by .*|praise for .*|about the authors?"
    r"|acknowledge?ments?|bibliography|references|index|glossary|permissions|transcribers?.? notes?.*|credits"
    r"|(?:the )?(?:full )?project gutenberg.*|目\s*录|版权.*|封面|扉页|索引|参考文献|致谢"
)
_MATTER = re.compile(rf"\W*(?:{_MATTER_NAMES})\W*", re.IGNORECASE)
_NOTES = re.compile(r"\W*(?:foot|end)?notes?\W*|\W*(?:脚注|尾注|注释)\W*", re.IGNORECASE)
_NOTE = re.compile(
    r"\s*(?:\[(?:footnote\s*)?[\d*†‡]{1,4}[:.]?[\]\s]|\[\^[^\]\s]{1,40}\]:|footnote\s+\d+[:.])", re.IGNORECASE
)
_MARK = re.compile(r"\[(?:\d{1,4}|[*†‡]|\^[^\]\s]{1,40}|footnote \d+)\]", re.IGNORECASE)
_NUMBER = (
    r"(?:[ivxlcdm]{1,9}|\d{1,4}|(?:the )?(?:first|last|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|[a-z]+teen|[a-z]+t(?:y|ieth)(?:[ -][a-z]+)?))"
)
_HEADING = regex.compile(
    rf"\#{{1,6}}\s.*|(?:chapter|book|part|volume|letter|stave|canto|act|scene|adventure)\s+{_NUMBER}\b[^\n]{{0,90}}"
    rf"|(?-i:[IVXLCDM]{{1,7}})\.?|(?:prologue|epilogue|preface|foreword|introduction|afterword|interlude)\W*"
    rf"|第\s*[\d零〇一二三四五六七八九十百千两]{{1,8}}\s*[章回节卷部集篇][^\n]{{0,40}}|{_MATTER_NAMES}|\W*(?:foot|end)?notes\W*",
    regex.IGNORECASE,
)
_ENCODING = re.compile(
    rb"(?:encoding|charset)\s*=\s*[\"']?((?:iso-8859|windows|us-ascii|koi8|gb|big5|shift|euc)[\w-]*)", re.IGNORECASE
)
_UNDERLINED = re.compile(r"(?:\A|(?<=\n\n))(\S[^\n]{0,119})\n(?:={3,}|-{3,})[ \t]*$", re.MULTILINE)
_LINE_HEADING = re.compile(
    r"^[ \t\u3000]*(#{1,6}\s.*|CHAPTER\s+(?:[IVXLC]+|\d+)\b.{0,80}"
    r"|第\s*[\d零〇一二三四五六七八九十百千两]{1,8}\s*[章回节卷](?!\w).{0,40})$",
    re.MULTILINE,
)
_EMPHASIS = re.compile(r"(?<!\w)[_*]{1,3}(?=\S)|(?<=\S)[_*]{1,3}(?!\w)")
_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\([^()\s]*(?:\s\"[^\"]*\")?\)")
_GUTENBERG = re.compile(
    r"^\*\*\*\s*(START|END) OF (?:TH[EI]S? )?PROJECT GUTENBERG[^\n]*$", re.IGNORECASE | re.MULTILINE
)

_FEW_WORDS = 200
"""Maximum number of words before the first heading that count as a title page."""
_LISTED = 3
"""Minimum number of consecutive headings without text that count as a table of contents."""


@dataclass(frozen=True)
class Passage:
    """A heading or a paragraph; `section` is the number of its part of the book, from 0."""

    text: str
    kind: PassageKind
    section: int


@dataclass(frozen=True)
class Book:
    """A book in reading order; `titles` are the titles of its sections, empty for a section without a title."""

    titles: tuple[str, ...]
    passages: tuple[Passage, ...]


def read_book(path: Path) -> Book:
    """Read a book as its file extension indicates: as EPUB, as JSON, or otherwise as text (also Markdown or subtitles).

    Raises:
        BadInput: the file is missing, broken, protected, beyond the limits, or without words; the message says what to
            do.
    """
    ending = path.suffix.lower()
    if ending in (".mobi", ".azw", ".azw3", ".pdf", ".docx", ".doc", ".odt", ".fb2", ".rtf", ".html", ".htm"):
        raise BadInput(f"{path} is not in a supported format; export the book as EPUB, Markdown or plain text")
    pieces = _read_epub(path) if ending == ".epub" else _read_json(path) if ending == ".json" else _read_plain(path)
    book = _number_sections(pieces)
    if not any(passage.kind == "body" for passage in book.passages):
        raise BadInput(f"{path} contains no words to read aloud, only headings, front matter or notes")
    return book


Piece = tuple[str, str]
"""The kind of a passage (`heading`, `text`, `note`, `matter`; `page` begins a page), and its words."""


def _number_sections(pieces: Iterator[Piece]) -> Book:
    """Number the sections, and identify front and back matter and notes by their headings."""
    titles, passages, characters, is_new = [""], list[Passage](), 0, False
    kind: PassageKind = "body"
    for what, raw in pieces:
        text = " ".join(_EMPHASIS.sub("", _MARK.sub("", clean_text(raw))).split())
        is_new = is_new or what == "page"
        if not any(map(str.isalnum, text)):
            continue
        characters += len(text)
        if characters > LONGEST_BOOK:
            raise BadInput(f"the book has more than {LONGEST_BOOK:,} characters; split it into volumes")
        if what == "heading" or is_new:
            # A page without a heading continues the previous page, but may be a separate recording.
            titles.append(text if what == "heading" else titles[-1])
            kind = "note" if _NOTES.fullmatch(text) else "front_matter" if _MATTER.fullmatch(text) else "body"
            is_new = False
        by_piece: Mapping[str, PassageKind] = {"matter": "front_matter", "note": "note"}
        passage_kind = by_piece.get(what, "heading" if what == "heading" and kind == "body" else kind)
        passages.append(Passage(text, passage_kind, len(titles) - 1))
    return Book(tuple(titles), _tell_matter(titles, passages))


def _tell_matter(titles: list[str], passages: list[Passage]) -> tuple[Passage, ...]:
    """Recognise a table of contents (headings without text), a title page without a heading, and the end of front
    matter.
    """
    rows = list[Passage]()
    for alone, group in groupby(passages, lambda passage: passage.kind == "heading"):
        run = list(group)
        # If there are several headings in a row, the text that follows belongs to the last heading.
        listed = len(run) - 1 if alone and len(run) > _LISTED else 0
        rows += [replace(row, kind="front_matter") for row in run[:listed]] + run[listed:]
    opening = [row for row in rows if row.kind == "body" and not titles[row.section]]
    if any(titles) and sum(len(row.text.split()) for row in opening) < _FEW_WORDS:
        rows = [replace(row, kind="front_matter") if row in opening else row for row in rows]
    last = max((at for at, row in enumerate(rows) if row.kind == "body"), default=len(rows))
    return tuple(
        replace(row, kind="back_matter") if row.kind == "front_matter" and at > last else row
        for at, row in enumerate(rows)
    )


def _read_plain(path: Path) -> Iterator[Piece]:
    """Read plain text in the style of Project Gutenberg (hard-wrapped paragraphs, separated by empty lines), Markdown,
    or subtitles.
    """
    text, _ = strip_surroundings(read_text(path))
    if cues := read_cues(text):
        yield "text", " ".join(re.sub(f"{VOICE}[^{VOICE}]*{VOICE}", "", cue) for cue in cues)
        return
    marks = {match[1].upper(): match for match in _GUTENBERG.finditer(text)}
    begin = marks["START"].end() if "START" in marks else 0
    end = marks["END"].start() if "END" in marks and marks["END"].start() > begin else len(text)
    parts = (("matter", text[:begin]), ("text", text[begin:end]), ("matter", text[end:]))
    for what, part in parts:
        spaced = _LINE_HEADING.sub(r"\n\1\n", _UNDERLINED.sub(r"# \1", strip_tags(part).strip()))
        for block in re.split(r"\n[ \t]*\n", spaced):
            words = " ".join(_LINK.sub(lambda link: "" if link[1] else link[2], block).split())
            if what == "matter" or not words:
                yield what, words
            elif _NOTE.match(words):
                yield "note", _NOTE.sub("", words, count=1)
            elif block.strip().count("\n") < 3 and len(words) <= 160 and _HEADING.fullmatch(words):
                yield "heading", words.lstrip("# ")
            else:
                yield "text", words


def _read_json(path: Path) -> Iterator[Piece]:
    """Read chapters (`{"chapters": [{"title", "text" or "paragraphs"}]}`), or a script in any supported form."""
    text = read_text(path)
    data = json.loads(text)
    chapters = data.get("chapters", data.get("sections")) if isinstance(data, dict) else None
    if not isinstance(chapters, list) or not all(isinstance(chapter, dict) for chapter in chapters):
        yield from (("text", turn.text) for turn in read_any_script(text).turns)
        return
    for number, chapter in enumerate(chapters, 1):
        written = chapter.get("paragraphs", chapter.get("text", chapter.get("content")))
        paragraphs = written if isinstance(written, list) else [written]
        if not all(isinstance(paragraph, str) for paragraph in paragraphs):
            raise BadInput(f"{path}: chapter {number} needs `text`, or `paragraphs` as a list of texts")
        yield "heading", str(chapter.get("title") or "")
        yield from (("text", block) for paragraph in paragraphs for block in re.split(r"\n\s*\n", paragraph))


def _read_epub(path: Path) -> Iterator[Piece]:
    """Read the pages of an EPUB in the order of its spine."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield from _read_spine(archive)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror or error}); check the path") from None
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, ParseError, ValueError, LookupError) as error:
        # `RuntimeError` is raised for an encrypted file, and for a compression method that zipfile does not support.
        raise BadInput(f"{path} is a damaged or locked EPUB ({error}); export the book again") from None


def _read_spine(archive: zipfile.ZipFile) -> Iterator[Piece]:
    from defusedxml.ElementTree import fromstring

    if len(archive.infolist()) > MOST_MEMBERS:
        raise BadInput(f"the EPUB has more than {MOST_MEMBERS:,} files; export only its text")
    left = UNPACKED_BYTES

    def read(name: str) -> bytes:
        """Read a member, unless the total size of all members exceeds the limit."""
        nonlocal left
        with archive.open(name) as member:
            content = member.read(left + 1)
        left -= len(content)
        if left < 0:
            raise BadInput(f"the pages of the EPUB are larger than {UNPACKED_BYTES >> 20} MiB; export only its text")
        return content

    container = fromstring(read("META-INF/container.xml"))
    package_name = next((node.attrib["full-path"] for node in container.iter() if node.tag.endswith("}rootfile")), "")
    package = fromstring(read(package_name))
    items = {node.attrib["id"]: node.attrib for node in package.iter() if node.tag.endswith("}item")}
    lock = "META-INF/encryption.xml"
    locked = read(lock).decode("utf-8", "replace") if lock in archive.namelist() else ""
    for reference in (node for node in package.iter() if node.tag.endswith("}itemref")):
        item = items[reference.attrib["idref"]]
        if "html" not in item.get("media-type", "html"):
            continue
        name = posixpath.normpath(posixpath.join(posixpath.dirname(package_name), unquote(item["href"])))
        if f'"{name}"' in locked:
            raise BadInput("the EPUB is protected against copying (DRM); use the text that it was made from")
        is_aside = reference.get("linear") == "no" or "nav" in item.get("properties", "").split()
        yield "page", ""
        page = _PageReader("matter" if is_aside else "text")
        page.feed(_decode_page(read(name)))
        page.close()
        yield from page.pieces


def _decode_page(content: bytes) -> str:
    """Decode a page as UTF-16 if it begins with the byte order mark of UTF-16. Otherwise, decode it in the encoding
    that it states if that is a common one; failing that, as UTF-8.

    Raises:
        LookupError: the page states an unknown encoding.
        UnicodeDecodeError: the page is not in the chosen encoding.
    """
    stated = _ENCODING.search(content[:1024])
    encoding = "utf-16" if content[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else stated[1].decode() if stated else "utf-8"
    return content.decode(encoding).removeprefix("\ufeff")


_HEADINGS = frozenset(("h1", "h2", "h3"))
_BLOCKS = _HEADINGS | frozenset(
    (
        *("p", "div", "li", "dt", "dd", "blockquote", "td", "th", "tr", "section", "article", "aside", "header"),
        *("footer", "figcaption", "pre", "hr", "body", "nav", "table", "h4", "h5", "h6"),
    )
)
_SILENT = frozenset(("script", "style", "head", "svg", "math", "rt", "rp"))
_TYPES = (
    (re.compile(r"\b(?:noteref|backlink|pagebreak)\b"), "silent"),
    (re.compile(r"\b(?:foot|end|rear)?notes?\b"), "note"),
    (
        re.compile(
            r"\b(?:toc|landmarks|lo[ait]|(?:half)?titlepage|copyright-page|cover|imprint|colophon|dedication|index|glossary"
            r"|bibliography|seriespage|(?:other-)?credits|contributors|acknowledgments|page-?list)\b"
        ),
        "matter",
    ),
)
"""Kinds of elements by `epub:type` or role (`doc-…`)."""


class _PageReader(HTMLParser):
    """Reads a page of an EPUB into pieces."""

    def __init__(self, kind: str) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[Piece] = []
        self._text: list[str] = []
        self._open: list[tuple[str, str]] = [("", kind)]
        self._heading = False

    def close(self) -> None:
        """Read to the end, and take the remaining words."""
        super().close()
        self._flush()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element, which may begin a paragraph or be of a different kind from its parent."""
        if tag in _BLOCKS:
            self._flush()
            self._heading = tag in _HEADINGS
        elif tag == "br":
            self._text.append(" ")
        names = " ".join(value or "" for name, value in attrs if name in ("epub:type", "role"))
        kind = next((kind for pattern, kind in _TYPES if pattern.search(names)), self._open[-1][1])
        is_silent = tag in _SILENT or self._open[-1][1] == "silent" or any(name == "hidden" for name, _ in attrs)
        kind = "silent" if is_silent else "matter" if tag == "nav" else kind
        self._open.append((tag, "mark" if tag == "sup" and kind != "silent" else kind))
        if len(self._open) > DEEPEST:
            raise BadInput(f"a page of the EPUB has elements nested more than {DEEPEST} deep; export it again")

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and any elements in it that were left open."""
        at = next((at for at in range(len(self._open) - 1, 0, -1) if self._open[at][0] == tag), 0)
        if tag in _BLOCKS:
            self._flush()
        if at:
            del self._open[at:]

    def handle_data(self, data: str) -> None:
        """Add words, except note markers and words that are not read aloud."""
        kind = self._open[-1][1]
        is_mark = kind == "mark" and not re.search(r"[^\W\d_]{2}", data)
        if kind != "silent" and not is_mark:
            self._text.append(data)

    def unknown_decl(self, data: str) -> None:
        """Add the words of a CDATA section."""
        self.handle_data(data.removeprefix("CDATA["))

    def _flush(self) -> None:
        text, self._text = "".join(self._text).strip(), []
        kind = next(kind for _, kind in reversed(self._open) if kind not in ("mark", "silent"))
        if text:
            self.pieces.append(("heading" if self._heading and kind == "text" else kind, text))
        self._heading = False
