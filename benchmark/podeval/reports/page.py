"""A page of reports: one self-contained HTML file that plays, reads and prints, in which nothing is fetched.

Names and words of strangers are text and never markup; the page's policy runs the script of the player alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from podeval.errors import BadInput
from podeval.hub_sources import locate_hub_source
from podeval.metrics import catalogue
from podeval.reports.parts import Part, Player, Report
from podeval.text.message_catalogue import read_texts
from podeval.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
LANGUAGES = ("en", "zh")
"""Languages of reports, the one that the engine speaks first."""


@cache
def read_report_texts(language: str) -> dict[str, Any]:
    """Read the texts of reports, by page.

    Raises:
        BadInput: there is no such language; says which there are.
    """
    if language not in LANGUAGES:
        raise BadInput(f"reports are not written in the language {language!r}; choose {' or '.join(LANGUAGES)}")
    pages = ("site", "compare", "report", "recording_report", "board")
    return read_texts(locate_hub_source("space") / "locale", language, pages)


def render_document(reports: Sequence[Report], language: str = "en") -> str:
    """Render some reports as one self-contained HTML file.

    Args:
        reports: the reports, in their order.
        language: `en` or `zh`.

    Raises:
        BadInput: there is no such language.
    """
    static = locate_hub_source("space") / "static"
    sheets = [(static / name).read_text(encoding="utf-8") for name in ("tokens.css", "site.css", "report.css")]
    plays = any(isinstance(part, Player) for report in reports for part in report.head)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8") if plays else ""
    return (
        _open_templates()
        .get_template("report.html")
        .render(
            t=read_report_texts(language),
            language=language,
            style=Markup("\n".join(sheets)),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            version=__version__,
            made=datetime.now(UTC).isoformat(timespec="minutes"),
            reports=reports,
        )
    )


def render_parts(parts: Iterable[Part]) -> str:
    """Render parts alone, such as a table for a notebook."""
    module: Any = _open_templates().get_template("parts.html").module
    return "".join(str(module.render(part)) for part in parts)


def make_breakable(name: str) -> Markup:
    """Make a name that may continue in the next line behind a dot or an underscore, and nowhere else."""
    return Markup(str(escape(name)).replace(".", ".<wbr>").replace("_", "_<wbr>"))


def write_page(page: str, path: Path) -> Path:
    """Write a page; an existing file is replaced.

    Raises:
        BadInput: it cannot be written.
    """
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror or error}); name another file") from None
    return path


def describe_protocol(metric: str, content: Mapping[str, Any]) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the title of the metric, the id of the protocol, and its content as named lines."""
    lines = []
    for name, value in content.items():
        if name in ("id", "metric") or value in ({}, [], None, ""):
            continue
        if name == "models" and isinstance(value, dict):
            lines += [(job, _model(model)) for job, model in value.items()]
        else:
            lines.append((name, _plain(value)))
    return write_metric_title(metric), str(content.get("id", "")), lines


def write_metric_title(metric: str) -> str:
    """Return the title of a metric; of one that this version does not have, its name."""
    return catalogue.get(metric).title if metric in catalogue.NAMES else metric.replace("_", " ")


def _model(model: Any) -> str:
    if not isinstance(model, dict):
        return _plain(model)
    options = model.get("options")
    name_text = " @ ".join(str(model[name]) for name in ("id", "revision") if model.get(name))
    return f"{name_text} ({_plain(options)})" if options else name_text


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@cache
def _open_templates() -> Environment:
    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
