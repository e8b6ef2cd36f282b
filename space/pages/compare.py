"""Two systems side by side: values with their paired difference, every item, and recordings played in sync."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any

import player_data
from audio_routes import answer_picture
from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from player_data import PlayerSide, list_leading_systems
from rate_limit import Full, ThreadPool, WaitingRoom
from request_guard import find_origin
from website import CurrentSite, Site, change_address, limit, to_script_data

from podeval.arena import ArenaRefused, refusal
from podeval.board.columns import (
    MISSING,
    Column,
    format_difference,
    format_signed,
    format_value,
    to_number,
    write_dimension_title,
)
from podeval.board.compare import (
    Pair,
    Shared,
    SystemComparison,
    UnknownSystem,
    compare,
    list_sides,
)
from podeval.board.item_results import format_reading, read_scores
from podeval.board.playable import Recordings
from podeval.plots.charts import draw_pairs
from podeval.plots.svg import Frame
from podeval.texts import translate_reason, write_sentence

AT_ONCE = 12
"""Number of threads that prepare copies and mostly wait for them; pages, votes and `/health` have other threads."""

MOST, MOST_EACH = 36, 6
"""Maximum number of requested recordings and peaks, in total and per address; a page sends four requests at the same
time.
"""

_KEEP = {"Cache-Control": "private, max-age=600"}
_WAITING = WaitingRoom(MOST, MOST_EACH)
_POOL = ThreadPool(AT_ONCE)
routes = APIRouter(include_in_schema=False)


@routes.get("/compare", dependencies=[limit("120/minute")])
def page(
    request: Request,
    site: CurrentSite,
    a: str = "",
    b: str = "",
    benchmark: str = "",
    item: str = "",
    by: str = "",
    part: int = 0,
    level: bool = False,
) -> HTMLResponse:
    """Show two systems, and one item that both have spoken."""
    board = site.results.board()
    every_text = site.texts[site.language(request)]
    texts = every_text["compare"] | {"reasons": every_text["board"]["causes"]}
    leading = not (a or b)
    if leading:
        a, b = (*list_leading_systems(site.results, 2), "", "")[:2]
    chosen = {"a": a, "b": b, "benchmark": benchmark}
    try:
        comparison = compare(site.results, a, b, benchmark) if a and b and not board.empty else None
    except UnknownSystem as error:
        if not leading:
            raise ArenaRefused(refusal.UNKNOWN, error.sentence) from None
        comparison = None
    systems = list_sides(board) if len(board) else []
    if comparison is None:
        return site.render(request, "compare.html", systems=systems, chosen=chosen, found=None, places=())
    # Use the first item for which both systems have an output, otherwise an item for which one of the systems has an
    # output.
    first = max(comparison.items, key=lambda each: sum(map(bool, each.outputs)), default=None)
    shared = comparison.item(item) if item else first
    if item and shared is None:
        raise ArenaRefused(refusal.UNKNOWN, texts["no_item"])
    column = next((c for c in comparison.headlines if c.id == by), None) or next(iter(comparison.headlines), None)
    query = {"a": a, "b": b, "benchmark": comparison.where, "by": column.id if column else "", "level": int(level)}
    deck = None
    if shared:
        both = zip((comparison.a, comparison.b), shared.outputs, strict=True)
        players = [PlayerSide(side.system, side.title, output) for side, output in both]
        deck = player_data.build_deck(site.results, players, comparison.where, shared.id, texts, part, level)
    return site.render(
        request,
        "compare.html",
        systems=systems,
        chosen=chosen | {"benchmark": comparison.where},
        level=level,
        shared=shared,
        deck=deck,
        link=partial(change_address, "/compare", query),
        script_data=Markup(to_script_data(player_data.build_script_data(deck, texts))),
        **_content(comparison, column, shared, texts),
    )


def in_turn(work: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
    """Run the work in one of our own threads; the number of waiting requests per address is limited."""
    in_thread = _POOL(work)

    @wraps(work)
    async def answer(request: Request, **options: Any) -> Response:
        try:
            with _WAITING.enter(find_origin(request)):
                return await in_thread(request=request, **options)
        except Full:
            sentence = "many recordings are being prepared at the moment; try again in a few seconds"
            return JSONResponse({"error": sentence, "reason": refusal.TOO_MANY}, 503, {"Retry-After": "5"})

    return answer


@dataclass
class SoundWish:
    """The recording at an address, at the same loudness as the recording of the system `beside`, if such a system is
    given.
    """

    system: str
    where: str
    item: str
    part: int = 0
    beside: str = ""

    def read(self, site: Site, fact: Callable[..., Any]) -> Any:
        """Return a fact about the recording's copy.

        Args:
            site: the site of the recordings.
            fact: method of `Recordings` that returns the fact.

        Raises:
            ArenaRefused: there is nothing to play.
        """
        outputs = [
            entry.output if (entry := read_scores(site.results, system, self.where).items.get(self.item)) else ""
            for system in filter(None, (self.system, self.beside))
        ]
        recordings = Recordings(site.results.path, site.services.playback)
        content = fact(recordings, outputs[0], self.part, (outputs[1] or None) if self.beside else None)
        if content is None:
            raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-recording"))
        return content


Wish = Annotated[SoundWish, Depends()]


@routes.api_route("/compare/audio", methods=["GET", "HEAD"], dependencies=[limit("300/minute")])
@in_turn
def audio(request: Request, site: CurrentSite, wish: Wish) -> Response:
    """Send a recording, at the loudness of another recording if the request names one to be played next to it."""
    copy = wish.read(site, Recordings.file)
    return FileResponse(copy, stat_result=copy.stat(), media_type="audio/flac", headers=_KEEP)


@routes.get("/compare/peaks", dependencies=[limit("120/minute")])
@in_turn
def peaks(request: Request, site: CurrentSite, wish: Wish) -> Response:
    """Send the picture of a sound, for a player."""
    return answer_picture(wish.read(site, Recordings.peaks))


def _content(
    comparison: SystemComparison, column: Column | None, shared: Shared | None, texts: dict[str, Any]
) -> dict[str, Any]:
    """Return the page's content about two systems: their values, items and differences."""
    return {
        "found": comparison,
        "places": comparison.places,
        "dimensions": _values(comparison, texts),
        "column": column,
        "headers": [(c.id, c.header_in(texts["language"])) for c in comparison.headlines],
        "items": [_item(entry, column, texts) for entry in comparison.items],
        "plot": _plot(comparison, column, texts) if column else None,
        "scores": _scores(shared, comparison, texts) if shared else [],
    }


def _plot(comparison: SystemComparison, column: Column, texts: dict[str, Any]) -> Markup:
    """Plot the values of both systems by item, for the items on which both have a value."""
    rows = [(item.title, *item.values(column)) for item in comparison.items]
    pairs = [(title, a, b) for title, a, b in rows if a is not None and b is not None]
    title = texts["plot"]["title"].format(column=column.header_in(texts["language"]), items=len(pairs))
    return Markup(draw_pairs(pairs, Frame(title, css_class="pairs", percent=column.percent), texts["plot"]["some"]))


def _values(comparison: SystemComparison, texts: dict[str, Any]) -> list[tuple[str, list[dict[str, str]]]]:
    """Return the rows of values by dimension."""
    by_dimension: dict[str, list[dict[str, str]]] = {}
    for pair in comparison.pairs:
        by_dimension.setdefault(write_dimension_title(pair.column.dimension, texts["language"]), []).append(
            _value(pair, texts)
        )
    return list(by_dimension.items())


def _value(pair: Pair, texts: dict[str, Any]) -> dict[str, str]:
    values = pair.values
    places_ = pair.column.choose_decimals(values)
    a, b = (
        format_value(value, to_number(row["low"]), to_number(row["high"]), places_) if row else MISSING
        for row, value in zip((pair.a, pair.b), values, strict=True)
    )
    difference = pair.beside.difference if pair.beside else None
    return {
        "header": pair.column.header_in(texts["language"]),
        "protocol": pair.protocol,
        "a": a,
        "b": b,
        "difference": format_difference(difference, places_) if difference else MISSING,
        "count": str(difference.n) if difference else "",
        "said": pair.to_b.describe(texts),
        "winner": {"better": "a", "worse": "b"}.get(pair.to_b.word, "") if pair.to_b.sure else "",
    }


def _item(item: Shared, column: Column | None, texts: dict[str, Any]) -> dict[str, str]:
    about = {"id": item.id, "title": item.title, "category": item.category}
    return about | dict(zip(("a", "b", "difference"), _cells(item, column, texts) if column else [""] * 3, strict=True))


def _scores(item: Shared, comparison: SystemComparison, texts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every score of one item, side by side; an unscored item has its reason and cause instead."""
    columns = [pair.column for pair in comparison.pairs if pair.column.metric in item.readings]
    cells = [(column, _cells(item, column, texts, reasons=True)) for column in columns]
    return [
        {"header": column.header_in(texts["language"]), "cells": both, "difference": difference}
        for column, (*both, difference) in cells
    ]


def _cells(item: Shared, column: Column, texts: dict[str, Any], reasons: bool = False) -> list[str]:
    """Return the values of both systems on an item, and their difference."""
    places_, difference = column.choose_decimals(item.values(column)), item.difference(column)
    cells = [
        f"{texts['unscored_by'][reading.cause]}: {translate_reason(reading.reason, texts['reasons'])}"
        if reasons and reading is not None and reading.reason
        else format_reading(reading, column.key, places_, texts["unscored"])
        for reading in item.readings.get(column.metric, (None, None))
    ]
    return [*cells, "" if difference is None else format_signed(difference, places_)]
