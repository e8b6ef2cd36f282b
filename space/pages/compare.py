"""Two systems side by side: values with their paired difference, every item, and both to hear at one position."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import player_data
from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from leading_systems import leading_systems
from markupsafe import Markup
from player_data import PlayerSide
from thread_limits import Full, ThreadPool, WaitingRoom
from website import Site, as_script_data

from podeval.analysis.playback import Playback
from podeval.arena import ArenaRefused, refusal
from podeval.leaderboard.columns import Column, dimension_title
from podeval.leaderboard.compare import Pair, Shared, SystemComparison, UnknownSystem, compare, sides
from podeval.leaderboard.compare_plot import differences
from podeval.leaderboard.compare_sound import Recordings
from podeval.leaderboard.report_figures import signed_text
from podeval.leaderboard.report_scores import Reading, ScoreCache
from podeval.leaderboard.table import MISSING, decimals, number_or_none, value_text
from podeval.metrics.reasons import translate_reason

AT_ONCE = 12
"""Threads that look for copies, most of which wait for one to be made; pages, votes and `/health` have others."""

MOST, MOST_EACH = 36, 6
"""Sounds and peaks that wait or are looked for, of all and of one address; a page asks for four at once."""

_KEEP = {"Cache-Control": "private, max-age=600"}


def router(site: Site) -> APIRouter:
    """The page and its sounds."""
    routes = APIRouter(include_in_schema=False)
    read = site.reports
    folder, shelf = read.folder, read.shelf
    recordings = Recordings(folder, Playback.default())

    @routes.get("/compare")
    def page(
        request: Request,
        a: str = "",
        b: str = "",
        benchmark: str = "",
        item: str = "",
        by: str = "",
        part: int = 0,
        level: bool = False,
    ) -> HTMLResponse:
        site.limit(request, "120/minute")
        board = folder.board()
        every_text = site.texts[site.language(request)]
        texts = every_text["compare"] | {"reasons": every_text["board"]["causes"]}
        leading = not (a or b)
        if leading:
            a, b = (*leading_systems(folder, 2), "", "")[:2]
        chosen = {"a": a, "b": b, "benchmark": benchmark}

        def ask_for_two() -> HTMLResponse:
            systems = sides(board) if len(board) else []
            return site.render(request, "compare.html", systems=systems, chosen=chosen, found=None, places=())

        if board.empty or not (a and b):
            return ask_for_two()
        try:
            comparison = compare(board, shelf, a, b, benchmark)
        except UnknownSystem as error:
            if leading:
                return ask_for_two()
            raise ArenaRefused(refusal.UNKNOWN, str(error)) from None
        shared = comparison.item(item) if item else _first_heard(comparison)
        if item and shared is None:
            raise ArenaRefused(refusal.UNKNOWN, texts["no_item"])
        column = next((c for c in comparison.headlines if c.id == by), None) or next(iter(comparison.headlines), None)
        query = {"a": a, "b": b, "benchmark": comparison.where, "by": column.id if column else "", "level": int(level)}

        def link(**changed: Any) -> str:
            return f"/compare?{urlencode({name: value for name, value in (query | changed).items() if value})}"

        both = zip((comparison.a, comparison.b), shared.outputs, strict=True) if shared else ()
        players = [PlayerSide(side.system, side.title, output) for side, output in both]
        deck = player_data.deck(folder, players, comparison.where, shared.id, texts, part, level) if shared else None
        return site.render(
            request,
            "compare.html",
            systems=sides(board),
            chosen=chosen | {"benchmark": comparison.where},
            found=comparison,
            places=comparison.places,
            dimensions=_values(comparison, texts),
            column=column,
            headers=[(c.id, c.header_in(texts["language"])) for c in comparison.headlines],
            items=[_item(entry, column, texts) for entry in comparison.items],
            plot=Markup(differences(comparison, column, texts["plot"] | {"language": texts["language"]}))
            if column
            else None,
            shared=shared,
            scores=_scores(shared, comparison, texts) if shared else [],
            deck=deck,
            level=level,
            link=link,
            script_data=Markup(as_script_data(player_data.script_data(deck, texts))),
        )

    queue = WaitingRoom(MOST, MOST_EACH)
    in_turn = ThreadPool(AT_ONCE)

    @in_turn
    def send_copy(system: str, where: str, item: str, part: int, beside: str) -> Response:
        copy = recordings.file(*_outputs(shelf, system, where, item, part, beside))
        if copy is None:
            raise ArenaRefused(refusal.UNKNOWN, "there is no such recording")
        return FileResponse(copy, stat_result=copy.stat(), media_type="audio/flac", headers=_KEEP)

    @in_turn
    def send_peaks(system: str, where: str, item: str, part: int, beside: str) -> Response:
        magnitudes = recordings.peaks(*_outputs(shelf, system, where, item, part, beside))
        if magnitudes is None:
            raise ArenaRefused(refusal.UNKNOWN, "there is no such recording")
        return JSONResponse({"peaks": magnitudes}, headers=_KEEP)

    async def answer_in_turn(
        request: Request, answer: Callable[..., Awaitable[Response]], *sound: str | int
    ) -> Response:
        try:
            with queue.enter(site.origin(request)):
                return await answer(*sound)
        except Full:
            sentence = "many sounds are being prepared at the moment; try again in a few seconds"
            return JSONResponse({"error": sentence, "reason": refusal.TOO_MANY}, 503, {"Retry-After": "5"})

    @routes.api_route("/compare/audio", methods=["GET", "HEAD"])
    async def audio(request: Request, system: str, where: str, item: str, part: int = 0, beside: str = "") -> Response:
        site.limit(request, "300/minute")
        return await answer_in_turn(request, send_copy, system, where, item, part, beside)

    @routes.get("/compare/peaks")
    async def peaks(request: Request, system: str, where: str, item: str, part: int = 0, beside: str = "") -> Response:
        site.limit(request, "120/minute")
        return await answer_in_turn(request, send_peaks, system, where, item, part, beside)

    return routes


def _outputs(
    shelf: ScoreCache, system: str, where: str, item: str, part: int, beside: str
) -> tuple[str, int, str | None]:
    """The path of an output, the part of it, and the path of the output that it is brought to one loudness with."""

    def output(of: str) -> str:
        entry = shelf.scores(of, where).items.get(item)
        return entry.output if entry else ""

    return output(system), part, (output(beside) or None) if beside else None


def _first_heard(comparison: SystemComparison) -> Shared | None:
    """The first item that both left an output of, else that one did."""
    ranked = sorted(comparison.items, key=lambda item: -sum(map(bool, item.outputs)))
    return ranked[0] if ranked else None


def _values(comparison: SystemComparison, texts: dict[str, Any]) -> list[tuple[str, list[dict[str, str]]]]:
    """Rows of values by dimension."""
    by_dimension: dict[str, list[dict[str, str]]] = {}
    for pair in comparison.pairs:
        by_dimension.setdefault(dimension_title(pair.column.dimension, texts["language"]), []).append(
            _value(pair, texts)
        )
    return list(by_dimension.items())


def _value(pair: Pair, texts: dict[str, Any]) -> dict[str, str]:
    values = pair.values
    places_ = decimals(values)
    both = []
    for row, value in zip((pair.a, pair.b), values, strict=True):
        both.append(
            value_text(value, number_or_none(row["low"]), number_or_none(row["high"]), places_) if row else MISSING
        )
    difference, count = MISSING, ""
    if pair.beside is not None:
        interval = pair.beside.difference
        difference = signed_text(interval.mean, places_)
        if interval.low is not None and interval.high is not None:
            difference += f" [{signed_text(interval.low, places_)}, {signed_text(interval.high, places_)}]"
        count = str(interval.n)
    word = pair.to_b.word
    verdict = texts["stands"][word] if word else ""
    if word and not pair.to_b.sure:
        verdict = texts["unsure"].format(verdict)
    winner = {"better": "a", "worse": "b"}.get(word, "") if pair.to_b.sure else ""
    return {
        "header": pair.column.header_in(texts["language"]), "protocol": pair.protocol, "a": both[0], "b": both[1],
        "difference": difference, "count": count, "said": verdict, "winner": winner,
    }  # fmt: skip


def _item(item: Shared, column: Column | None, texts: dict[str, Any]) -> dict[str, str]:
    row = {"id": item.id, "title": item.title, "category": item.category, "a": "", "b": "", "difference": ""}
    if column is None:
        return row
    a, b = item.values(column)
    places_ = decimals((a, b))
    difference = item.difference(column)
    readings = item.readings.get(column.metric, (None, None))
    cells = [_cell(reading, column.key, places_, texts) for reading in readings]
    return row | {
        "a": cells[0], "b": cells[1], "difference": "" if difference is None else signed_text(difference, places_)
    }  # fmt: skip


def _cell(reading: Reading | None, key: str, places_: int, texts: dict[str, Any]) -> str:
    if reading is None:
        return MISSING
    if reading.reason:
        return str(texts["unscored"])
    value = reading.values.get(key)
    return value_text(value, None, None, places_) if value is not None else MISSING


def _scores(item: Shared, comparison: SystemComparison, texts: dict[str, Any]) -> list[dict[str, Any]]:
    """Every score of one item, side by side; what is unscored with its reason and cause."""
    rows: list[dict[str, Any]] = []
    for pair in comparison.pairs:
        column = pair.column
        readings = item.readings.get(column.metric)
        if readings is None:
            continue
        values = item.values(column)
        places_ = decimals(values)
        difference = item.difference(column)
        rows.append(
            {
                "header": column.header_in(texts["language"]),
                "cells": [_cell_or_reason(reading, column.key, places_, texts) for reading in readings],
                "difference": "" if difference is None else signed_text(difference, places_),
            }
        )
    return rows


def _cell_or_reason(reading: Reading | None, key: str, places_: int, texts: dict[str, Any]) -> str:
    if reading is None or not reading.reason:
        return _cell(reading, key, places_, texts)
    return f"{texts['unscored_by'][reading.cause]}: {translate_reason(reading.reason, texts['reasons'])}"
