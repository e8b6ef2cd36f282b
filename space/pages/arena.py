"""The arena's pages: a blind comparison and a vote, and the result of all votes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import audio_routes
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import Field, Strict, StrictFloat
from rate_limit import ThreadPool
from request_guard import find_origin
from website import CurrentSite, FromPage, limit, write_system_address

from pages.board import stream_csv
from podeval.arena import Ballot, BattleView, refusal
from podeval.arena.ranking import RevealedBattle
from podeval.arena.ratings import POOLED, Standings
from podeval.arena.voter_stats import BOARD_FROM, Personal, Personals
from podeval.plots.charts import IntervalRow, draw_intervals
from podeval.plots.svg import Frame, shorten

if TYPE_CHECKING:
    from podeval.arena.ranking import Ranking


AT_ONCE = 6
"""Number of threads for all voters. These threads mostly wait for the database, so additional threads would not finish
the work sooner.
"""
in_turn = ThreadPool(AT_ONCE)
routes = APIRouter(tags=["arena"])
routes.include_router(audio_routes.routes)
LONGEST_QUESTION = 160
"""Maximum number of letters of a question that is shown as a heading; a longer question is a whole page of rules."""


class Wish(FromPage):
    """The dimension that a voter wants to judge; by default, any dimension, and excerpts if there are any."""

    protocol: str | None = None
    dimension: str | None = None


_Stretch = Annotated[tuple[StrictFloat, StrictFloat], Strict(False)]
"""The start and end of a passage, in seconds, as a list."""


class BallotSent(FromPage):
    """A ballot as sent by a page or program; `podeval.arena.Ballot` defines its content."""

    id: str
    token: str
    outcome: str
    preference: str = ""
    comment: str = ""
    played_a: list[_Stretch] = Field([])
    played_b: list[_Stretch] = Field([])
    seconds_a: float = 0.0
    seconds_b: float = 0.0


def _voter(request: Request, site: CurrentSite) -> str:
    person = site.require_person(request)
    return site.services.arena.voter(person.identity, person.name)


@routes.get("/arena/offer", include_in_schema=False, dependencies=[limit("120/minute")])
@in_turn
def offer(request: Request, site: CurrentSite) -> JSONResponse:
    """Return the tab's content for this person: its texts, and the dimensions to judge or why none is offered."""
    texts, closed = _texts(request, site), site.services.closed
    offered = {} if closed else site.services.arena.dimensions_by_protocol()
    state, sentence = "open", ""
    if closed:
        state, sentence = refusal.CLOSED, site.translate(request, closed)
    elif not offered:
        state, sentence = refusal.NOTHING_YET, f"{texts['nothing_yet_how']} podeval arena add RUNS"
    elif site.person(request) is None:
        state, sentence = "not signed in", texts["sign_in_text"]
    choices = [
        {
            "title": texts["protocols"][protocol],
            "choices": [
                *([(texts["script"]["chance"], {"protocol": protocol})] if len(names) > 1 else []),
                *((texts["names"].get(name, name), {"protocol": protocol, "dimension": name}) for name in names),
            ],
        }
        for protocol, names in offered.items()
    ]
    words = {"texts": texts["script"], "refused": texts["refused"], "sign_in": site.say_sign_in(request)}
    return JSONResponse(words | {"state": state, "sentence": sentence, "offered": choices})


def _texts(request: Request, site: CurrentSite) -> dict[str, Any]:
    texts: dict[str, Any] = site.texts[site.language(request)]["arena"]
    return texts


def _show(request: Request, site: CurrentSite, view: BattleView) -> JSONResponse:
    """Return a battle as data, with the question in the page's words; a long question is collapsed with its task."""
    language = site.language(request)
    texts = site.texts[language]
    names = {name.replace("_", " "): word for name, word in texts["board"]["groups"].items()}
    names |= texts["arena"]["names"]
    translated = texts["arena"]["questions"].get(view.instructions)
    short = 0 < len(view.instructions) <= LONGEST_QUESTION
    task = {
        "question": translated or (view.instructions if short else texts["arena"]["question"]),
        "language": view.language if short and not translated else language,
        "judged_on": [names.get(name, name) for name in (view.dimension, view.capability) if name],
        "instructions": "" if short else view.instructions,
    }
    return JSONResponse(_battle(view) | {"asked": task})


@routes.post("/arena/battles", dependencies=[limit("30/minute")])
@in_turn
def battle(request: Request, site: CurrentSite, wish: Wish) -> JSONResponse:
    """Start a new battle for the caller: two outputs, blind."""
    view = site.services.arena.serve(
        _voter(request, site), protocol=wish.protocol or None, dimension=wish.dimension or None
    )
    return _show(request, site, view)


@routes.get("/arena/battles/{token}", dependencies=[limit("60/minute")])
@in_turn
def again(request: Request, site: CurrentSite, token: str) -> JSONResponse:
    """Return an open battle to its voter again."""
    return _show(request, site, site.services.arena.show(token, _voter(request, site)))


@routes.post("/arena/votes", dependencies=[limit("60/minute")])
@in_turn
def vote(request: Request, site: CurrentSite, sent: BallotSent) -> JSONResponse:
    """Record a vote. The response is sent once the vote is on disk; sending the same vote again gets the same
    response.
    """
    who = _voter(request, site)
    ballot = Ballot(**sent.model_dump(), origin=site.services.arena.origin(find_origin(request)))
    done = site.services.arena.vote(who, ballot)
    return JSONResponse(asdict(done) | {"recorded_at": done.recorded_at.isoformat()})


@routes.get("/arena/votes/{vote}/reveal", dependencies=[limit("60/minute")])
@in_turn
def reveal(request: Request, site: CurrentSite, vote: str) -> JSONResponse:
    """Reveal the systems of a battle that the caller judged, with their current ratings; null if the arena does
    not reveal them.
    """
    reveal = site.services.rankings.reveal(_voter(request, site), vote)
    return JSONResponse(None if reveal is None else asdict(reveal))


@routes.get("/arena/votes/{vote}/revealed", include_in_schema=False, dependencies=[limit("60/minute")])
@in_turn
def revealed(request: Request, site: CurrentSite, vote: str) -> JSONResponse:
    """Return the revealed battle in the page's words: the systems, and the results of all votes and of the caller's."""
    who, texts = _voter(request, site), _texts(request, site)
    reveal, mine = site.services.rankings.reveal(who, vote), Personals(site.services.database).of(who)
    content: dict[str, Any] = {"standing": texts["not_told"]}
    if reveal is not None:
        on_board = set(site.results.board()["system"])
        content = {"standing": _describe_standing(reveal, texts)}
        for name, side in (("a", reveal.a), ("b", reveal.b)):
            content[name] = {
                "title": side.title,
                "about": "" if side.kind == "system" else f"({texts[side.kind]})",
                "page": write_system_address(side.system) if side.system in on_board else "",
                "audio": side.audio,
                "whole": side.whole,
            }
    rows = [texts["own_row"].format(row.title, f"{row.wins:g}", row.battles) for row in mine.board]
    return JSONResponse(content | {"mine": _describe_own(mine, texts, reveals=reveal is not None), "board": rows})


@routes.get("/arena/me", dependencies=[limit("60/minute")])
@in_turn
def me(request: Request, site: CurrentSite) -> JSONResponse:
    """Return how many battles the caller judged, and how often other voters agree."""
    return JSONResponse(asdict(Personals(site.services.database).of(_voter(request, site))))


@routes.get("/arena/ratings", include_in_schema=False, dependencies=[limit("60/minute")])
def ratings(request: Request, site: CurrentSite, dimension: str = "", protocol: str = "") -> HTMLResponse:
    """Show the ratings of one dimension, and the votes on which they are based."""
    ranking, arena = site.services.rankings.current(), site.services.arena
    by = protocol if protocol in ranking.protocols else next(iter(ranking.protocols), "")
    parts = ranking.protocols.get(by, {})
    chosen = dimension if dimension in parts else next(iter(parts), None)
    texts = site.texts[site.language(request)]["arena"]
    board = site.results.board()
    return site.render(
        request, "arena_ratings.html", ranking=ranking, protocol=by, chosen=chosen, pooled=POOLED,
        goal=arena.votes_goal(), pages={name: write_system_address(name) for name in set(board["system"])},
        shown=_ranking_content(ranking, parts[chosen], texts) if chosen else None,
    )  # fmt: skip


@routes.get("/arena/ratings.json", dependencies=[limit("60/minute")])
def ratings_json(site: CurrentSite) -> Response:
    """The rankings by public votes, on excerpts and on whole recordings, and by the battles that each judge decided:
    ratings with 95 % intervals and ranks, or what a provisional system lacks (`provisional`), and the groups of votes
    that count for less (`lowered`).
    """
    return Response(site.services.rankings.current().encoded, media_type="application/json")


@routes.get("/arena/ratings.csv", response_class=Response, dependencies=[limit("60/minute")])
def ratings_csv(request: Request, site: CurrentSite) -> Response:
    """The same rankings as a table."""
    return stream_csv(request, site.services.rankings.current().table(), "podeval-arena-ratings.csv", mark="")


def _describe_standing(battle: RevealedBattle, texts: dict[str, Any]) -> str:
    """Describe how this vote changes the tally of the two systems, and the standing of the systems, if it is already
    known.
    """
    sides = [(side.title, side.rating) for side in (battle.a, battle.b)]
    tally = texts["pair_tally"].format(battle.a.title, battle.b.title, *battle.between) if battle.between else ""
    if any(rating is None or rating.low is None for _, rating in sides):
        return " ".join(filter(None, (tally, texts["standing_later"])))
    sentences = [tally] if tally else []
    sentences += [
        texts["rating_of"].format(
            title=title, rating=f"{row.rating:.0f}", low=f"{row.low:.0f}", high=f"{row.high:.0f}", ranks=_ranks(row)
        )
        for title, row in sides
        if row is not None
    ]
    if battle.apart:
        sentences.append(texts["apart"])
    elif battle.votes_needed is not None:
        sentences.append(texts["apart_in"].format(battle.votes_needed))
    return " ".join(sentences)


def _describe_own(mine: Personal, texts: dict[str, Any], reveals: bool) -> str:
    """Describe the voter's number of battles, agreement with others, and votes still needed for a personal board."""
    share = f"{100 * mine.agreed / mine.compared:.0f}" if mine.compared else ""
    sentences = [
        texts["judged"].format(count=mine.judged),
        texts["agreed"].format(agreed=mine.agreed, compared=mine.compared, share=share)
        if mine.compared
        else texts["agreed_none"],
    ]
    if mine.board:
        sentences.append(texts["own_board_about"])
    elif reveals and mine.judged < BOARD_FROM:
        sentences.append(texts["own_board_in"].format(BOARD_FROM - mine.judged))
    return " ".join(sentences)


def _battle(view: BattleView) -> dict[str, Any]:
    """Return a battle for a browser, with the remaining time, because the browser's clock may be wrong."""
    left = (view.expires_at - datetime.now(UTC)).total_seconds()
    plain = asdict(view) | {"seconds_left": max(0.0, left)}
    return plain | {"served_at": view.served_at.isoformat(), "expires_at": view.expires_at.isoformat()}


def _ranking_content(ranking: Ranking, part: Standings, texts: dict[str, Any]) -> dict[str, Any]:
    """Return the template's data for one dimension: the plot, the rows, the matrix, and the undecided pairs."""
    entries = [(ranking.systems[row.system], row) for row in part.ratings.systems]
    ranked = [(about, row) for about, row in entries if row.provisional is None]
    drawn = [
        IntervalRow(
            shorten(about.title, 36),
            row.rating,
            row.low,
            row.high,
            _ranks(row),
            "control" if about.kind == "control" else "ranked",
        )
        for about, row in ranked or entries
    ]
    return {
        "part": part,
        "rows": [
            {
                "known": about,
                "row": row,
                "ranks": _ranks(row),
                "by_strength": part.by_strength.get(row.system) if part.by_strength else None,
            }
            for about, row in entries
        ],
        "plot": Markup(draw_intervals(drawn, Frame(texts["plot"], css_class="ladder"))),
        "matrix": _matrix(part),
        "undecided": [
            (ranking.systems[pair.better].title, ranking.systems[pair.worse].title, pair.votes)
            for pair in part.undecided
        ],
        "islands": [[ranking.systems[system].title for system in group] for group in part.ratings.islands],
    }


def _matrix(part: Standings) -> list[list[dict[str, Any] | None]]:
    """Return a cell for each pair of systems, best first: share won, battles, and shade (0 to 8); None if the two never
    met.
    """
    positions = [part.tally.systems.index(row.system) for row in part.ratings.systems]
    shares, battles = part.tally.shares, part.tally.battles
    return [
        [
            None
            if i == j or not battles[i, j]
            else {"share": float(shares[i, j]), "battles": int(battles[i, j]), "shade": round(8 * float(shares[i, j]))}
            for j in positions
        ]
        for i in positions
    ]


def _ranks(row: Any) -> str:
    if row.best is None:
        return "–"
    return f"{row.best}" if row.best == row.worst else f"{row.best}–{row.worst}"
