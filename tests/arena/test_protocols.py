"""Excerpts and whole recordings: what is heard, what a vote needs, and that their votes are never rated together."""

from typing import Any

import pytest
from sqlalchemy import select

from podeval.arena import ArenaRefused
from podeval.arena.ranking import Rankings
from podeval.arena.voter_stats import Personals
from podeval.store.tables import ArenaItem, ArenaOutput, Battle, Vote
from tests.fakes.databases import ON_SQLITE, Make


def newest(small: Any) -> tuple[Vote, Battle]:
    with small.database.reading() as session:
        vote = session.scalars(select(Vote).order_by(Vote.number.desc())).first()
        return vote, session.get_one(Battle, vote.battle)


def test_ten_seconds_of_each_excerpt_are_enough_and_are_kept_with_the_vote(small_arena: Make) -> None:
    small = small_arena(seconds=600.0)
    battle = small.serve("alice")
    assert (battle.protocol, battle.a.seconds, battle.a.needed) == ("excerpts", 30.0, 10.0)
    assert battle.b == type(battle.b)(battle.b.audio, 30.0, 10.0)
    small.clock.on(20)
    with pytest.raises(ArenaRefused, match="side B: 9 s of it were played, and 10 s are required"):
        small.arena.vote("alice", small.ballot(battle, played_b=[(3.0, 9.0), (20.0, 23.4)]))
    small.vote("alice", battle=battle, played_a=[(0.0, 12.5)], played_b=[(3.0, 9.0), (20.0, 24.0)], preference="slight")
    vote, row = newest(small)
    assert (vote.heard_seconds_a, vote.heard_seconds_b) == pytest.approx((12.5, 10.0))
    # An excerpt begins anywhere, so that the last digit is chance.
    assert vote.heard_a == pytest.approx(12.5 / 30)
    assert (vote.preference, row.protocol) == ("slight", "excerpts")
    (table,) = small.arena.battles().to_dict("records")
    assert (table["protocol"], table["preference"]) == ("excerpts", "slight")
    assert table["heard_seconds_a"] == pytest.approx(12.5)


def overall(parts: Any) -> Any:
    """The rating over all dimensions; chance may have asked for one alone, and then it is that one's."""
    return parts.get("pooled") or next(iter(parts.values()))


@ON_SQLITE
def test_whole_recordings_are_asked_for_to_nine_tenths_and_stay_open_long_enough(small_arena: Make) -> None:
    small = small_arena(seconds=1800.5, gold_share=0.0)
    battle = small.serve("alice", protocol="whole")
    assert (battle.rule, battle.a.seconds, battle.a.needed) == ("whole", 1801.0, pytest.approx(0.9 * 1801))
    assert (battle.expires_at - battle.served_at).total_seconds() % 3600 == 0, "its end tells no exact length"
    assert (battle.expires_at - battle.served_at).total_seconds() > 2 * 1801
    small.clock.on(1650)
    with pytest.raises(ArenaRefused, match="please listen to more of side A: 30 s"):
        small.arena.vote("alice", small.ballot(battle, played_a=[(0.0, 30.0)]))
    assert small.arena.vote("alice", small.ballot(battle)).number == 1


@ON_SQLITE
def test_sides_of_excerpts_are_equally_long_however_long_the_same_words_take(small_arena: Make) -> None:
    small = small_arena(systems=2, items=1)
    with small.database.writing() as session:
        for output in session.scalars(select(ArenaOutput)):
            pace = 14.2 if output.system == "s0" else 11.1
            output.seconds, output.turns = 3 * pace, [(pace * k, pace * (k + 1)) for k in range(3)]
    small.arena.changed()
    battle = small.serve("alice")
    sounds = [small.arena.sounds.find(side.audio) for side in (battle.a, battle.b)]
    assert sorted(sound.end - sound.start for sound in sounds) == pytest.approx([22.2, 28.4])
    assert {side.seconds for side in (battle.a, battle.b)} == {sound.seconds for sound in sounds} == {29.0}


@ON_SQLITE
def test_a_benchmark_of_dialogues_is_heard_whole_alone(small_arena: Make) -> None:
    small = small_arena(items=2)
    with small.database.writing() as session:
        session.get_one(ArenaItem, "i0").benchmark = "mtalk_bench"
    small.arena.changed()
    assert small.arena.dimensions_by_protocol() == {"excerpts": ["ambient"], "whole": ["ambient", "semantic"]}
    assert {small.serve("alice").dimension for _ in range(3)} == {"ambient"}, "excerpts where there are some"
    assert small.serve("bob", dimension="semantic").protocol == "whole"
    for protocol, reason in (("excerpts", "nothing left"), ("halves", "invalid")):
        with pytest.raises(ArenaRefused) as caught:
            small.serve("bob", protocol=protocol, dimension="semantic")
        assert caught.value.reason == reason


@ON_SQLITE
def test_votes_of_the_two_protocols_have_ratings_of_their_own(small_arena: Make) -> None:
    """On excerpts s0 always wins, on whole recordings it always loses."""
    small = small_arena(systems=2, items=8, gold_share=0.0)
    for number in range(8):
        protocol = ("excerpts", "whole")[number % 2]
        for voter in ("alice", "bob", "cleo"):
            small.prefer(voter, "s0" if protocol == "excerpts" else "s1", protocol=protocol)
    ranking = Rankings(small.arena, quick=1e9).current()
    best = {protocol: overall(parts).ratings.systems[0].system for protocol, parts in ranking.protocols.items()}
    assert best == {"excerpts": "s0", "whole": "s1"}
    assert [overall(parts).ratings.votes for parts in ranking.protocols.values()] == [12, 12]
    assert set(ranking.table()["protocol"]) == {"excerpts", "whole"}
    assert set(ranking.document()["protocols"]) == {"excerpts", "whole"}


@ON_SQLITE
def test_a_slight_preference_weighs_less_where_strength_is_counted_and_as_much_where_not(small_arena: Make) -> None:
    small = small_arena(systems=2, items=8, gold_share=0.0)

    def rated(preference: str, voters: tuple[str, ...]) -> Any:
        for voter in voters:
            for _ in range(4):
                small.prefer(voter, "s0", preference=preference)
        part = overall(Rankings(small.arena, quick=1e9).current().protocols["excerpts"])
        return part.ratings.get("s0").rating, part.by_strength.get("s0").rating if part.by_strength else None

    plain, by_strength = rated("clear", ("alice", "bob"))
    assert by_strength is None, "nobody called a preference slight"
    more, less = rated("slight", ("cleo", "dan"))
    assert plain < more
    assert 1000 < less < more - 50


@ON_SQLITE
def test_a_voter_has_a_board_of_their_own_from_five_votes_on(small_arena: Make) -> None:
    small = small_arena(systems=3, items=4, gold_share=0.0)
    personals = Personals(small.arena.database)
    for number in range(12):  # every pair on every item
        assert (len(personals.of("alice").board) > 0) == (number >= 5)
        battle = small.serve("alice")
        a, b = small.sides(battle)
        small.vote("alice", "a" if a < b else "b", battle=battle)
    board = personals.of("alice").board
    assert [row.system for row in board] == ["s0", "s1", "s2"], "the first of two always won"
    assert board[0].wins == board[0].battles
    assert sum(row.battles for row in board) == 24
    assert personals.of("bob").board == ()


@ON_SQLITE
def test_a_judged_battle_tells_who_was_who_what_to_hear_again_and_what_is_still_open(small_arena: Make) -> None:
    small = small_arena(systems=2, items=8, seconds=100.0, gold_share=0.0)
    rankings = Rankings(small.arena, share=1e9, quick=1e9)
    for voter in ("alice", "bob", "cleo"):
        for number in range(4):
            battle = small.serve(voter)
            first = small.sides(battle)[0] == "s0"
            done = small.vote(voter, "a" if first == (number > 0) else "b", battle=battle)
    told = rankings.reveal("cleo", done.vote)
    assert {told.a.system, told.b.system} == {"s0", "s1"}
    assert (told.a.system, told.a.audio) == (small.sides(battle)[0], battle.a.audio)
    assert small.arena.sounds.find(told.a.whole).seconds == 100.0
    assert told.apart or told.votes_needed is None or told.votes_needed > 0
    assert told.a.rating is not None
    assert told.protocol == "excerpts"
    skipped = small.arena.vote("dan", small.ballot(small.serve("dan"), "skip", played_a=[], played_b=[]))
    assert rankings.reveal("dan", skipped.vote) is None, "a skip without listening names nobody"


@ON_SQLITE
def test_votes_are_rated_by_how_much_was_heard(small_arena: Make) -> None:
    """Who hears little prefers s0, who hears more prefers s1."""
    small = small_arena(systems=2, items=6, seconds=100.0, gold_share=0.0)
    for voter, seconds, likes in (
        ("alice", 11.0, "s0"),
        ("bob", 12.0, "s0"),
        ("cleo", 30.0, "s1"),
        ("dan", 29.0, "s1"),
    ):
        for _ in range(3):
            small.prefer(voter, likes, played_a=[(0.0, seconds)], played_b=[(0.0, 30.0)])
    (part,) = Rankings(small.arena).current().heard
    assert [group.votes for group in part.groups] == [6, 0, 6]
    little, _, much = part.groups
    assert little.ratings["s0"].rating > 1000 > much.ratings["s0"].rating
    assert little.ratings["s0"].provisional == {
        "battles": {"missing": 4, "needed": 10}, "voters": {"missing": 3, "needed": 5}
    }  # fmt: skip
    assert set(part.systems) == {"s0", "s1"}
