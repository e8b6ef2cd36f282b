"""A page of reports: one self-contained HTML file that plays audio, can be read and printed, and loads no other files.

Untrusted text is never treated as markup, and the page's policy allows only the player's script.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from podeval.errors import BadInput
from podeval.files import locate_hub_source
from podeval.text.message_catalogue import read_texts
from podeval.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
_ENVIRONMENT = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
LANGUAGES = ("en", "zh")
"""Languages of reports; the first is the language of the engine."""
Texts = Mapping[str, Any]
"""The texts of a page, in one language."""
MISSING = "–"
"""The cell for a missing value."""
_BEFORE_UNIT = re.compile(
    r" (?<=\d )(?=(?:%|pp|s|ms|min|h|[kMG]B|k?Hz|dB(?:TP)?|LUF?S?|USD|(?:vote|second|minute|hour|day)s?"
    r"|[秒票天]|分钟|小时)(?![A-Za-z])[^<>{}]*<)"
)
"""Pattern for the space between a number and its unit in text between tags; `page.js` contains the same pattern."""
_WHOLE = re.compile(
    r"(?s)<(script|style|title|option|textarea|svg|code|pre)\b.*?</\1>"
    r"|#\d+–\d+(?=[^<>{}]*<)|(?<=[\s\[(>])-(?=\d[^<>{}]*<)"
)
"""Pattern for elements that are left unchanged and, in text between tags, for rank ranges and for hyphens that stand
for a minus sign.
"""


@dataclass(frozen=True)
class TableCell:
    """A table cell that is more than text: it can have a muted line below, a link, a class and a tooltip."""

    text: str
    note: str = ""
    link: str = ""
    css: str = ""
    hint: str = ""


@dataclass(frozen=True)
class RowOfCells:
    """A table row whose first cell is the heading; with a `span` (`group` or `why`), one cell spans the table."""

    cells: Sequence[TableCell]
    span: str = ""


@dataclass(frozen=True)
class Table:
    """A table; a header's class (`number`) applies to its column. A table with a `summary` is collapsed under it."""

    label: str
    headers: Sequence[TableCell]
    rows: Sequence[RowOfCells]
    css: str = ""
    summary: str = ""


def tabulate(label: str, texts: Texts, columns: str, rows: Iterable[Any], css: str = "", summary: str = "") -> Table:
    """Build a table from its columns' names, separated by spaces, and from its rows, each given as a row or as cells.

    The headers' texts are looked up under these names; `#` before a name declares a column of numbers.
    """
    names = columns.split()
    heads = [TableCell(str(texts[name.strip("#")]), css="number" if "#" in name else "") for name in names]
    return Table(label, heads, [row if isinstance(row, RowOfCells) else make_row(*row) for row in rows], css, summary)


def make_row(*cells: Any, span: str = "") -> RowOfCells:
    """Make a table row from cells, texts and numbers; None stands for a missing value."""
    texts = (MISSING if cell is None else cell for cell in cells)
    return RowOfCells([cell if isinstance(cell, TableCell) else TableCell(str(cell)) for cell in texts], span)


@dataclass(frozen=True)
class Text:
    """A paragraph or a list entry: a bold lead, a text, and a literal, such as a command or an id.

    With a `start`, the lead is a button that plays from that second. A `sound` (a data URL) has its own player.
    """

    text: str
    lead: str = ""
    literal: str = ""
    css: str = "quiet"
    start: float | None = None
    sound: str = ""


@dataclass(frozen=True)
class Listing:
    """A list; a list with a `summary` is collapsed under it."""

    entries: Sequence[Text]
    summary: str = ""


@dataclass(frozen=True)
class FactList:
    """A list of facts, each with its name and its value, which is a text, an address, or named lines."""

    rows: Sequence[tuple[str, str | Sequence[tuple[str, str]]]]
    css: str = "facts"


@dataclass(frozen=True)
class Pictures:
    """Pictures with captions; `legend` has the class and the name of each kind of mark."""

    pictures: Sequence[tuple[str, Markup]]
    css: str = "courses"
    of_each: str = "small"
    legend: Sequence[tuple[str, str]] = ()
    summary: str = ""


@dataclass(frozen=True)
class Player:
    """A recording embedded in the report, with a clickable waveform and its length in seconds."""

    sound: str
    waveform: Markup
    hint: str
    seconds: float


@dataclass(frozen=True)
class Transcription:
    """Turns that play from the clicked word: speaker, start in seconds and as text, words with their starts."""

    label: str
    turns: Sequence[tuple[str, float, str, Sequence[tuple[float, str]]]]


Part = Table | Text | Listing | FactList | Pictures | Player | Transcription


@dataclass(frozen=True)
class Section:
    """A heading of level 2 or 3 with its parts, collapsed if `folded`; a level 3 section without parts is omitted."""

    title: str
    parts: Sequence[Part]
    level: int = 3
    folded: bool = False


@dataclass(frozen=True)
class Report:
    """A report: its name in addresses, its title with muted lines above (`kicker`) and below, and its parts."""

    id: str
    title: str
    about: str
    sections: Sequence[Section]
    head: Sequence[Part] = ()
    kicker: str = ""


def keep_together(page: str) -> str:
    """Return the page with each number joined to its sign and its unit, and each rank range kept on one line."""
    return _WHOLE.sub(
        lambda found: found[0] if found[1] else "−" if found[0] == "-" else f'<span class="together">{found[0]}</span>',
        _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", page),
    )


@cache
def read_report_texts(language: str) -> dict[str, Any]:
    """Read the texts of reports, grouped by page.

    Raises:
        BadInput: there is no such language; the message lists the languages.
    """
    if language not in LANGUAGES:
        raise BadInput(f"reports are not available in the language {language!r}; choose {' or '.join(LANGUAGES)}")
    pages = ("site", "compare", "report", "recording_report", "proof", "board", "judges")
    return read_texts(locate_hub_source("space") / "locale", language, pages)


def render_document(reports: Sequence[Report], language: str = "en") -> str:
    """Render reports as one self-contained HTML file in a language whose texts exist."""
    static = locate_hub_source("space") / "static"
    sheets = [(static / name).read_text(encoding="utf-8") for name in ("podeval.css", "report.css")]
    plays = any(isinstance(part, Player) for report in reports for part in report.head)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8") if plays else ""
    page = _ENVIRONMENT.get_template("report.html").render(
        t=read_report_texts(language),
        language=language,
        style=Markup("\n".join(sheets)),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
        reports=reports,
    )
    return keep_together(page)


def render_parts(parts: Iterable[Part]) -> str:
    """Render parts on their own, such as a table for a notebook."""
    module: Any = _ENVIRONMENT.get_template("parts.html").module
    return keep_together("".join(str(module.render(part)) for part in parts))


def write_lines(part: Part) -> list[str]:
    """Write a text, a list or the rows of a table as lines for a terminal; a column's name precedes each value."""
    if isinstance(part, Text):
        return [part.text]
    if isinstance(part, Listing):
        lines = [part.summary] if part.summary else [f"{one.lead} {one.text}".strip() for one in part.entries]
        return [f"  {line}" for line in lines]
    lines = []
    if isinstance(part, Table):
        for row in part.rows:
            cells = zip(part.headers[1:], row.cells[1:], strict=False)
            texts = (f"{head.text} {cell.text}" for head, cell in cells if cell.text not in ("", MISSING))
            lines.append(f"{row.cells[0].text}: {'; '.join(texts)}")
    return lines


def write_page(page: str, path: Path) -> Path:
    """Write a page, replacing an existing file.

    Raises:
        BadInput: the file cannot be written.
    """
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error}); choose another file") from None
    return path


def list_protocols(protocols: Iterable[tuple[str, Mapping[str, Any]]]) -> FactList:
    """List the protocols behind the values, each with the title of the metric, its id, and its content line by line."""
    rows = []
    for title, content in protocols:
        lines: list[tuple[str, str]] = []
        for name, value in content.items():
            if name == "models" and isinstance(value, dict):
                lines += [(job, _describe_model(model)) for job, model in value.items()]
            elif name not in ("id", "metric") and value not in ({}, [], None, ""):
                lines.append((name, _plain(value)))
        rows.append((f"{title} {content.get('id', '')}".strip(), lines))
    return FactList(rows, "protocols")


def _describe_model(model: Any) -> str:
    if not isinstance(model, dict):
        return _plain(model)
    options = f" ({_plain(model['options'])})" if model.get("options") else ""
    return " @ ".join(str(model[name]) for name in ("id", "revision") if model.get(name)) + options


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
