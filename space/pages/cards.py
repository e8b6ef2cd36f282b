"""Every metric in plain words: what it measures, which way is better, its range, who reaches what, how it is made."""

from __future__ import annotations

from typing import Any

from board_words import Words, explain_column
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from website import Site

from podeval.board.columns import get_column
from podeval.metrics import catalogue
from podeval.metrics.declaration import DIMENSION_GROUPS, Metric
from podeval.text.message_catalogue import FIRST, translate


def build_router(site: Site) -> APIRouter:
    """The page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/cards")
    def page(request: Request) -> HTMLResponse:
        site.limit(request, "60/minute")
        language = site.language(request)
        words, texts = Words(site.texts[language]["board"], language), site.texts[language]["cards"]
        metrics = catalogue.load_all_metrics()
        groups = [
            (
                words.dimension(name),
                [_card(metric, words, texts) for metric in metrics if metric.dimension.startswith(name)],
            )
            for name in DIMENSION_GROUPS
        ]
        return site.render(request, "cards.html", groups=[(title, cards) for title, cards in groups if cards])

    return routes


def _title(metric: Metric, words: Words) -> str:
    """Return a metric's name; in another language than the engine's with the name that the field knows it by."""
    own = words.title(get_column(metric.name, metric.headline.name, metric.dimension))
    return metric.title if words.language == FIRST or own == metric.title else f"{own}（{metric.title}）"


def _card(metric: Metric, words: Words, texts: dict[str, Any]) -> dict[str, Any]:
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
        "paper": metric.paper,
        "version": metric.version,
        "keys": [explain_column(of, words) for of in columns],
        "notes": [
            (texts[f"{part}_title"], texts[part].get(metric.name, text)) for part, text in declared.items() if text
        ],
        # The formula and how it differs from the original are written in English, as the metric card is.
        "documentation": metric.documentation if words.language == FIRST else "",
    }
