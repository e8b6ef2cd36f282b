"""The parts of a report as data: words, tables and pictures, in the language of the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class TableCell:
    """A cell of a table that is more than a text: with a quiet line below, a link, a class, a line of code."""

    text: str
    note: str = ""
    link: str = ""
    css: str = ""
    code: str = ""


@dataclass(frozen=True)
class RowOfCells:
    """A row of a table, its first cell the heading; with a `span` (`group` or `why`) one cell across the table."""

    cells: Sequence[str | TableCell]
    span: str = ""


@dataclass(frozen=True)
class Table:
    """A table; the class of a header (`number`) is that of its column."""

    label: str
    headers: Sequence[TableCell]
    rows: Sequence[RowOfCells]
    css: str = ""


def make_heads(texts: Mapping[str, str], names: Sequence[str], numbers: Sequence[str] = ()) -> list[TableCell]:
    """Make the headers of a table of the names of their texts, those of columns of numbers with that class."""
    return [TableCell(texts[name], css="number" if name in numbers else "") for name in names]


@dataclass(frozen=True)
class Text:
    """A paragraph, quiet unless another class is given; `lead` is a strong beginning."""

    text: str
    css: str = "quiet"
    lead: str = ""


@dataclass(frozen=True)
class Entry:
    """A line of a list: a strong beginning, a text, code; with a `start`, a button that plays from that second."""

    text: str
    lead: str = ""
    code: str = ""
    start: float | None = None


@dataclass(frozen=True)
class Listing:
    """A list."""

    entries: Sequence[Entry]


@dataclass(frozen=True)
class FactList:
    """Named lines: name, value, and whether the value is a link."""

    rows: Sequence[tuple[str, str, bool]]
    css: str = "facts"


@dataclass(frozen=True)
class Pictures:
    """Pictures with captions; `legend` is the class and the name of each kind of mark."""

    pictures: Sequence[tuple[str, Markup]]
    css: str = "courses"
    of_each: str = "small"
    legend: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Player:
    """A recording that is inside the report, with its waveform to be clicked."""

    sound: str
    waveform: Markup
    hint: str


@dataclass(frozen=True)
class Sample:
    """A recording on the site: a heading, its title, its address, and the page that has more, with its name."""

    heading: str
    title: str
    address: str
    page: str
    more: str


@dataclass(frozen=True)
class Transcription:
    """Turns that play from a word that is clicked: speaker, start in seconds and as text, words with their starts."""

    label: str
    turns: Sequence[tuple[str, float, str, Sequence[tuple[float, str]]]]


@dataclass(frozen=True)
class Protocols:
    """How values came about: the metric, the protocol's id, and its content line by line."""

    entries: Sequence[tuple[str, str, Sequence[tuple[str, str]]]]


Part = Table | Text | Listing | FactList | Pictures | Player | Sample | Transcription | Protocols


@dataclass(frozen=True)
class Section:
    """A heading of level 2 or 3 with its parts; one of level 3 without parts is left out."""

    title: str
    parts: Sequence[Part]
    level: int = 3


@dataclass(frozen=True)
class Report:
    """A report on one thing.

    Attributes:
        id: its name in addresses.
        title: the heading.
        about: the quiet line below the heading, and `kicker` the one above.
        sections: the sections.
        head: the parts above the contents.
        seconds: length of the recording that its player plays.
    """

    id: str
    title: str
    about: str
    sections: Sequence[Section]
    head: Sequence[Part] = ()
    kicker: str = ""
    seconds: float = 0.0
