import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

import pytest
from sqlalchemy import select

from podeval.arena import ArenaRefused, Ballot
from podeval.arena.ranking import Rankings
from podeval.store.secret import Secret
from podeval.store.tables import Battle, Vote
from tests.fakes.databases import ON_SQLITE, SERVER_LONG, Make


def votes(small: Any) -> list[Vote]:
    with small.database.reading() as session:
        return list(session.scalars(select(Vote).order_by(Vote.number)))


def refusal(small: Any, voter: str, ballot: Ballot) -> str:
    before = len(votes(small))
    with pytest.raises(ArenaRefused) as caught:
        small.arena.vote(voter, ballot)
    assert len(votes(small)) == before
    assert str(caught.value)
    return caught.value.reason


@pytest.fixture
def small(small_arena: Make) -> Any:
    return small_arena()


@pytest.mark.parametrize(
    ("database_place", "outcome"),
    [
        *(("sqlite", outcome) for outcome in ("a", "b", "tie", "both_bad", "skip")),
        *(("postgresql", outcome) for outcome in ("a", "skip")),
        *(pytest.param("postgresql", outcome, marks=pytest.mark.long) for outcome in ("b", "tie", "both_bad")),
    ],
    indirect=["database_place"],
)
def test_every_outcome_is_recorded_with_what_was_heard(small: Any, outcome: str) -> None:
    battle = small.serve("alice")
    done = small.vote("alice", outcome, battle=battle, comment="clearer", seconds_a=21.5, seconds_b=30.0)
    (vote,) = votes(small)
    assert (vote.id, vote.outcome, vote.number) == (done.vote, outcome, done.number)
    assert (vote.heard_a, vote.heard_b, vote.seconds_a, vote.seconds_b) == (1.0, 1.0, 21.5, 30.0)
    assert (vote.comment, vote.elapsed, vote.recorded_at) == ("clearer", 60.0, small.clock.now)
    with small.database.reading() as session:
        row = session.get_one(Battle, vote.battle)
        assert (row.dimension, row.voter, row.pairing) == (battle.dimension, "alice", "closest")


@SERVER_LONG
def test_a_skip_names_the_systems_only_to_who_listened(small_arena: Make) -> None:
    small = small_arena(systems=6, items=1, gold_share=0.0)
    rankings = Rankings(small.arena)

    def told(done: Any, again: Ballot) -> tuple[bool, bool, bool]:
        """By the acknowledgement, by that of the same ballot again, and by what is revealed."""
        repeated = small.arena.vote("alice", again)
        assert repeated == done
        return done.system_a is not None, done.system_b is not None, rankings.reveal("alice", done.vote) is not None

    def skipped(battle: Any, **heard: Any) -> tuple[bool, bool, bool]:
        ballot = small.ballot(battle, "skip", **heard)
        return told(small.arena.vote("alice", ballot), ballot)

    side_by_side = [small.serve("alice") for _ in range(5)]
    assert skipped(side_by_side[0]) == (False,) * 3, "at once, whatever a player claims"
    small.clock.on(60)
    assert skipped(side_by_side[1], played_a=[]) == (False,) * 3, "one side was not heard"
    assert skipped(side_by_side[2]) == (False,) * 3, "one after another"
    small.clock.on(60)
    assert skipped(side_by_side[3]) == (True,) * 3
    ballot = small.ballot(side_by_side[4], "tie")
    small.clock.on(60)
    assert told(small.arena.vote("alice", ballot), ballot) == (True,) * 3


@ON_SQLITE
def test_what_is_served_tells_nothing_of_the_systems(small_arena: Make) -> None:
    small = small_arena(systems=6)
    shown = str(asdict(small.serve("alice")))
    assert "System" not in shown
    assert ".wav" not in shown
    words = set(re.split(r"\W+", re.sub(r"'[0-9a-f]{32}\.[^']*'", "", shown)))
    assert not words & {f"s{number}" for number in range(6)}, "random names aside"


@ON_SQLITE
def test_the_audio_behind_an_opaque_name_is_that_sides(small_arena: Make) -> None:
    small = small_arena(seconds=100.0, excerpt_seconds=30.0)
    battle = small.serve("alice")
    a, b = small.sides(battle)
    whole_name = small.arena.sounds.name(battle.token.partition(".")[0], "b", "whole")
    excerpt, whole = small.arena.sounds.find(battle.a.audio), small.arena.sounds.find(whole_name)
    assert f"/{a}/" in excerpt.path
    assert f"/{b}/" in whole.path
    assert excerpt.end - excerpt.start == pytest.approx(30.0) == battle.a.seconds
    assert (whole.start, whole.end) == (0.0, 100.0)
    for forged in (battle.a.audio.replace("excerpt", "whole"), battle.token, "", "a.b.c", "é" * 5):
        with pytest.raises(ArenaRefused, match="not the name"):
            small.arena.sounds.find(forged)
    small.clock.on(86_400)
    with pytest.raises(ArenaRefused, match="over"):
        small.arena.sounds.find(battle.a.audio)


def test_the_same_ballot_again_is_the_same_acknowledgement(small: Any) -> None:
    ballot = small.ballot(small.listen("alice"), "b")
    first = small.arena.vote("alice", ballot)
    small.clock.on(10_000)
    assert small.arena.vote("alice", ballot) == first
    assert small.arena.vote("alice", replace(ballot, outcome="a")) == first, "what was recorded stands"
    assert len(votes(small)) == 1


def test_posts_at_the_same_moment_are_one_vote(small: Any) -> None:
    ballot = small.ballot(small.listen("alice"))
    with ThreadPoolExecutor(6) as threads:
        done = list(threads.map(small.arena.vote, ["alice"] * 6, [ballot] * 6))
    assert all(one == done[0] for one in done)
    assert len(votes(small)) == 1


def test_a_battle_is_judged_once(small: Any) -> None:
    battle = small.serve("alice")
    small.vote("alice", battle=battle)
    assert refusal(small, "alice", small.ballot(battle, "b")) == "replayed"
    with pytest.raises(ArenaRefused) as caught:
        small.arena.show(battle.token, "alice")
    assert caught.value.reason == "replayed"


def test_an_id_of_another_vote_is_refused(small: Any) -> None:
    small.vote("alice", id="the-same-id")
    battle = small.listen("bob")
    assert refusal(small, "bob", small.ballot(battle, id="the-same-id")) == "replayed"


@SERVER_LONG
def test_forged_foreign_and_lapsed_tokens_are_refused(small: Any) -> None:
    battle = small.listen("alice")
    last = battle.token[-1]
    for token in (
        "",
        "x",
        "." * 9,
        "0" * 600,
        battle.token[:-1] + ("A" if last != "A" else "B"),
        battle.a.audio,
        "é.é",
        Secret(b"the secret of somebody else altogether").sign("battle", battle.token.partition(".")[0]),
    ):
        assert refusal(small, "alice", small.ballot(battle, token=token)) == "forged"
    assert refusal(small, "mallory", small.ballot(battle)) == "foreign"
    with pytest.raises(ArenaRefused, match="another voter"):
        small.arena.show(battle.token, "mallory")
    small.clock.on(3600)
    assert refusal(small, "alice", small.ballot(battle)) == "expired"


IMPOSSIBLE: list[dict[str, Any]] = [
    {"outcome": "c"},
    {"outcome": None},
    {"preference": "huge"},
    {"preference": "slight", "outcome": "tie"},
    {"id": "short"},
    {"id": "white space!"},
    {"id": 7},
    {"seconds_a": -1.0},
    {"seconds_b": float("nan")},
    {"seconds_a": 1e9},
    {"seconds_a": True},
    {"comment": 5},
    {"played_a": [(0.0, float("inf"))]},
    {"played_a": [(5.0, 1.0)]},
    {"played_b": [(0.0, 500.0)]},
    {"played_b": [(0.0,)]},
    {"played_b": ["ab"]},
    {"played_a": [(0.0, 20.0)] * 6000},
]


@ON_SQLITE
def test_what_cannot_be_is_refused(small: Any) -> None:
    battle = small.listen("alice")
    reasons = [refusal(small, "alice", small.ballot(battle, **change)) for change in IMPOSSIBLE]
    assert [change for change, reason in zip(IMPOSSIBLE, reasons, strict=True) if reason != "invalid"] == []
    small.arena.vote("alice", small.ballot(battle))


@ON_SQLITE
def test_what_has_to_be_heard_has_to_be_heard(small: Any) -> None:
    battle = small.listen("alice")
    assert refusal(small, "alice", small.ballot(battle, played_b=[(0, 9), (5, 9), (0, 3)])) == "not heard"
    assert refusal(small, "alice", small.ballot(battle, played_a=[])) == "not heard"
    small.arena.vote("alice", small.ballot(battle, played_b=[(9, 20), (0, 9.5)]))
    skipped = small.serve("alice")
    small.arena.vote("alice", small.ballot(skipped, "skip", played_a=[], played_b=[]))


@ON_SQLITE
def test_nobody_hears_forty_seconds_in_ten(small: Any) -> None:
    """0.9 of two times 20 s at double speed takes 18 s, whatever a player claims."""
    battle = small.serve("alice", protocol="whole")
    small.clock.on(17.9)
    assert refusal(small, "alice", small.ballot(battle)) == "too soon"
    small.clock.on(0.2)
    small.arena.vote("alice", small.ballot(battle))


@SERVER_LONG
def test_battles_opened_side_by_side_are_heard_one_after_another(small_arena: Make) -> None:
    small = small_arena(systems=6, items=1, gold_share=0.0)
    four = [small.serve("alice") for _ in range(4)]
    small.clock.on(20)
    small.arena.vote("alice", small.ballot(four[0]))
    small.clock.on(0.07)
    for battle in four[1:]:
        assert refusal(small, "alice", small.ballot(battle)) == "too soon"
    small.arena.vote("alice", small.ballot(four[1], "skip"))
    small.clock.on(18)
    small.arena.vote("alice", small.ballot(four[2]))
    assert refusal(small, "alice", small.ballot(four[3])) == "too soon"
    assert [vote.elapsed for vote in votes(small)][-1] == pytest.approx(38.07), "from serving, as before"
    other = small.serve("bob")
    small.clock.on(18)
    small.arena.vote("bob", small.ballot(other))
    small.arena.vote("alice", small.ballot(four[3]))
    assert [vote.outcome for vote in votes(small)] == ["a", "skip", "a", "a", "a"]


@ON_SQLITE
def test_a_comment_is_asked_for_where_it_is_set(small_arena: Make) -> None:
    small = small_arena(comment_required=True)
    battle = small.listen("alice")
    for empty in ("", " \n\t ", "\x00\x07\u200b"):
        assert refusal(small, "alice", small.ballot(battle, comment=empty)) == "no comment"
    small.arena.vote("alice", small.ballot(battle, comment="warmer"))


def test_ten_kilobytes_of_controls_and_markup_become_text(small: Any) -> None:
    comment = "\x00\x1b[31m<script>alert(1)</script>\u202egnp.exe\ud800\r\nsecond line\u2028 " + "好" * 10_000
    done = small.vote("alice", comment=comment)
    kept = votes(small)[0].comment
    assert done.comment_cut
    assert votes(small)[0].comment_cut
    assert len(kept) == 2000
    assert kept.startswith("[31m<script>alert(1)</script>gnp.exe?\nsecond line")
    assert not any(character in kept for character in "\x00\x1b\u202e\r\ud800")
    battle = small.listen("alice")
    assert refusal(small, "alice", small.ballot(battle, comment="x" * 200_000)) == "invalid"


def test_no_vote_where_it_would_be_lost(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    battle = small.listen("alice")
    monkeypatch.setenv("SPACE_ID", "podeval/leaderboard")
    if small.database.is_sqlite:
        assert refusal(small, "alice", small.ballot(battle)) == "closed"
        with pytest.raises(ArenaRefused, match="DATABASE_URL"):
            small.serve("alice")
    else:
        small.arena.vote("alice", small.ballot(battle))


def test_votes_are_numbered_in_the_order_in_which_they_were_recorded(small_arena: Make) -> None:
    small = small_arena(systems=6)
    done = [small.vote(f"voter{number % 3}").number for number in range(9)]
    assert done == sorted(done)
    assert list(small.arena.battles()["number"]) == done
