"""The arena's pages: a blind comparison and a vote, and what all votes imply."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import audio_routes
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from links import system_address
from markupsafe import Markup
from part_routes import PartRoute
from pydantic import BaseModel, ConfigDict
from thread_limits import ThreadPool
from website import Site, as_script_data

from podeval.arena import Acknowledgement, Ballot, BattleView
from podeval.arena.ranking import Rankings
from podeval.arena.rating_plots import Dot, ladder
from podeval.arena.ratings import POOLED, Standings
from podeval.arena.voter_stats import BOARD_FROM, Personals
from podeval.leaderboard.table import csv_safe

if TYPE_CHECKING:
    from podeval.arena.ranking import Ranking


AT_ONCE = 6
"""Threads of all who vote. They wait for the database most of the time, so that more would not be sooner done."""


class Wish(BaseModel):
    """What a voter wants to judge; any dimension by default, of excerpts where there are any."""

    model_config = ConfigDict(extra="forbid")
    protocol: str | None = None
    dimension: str | None = None


class BallotSent(BaseModel):
    """A ballot as a page or program sends it; `podeval.arena.Ballot` says what is in it."""

    model_config = ConfigDict(extra="forbid")
    id: str
    token: str
    outcome: str
    preference: str = ""
    comment: str = ""
    played_a: list[tuple[float, float]] = []
    played_b: list[tuple[float, float]] = []
    seconds_a: float = 0.0
    seconds_b: float = 0.0


def router(site: Site) -> APIRouter:
    """The routes of the arena and of its sounds."""
    routes, parts = APIRouter(tags=["arena"]), APIRouter(route_class=PartRoute)
    routes.include_router(audio_routes.router(site))
    arena = site.services.arena
    rankings, personals = Rankings(arena), Personals(arena)
    in_turn = ThreadPool(AT_ONCE)

    def voter(request: Request) -> str:
        person = site.require_person(request)
        return arena.voter(person.identity, person.name)

    @parts.get("/arena", include_in_schema=False)
    def battle_part(request: Request) -> HTMLResponse:
        texts = site.texts[site.language(request)]["arena"]
        script = {"texts": texts["script"], "refused": texts["refused"]}
        return site.render(
            request, "arena.html", offered=arena.dimensions_by_protocol(), script_data=Markup(as_script_data(script))
        )  # fmt: skip

    def show(request: Request, view: BattleView) -> JSONResponse:
        """A battle as data, and what is asked as a page shows it."""
        texts = site.texts[site.language(request)]
        names = {name.replace("_", " "): word for name, word in texts["board"]["groups"].items()}
        names |= texts["arena"]["names"]
        task = site.render_text(request, "arena_task.html", view=view, names=names)
        return JSONResponse(_battle(view) | {"task": task})

    @routes.post("/arena/battles")
    @in_turn
    def battle(request: Request, wish: Wish) -> JSONResponse:
        """A new battle for who asks: two outputs, blind."""
        site.limit(request, "30/minute")
        view = arena.serve(voter(request), protocol=wish.protocol or None, dimension=wish.dimension or None)
        return show(request, view)

    @routes.get("/arena/battles/{token}")
    @in_turn
    def again(request: Request, token: str) -> JSONResponse:
        """A battle again while it is open, for whom it was made."""
        site.limit(request, "60/minute")
        return show(request, arena.show(token, voter(request)))

    @routes.post("/arena/votes")
    @in_turn
    def vote(request: Request, sent: BallotSent) -> JSONResponse:
        """Record a vote; the answer comes when it is on the disk, and is the same for a vote sent again."""
        site.limit(request, "60/minute")
        who = voter(request)
        ballot = Ballot(**sent.model_dump(), origin=arena.origin(site.origin(request)))
        return JSONResponse(_acknowledgement(arena.vote(who, ballot)))

    @routes.get("/arena/votes/{vote}/reveal")
    @in_turn
    def reveal(request: Request, vote: str) -> JSONResponse:
        """Who was who in a battle that one judged, with the ratings by now; null where the arena does not tell."""
        site.limit(request, "60/minute")
        reveal = rankings.reveal(voter(request), vote)
        return JSONResponse(None if reveal is None else asdict(reveal))

    @parts.get("/arena/votes/{vote}/revealed")
    @in_turn
    def revealed(request: Request, vote: str) -> HTMLResponse:
        """The same for people, with both recordings to be heard again and the board of one's own votes."""
        site.limit(request, "60/minute")
        who = voter(request)
        reveal = rankings.reveal(who, vote)
        on_board = set(site.results.board()["system"]) if reveal is not None else set()
        return site.render(
            request, "arena_revealed.html", told=reveal, mine=personals.of(who), board_from=BOARD_FROM,
            pages={side.system: system_address(side.system) for side in (reveal.a, reveal.b) if side.system in on_board}
            if reveal is not None else {},
        )  # fmt: skip

    @routes.get("/arena/me")
    @in_turn
    def me(request: Request) -> JSONResponse:
        """How much one judged, and how often the other voters see it the same way."""
        site.limit(request, "60/minute")
        return JSONResponse(asdict(personals.of(voter(request))))

    @routes.get("/arena/ratings", include_in_schema=False)
    def ratings(request: Request, dimension: str = "", protocol: str = "") -> HTMLResponse:
        site.limit(request, "60/minute")
        ranking = rankings.current()
        by = protocol if protocol in ranking.protocols else next(iter(ranking.protocols), "")
        parts = ranking.protocols.get(by, {})
        chosen = dimension if dimension in parts else next(iter(parts), None)
        texts = site.texts[site.language(request)]["arena"]
        board = site.results.board()
        return site.render(
            request, "arena_ratings.html", ranking=ranking, protocol=by, chosen=chosen, pooled=POOLED,
            goal=arena.votes_goal(), pages={name: system_address(name) for name in set(board["system"])},
            shown=_ranking_content(ranking, parts[chosen], texts) if chosen else None,
        )  # fmt: skip

    @routes.get("/arena/ratings.json")
    def ratings_json(request: Request) -> JSONResponse:
        """The rankings by public votes, on excerpts and on whole recordings: ratings with 95 % intervals and ranks."""
        site.limit(request, "60/minute")
        return JSONResponse(rankings.current().document())

    @routes.get("/arena/ratings.csv", response_class=Response)
    def ratings_csv(request: Request) -> Response:
        """The same as a table."""
        site.limit(request, "60/minute")
        content = csv_safe(rankings.current().table()).to_csv(index=False)
        headers = {"Content-Disposition": 'attachment; filename="podeval-arena-ratings.csv"'}
        return Response(content, media_type="text/csv; charset=utf-8", headers=headers)

    routes.include_router(parts)
    return routes


def _battle(view: BattleView) -> dict[str, Any]:
    """A battle for a browser, whose clock may be wrong: the time left, not the time it ends."""
    left = (view.expires_at - datetime.now(UTC)).total_seconds()
    plain = asdict(view) | {"seconds_left": max(0.0, left)}
    return plain | {"served_at": view.served_at.isoformat(), "expires_at": view.expires_at.isoformat()}


def _acknowledgement(done: Acknowledgement) -> dict[str, Any]:
    return asdict(done) | {"recorded_at": done.recorded_at.isoformat()}


def _ranking_content(ranking: Ranking, part: Standings, texts: dict[str, Any]) -> dict[str, Any]:
    """What the template needs of one dimension: the plot, the rows, the matrix, and what is undecided."""
    entries = [(ranking.systems[row.system], row) for row in part.ratings.systems]
    dots = [Dot(about.title, row.rating, row.low, row.high, _ranks(row), about.kind) for about, row in entries]
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
        "plot": Markup(ladder(dots, texts["plot"])),
        "matrix": _matrix(part),
        "undecided": [
            (ranking.systems[pair.better].title, ranking.systems[pair.worse].title, pair.votes)
            for pair in part.undecided
        ],
        "islands": [[ranking.systems[system].title for system in group] for group in part.islands],
    }


def _matrix(part: Standings) -> list[list[dict[str, Any] | None]]:
    """Row against column, best first: share won, battles, and one of nine shades; None where they never met."""
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
    return f"{row.best}" if row.best == row.worst else f"{row.best}–{row.worst}"
