"""A system's page: its description, its standing among other systems, and every item to play and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import player_data
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from player_data import PlayerSide, list_leading_systems
from website import CurrentSite, Site, change_address, limit, to_script_data, write_system_address

from podeval.arena import ArenaRefused, refusal
from podeval.board import item_results
from podeval.board.columns import choose_decimals, format_signed, get_column
from podeval.board.compare import list_sides
from podeval.board.exports import report_page
from podeval.board.item_results import MOST_KEYS, draw_timeline
from podeval.board.report import Chapter, SystemReport, describe_system, list_places, read_chapter
from podeval.errors import BadInput
from podeval.measuring.verdict import ReportWords
from podeval.metrics.score import Defect, Timeline
from podeval.recording.defects import TimedDefect
from podeval.text.subtitles import format_moment

routes = APIRouter(include_in_schema=False)
routes.get("/report/{name:path}")(lambda name: RedirectResponse(write_system_address(name)))

MOST = 60
"""Maximum number of defects that a page lists; if there are more, it lists the worst."""

AROUND = 1.0
"""Number of seconds before and after a defect that are played with the defect."""

LONGEST = 15.0
"""Maximum length of a snippet in seconds."""

_SEVERITIES = ("high", "medium", "low")


@routes.get("/system", dependencies=[limit("120/minute")])
def page(
    request: Request,
    site: CurrentSite,
    system: str = "",
    where: str = "",
    item: str = "",
    slice: str = "",
    part: int = 0,
) -> HTMLResponse:
    """Show a system among the other systems, and one item to play and read."""
    board = site.results.board()
    all_texts = site.texts[site.language(request)]
    texts = all_texts["report"]
    systems = list_sides(board) if len(board) else []
    system = system or next(iter(list_leading_systems(site.results, 1)), "")
    if not (systems and system):
        return site.render(request, "system.html", systems=systems, one=None, deck=None)
    description, places, chapter = _read_chapter(site, board, system, where, slice, texts["no_place"])
    items = {item.id: item for item in chapter.items}
    if item and item not in items:
        raise ArenaRefused(refusal.UNKNOWN, all_texts["compare"]["no_item"])
    chosen = items[item] if item else _first(chapter)
    query = {"system": system, "where": chapter.where, "slice": slice}
    deck, reasons, readings = None, all_texts["board"]["causes"], list(chapter.readings.values())
    if chosen:
        players = [PlayerSide(system, description.title, chosen.output)]
        deck = player_data.build_deck(site.results, players, chapter.where, chosen.id, all_texts["compare"], part)
    return site.render(
        request,
        "system.html",
        systems=systems,
        one=description,
        kind=texts["kinds"].get(description.kind, description.kind),
        facts=report_page.build_facts(description, texts),
        method=report_page.explain_method(replace(description, chapters=(chapter,)), texts),
        chapter=report_page.ChapterPage(
            description.title, chapter, all_texts, lambda item: change_address("/system", query, item=item) + "#listen"
        ),
        where=chapter.where,
        places=places,
        slices=chapter.slices,
        slice=slice if slice in chapter.slices else "",
        lines=[(one, sum(one.id in of and bool(of[one.id].reason) for of in readings)) for one in chapter.items],
        item=chosen,
        of_item=_item(site.results.items(), system, chapter.where, chosen.id, deck, texts, reasons) if chosen else None,
        deck=deck,
        script_data=Markup(to_script_data(player_data.build_script_data(deck, all_texts["compare"]))),
    )


def _read_chapter(
    site: Site, board: pd.DataFrame, system: str, where: str, slice: str, no_place: str
) -> tuple[SystemReport, list[str], Chapter]:
    """Return a system's description, the places where it has results, and the chapter on one of these places."""
    try:
        description = describe_system(board, site.results.systems(), system)
    except BadInput as error:
        raise ArenaRefused(refusal.UNKNOWN, error.sentence) from None
    places = list_places(board, system)
    position = next((choice for choice in places if choice == where or choice.startswith(f"{where}/")), None)
    if where and position is None:
        raise ArenaRefused(refusal.UNKNOWN, no_place)
    return description, places, read_chapter(site.results, system, position or places[0], slice)


def _first(chapter: Chapter) -> Any:
    """Return the first item with an output, otherwise the first item."""
    return next((item for item in chapter.items if item.output), next(iter(chapter.items), None))


def _item(
    items: Any,
    system: str,
    where: str,
    item: str,
    deck: dict[str, Any] | None,
    texts: dict[str, Any],
    reasons: dict[str, Any],
) -> dict[str, Any]:
    """Return every score of an item, its defects, and its windowed values over time."""
    results, _ = item_results.find_item_results(items, system, where, item)
    defects = item_results.list_defects(results)
    # Times refer to a single recording; an output with several recordings has no such times.
    audio = deck["sides"][0]["audio"] if deck and deck["parts"] == 1 else ""
    return {
        "defects": None if defects is None else _list_defects(defects, audio, texts),
        "scores": item_results.list_scores(results, texts["language"], reasons),
        "heard": item_results.read_transcripts(results),
        "timelines": [
            _timeline(metric, track, texts) for metric, track in item_results.collect_timelines(results).items()
        ],
    }


def _timeline(metric: str, track: Timeline, texts: dict[str, Any]) -> dict[str, Any]:
    """Return a picture with its keys, and the drift of each key in words."""
    name = metric.partition(" (")[0]
    keys = list(track.values)[:MOST_KEYS]
    headers = [get_column(name, key, name).header_in(texts["language"]) for key in keys]
    title = texts["timeline_title"].format(metric=metric, window=f"{track.window:g} {track.unit}")
    drift = track.drift
    slopes = []
    for key, header in zip(keys, headers, strict=True):
        trend = drift.get(key)
        # A slope whose interval contains zero is not evidence of a trend.
        if trend and (trend["ci95"][0] > 0 or trend["ci95"][1] < 0):
            places = choose_decimals([trend["slope"]])
            low, high = (format_signed(end, places) for end in trend["ci95"])
            per = texts["per"].get(drift["per"], drift["per"])
            slopes.append(f"{header}: {format_signed(trend['slope'], places)} [{low}, {high}] / {per}")
    return {"title": title, "keys": headers, "slopes": slopes, "picture": Markup(draw_timeline(track, title, headers))}


def _list_defects(defects: Sequence[TimedDefect], audio: str, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows in chronological order, and the number of omitted defects.

    Args:
        defects: the defects of the item.
        audio: address of its recording; empty if there is none to play.
        texts: the texts of the page `report`.
    """
    worst = sorted(defects, key=lambda defect: _SEVERITIES.index(defect.severity))[:MOST]
    rows = [_describe(defect, audio, texts) for defect in sorted(worst, key=lambda defect: defect.start)]
    return {"rows": rows, "left": len(defects) - len(rows)}


def _describe(defect: TimedDefect, audio: str, texts: Mapping[str, Any]) -> dict[str, str]:
    start = max(0.0, defect.start - AROUND)
    end = min(defect.end + AROUND, start + LONGEST)
    noted = Defect(defect.kind.replace("_", " "), defect.start, defect.end, defect.heard)
    kind, detail = ReportWords(texts["language"]).defect(noted)
    return {
        "kind": kind,
        "start": format_moment(defect.start),
        "end": format_moment(defect.end),
        "script": defect.script,
        "heard": detail,
        "severity": texts["severities"][defect.severity],
        # With a time range in the fragment of the address, the browser plays, and fetches, only that part.
        "sound": f"{audio}#t={start:.2f},{end:.2f}" if audio else "",
    }
