"""The documents: a searchable list, a page about this board, and a page for every metric in plain words."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from markdown_it import MarkdownIt
from markupsafe import Markup
from website import CurrentSite, Site, limit

from podeval.arena import ArenaRefused, refusal
from podeval.board.columns import get_column
from podeval.board.words import Words, explain_column
from podeval.metrics import catalogue
from podeval.metrics.catalogue import Metric
from podeval.metrics.facts import DIMENSION_GROUPS
from podeval.metrics.standing import translate
from podeval.text.message_catalogue import FIRST
from podeval.texts import write_sentence

DOCUMENTS = {
    **{"about": "/about", "method": "/method", "judges": "/judges", "ratings": "/arena/ratings"},
    **{"compare": "/compare", "queue": "/queue", "programs": "/api/docs"},
}
"""Documents in the list, by the key of their name in the texts `site`."""
OPERATORS_DOCUMENTS = {"admin": "/admin", "listening": "/listening"}
RATE = "60/minute"
routes = APIRouter(include_in_schema=False)
# A link to `/cards#wer` finds `#wer` in the list.
routes.get("/cards")(lambda: RedirectResponse("/docs"))


@routes.get("/docs", dependencies=[limit(RATE)])
def documents(request: Request, site: CurrentSite, q: str = "") -> Response:
    """Show the list of documents and metrics, or only the entries that contain every word of a search."""
    texts, words = _read_texts(request, site)
    person = site.person(request)
    names = DOCUMENTS | (OPERATORS_DOCUMENTS if person and person.admin else {})
    pages = [(address, texts["site"][key], texts["cards"]["pages"][key], "") for key, address in names.items()]
    groups = {texts["cards"]["this_board"]: pages} | {words.dimension(group): [] for group in DIMENSION_GROUPS}
    for metric in catalogue.load_all_metrics():
        groups[words.dimension(metric.dimension.partition(".")[0])].append(
            (f"/metrics/{metric.name}", _title(metric, words), translate(metric.purpose, words.language), metric.name)
        )
    query_words = q.casefold().split()
    matches = (
        (title, [entry for entry in entries if all(word in " ".join(entry[1:]).casefold() for word in query_words)])
        for title, entries in groups.items()
    )
    return site.render(request, "docs.html", q=q, groups=[group for group in matches if group[1]])


@routes.get("/about", dependencies=[limit(RATE)])
def about(request: Request, site: CurrentSite) -> Response:
    """Show a description of this board, and its contact."""
    texts = _read_texts(request, site)[0]["about"]
    contact = texts["contact"].format(site.contact) if site.contact else ""
    text = "\n\n".join([texts["content"], texts["security"], contact])
    # HTML in the contact is shown as text.
    content = MarkdownIt("commonmark", {"html": False}).render(text)
    return site.render(request, "about.html", content=Markup(content))


@routes.get("/metrics/{name}", dependencies=[limit(RATE, "metrics")])
def metric(request: Request, site: CurrentSite, name: str) -> Response:
    """Show the page that explains a metric in plain words.

    Raises:
        Refused: there is no such metric.
    """
    if name not in catalogue.NAMES:
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-choice", what="metric", value=f"{name[:80]!r}"))
    texts, words = _read_texts(request, site)
    return site.render(request, "metric.html", card=_describe(catalogue.get(name), words, texts["cards"]))


def _read_texts(request: Request, site: Site) -> tuple[dict[str, Any], Words]:
    language = site.language(request)
    texts: dict[str, Any] = site.texts[language]
    return texts, Words(texts["board"], language)


def _title(metric: Metric, words: Words) -> str:
    """Return a metric's name; in languages other than the engine's, together with its usual English name."""
    column_title = words.title(get_column(metric.name, metric.headline.name, metric.dimension))
    return (
        metric.title
        if words.language == FIRST
        else column_title
        if metric.title in column_title
        else f"{column_title}（{metric.title}）"
    )


def _describe(metric: Metric, words: Words, texts: dict[str, Any]) -> dict[str, Any]:
    declared = {
        "use": metric.intended_use,
        "limits": metric.limitations,
        "caution": metric.caution,
        "misread": metric.misreading,
    }
    columns = [get_column(metric.name, key.name, metric.dimension) for key in metric.keys]
    return {
        "name": metric.name,
        "title": _title(metric, words),
        "about": translate(metric.purpose, words.language),
        "dimension": words.dimension(metric.dimension),
        "paper": metric.paper,
        "version": metric.version,
        "keys": [explain_column(of, words) for of in columns],
        "notes": [
            (texts[f"{part}_title"], texts[part].get(metric.name, text)) for part, text in declared.items() if text
        ],
        # The formula, and its differences from the original, are written in English, like the metric card.
        "documentation": metric.documentation if words.language == FIRST else "",
    }
