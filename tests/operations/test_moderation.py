"""What operators decide: every decision with its reason on the trail, on SQLite and PostgreSQL."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from podeval.arena import Arena, ArenaRefused
from podeval.arena.moderation import ArenaModeration, BoardModeration
from podeval.errors import BadInput
from podeval.files import write_json
from podeval.listening import Listening, session_results
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.store.secret import Secret
from podeval.store.submission_tables import SubmissionRow
from podeval.store.tables import ArenaOutput, Vote
from podeval.submissions import rules
from podeval.submissions.gate import Gate
from podeval.submissions.moderation import SubmissionModeration
from podeval.submissions.queue import Queue
from podeval.submissions.service import SubmissionService
from podeval.systems.submission import Submission

Make = Callable[..., Any]
ON_SQLITE = pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)

DESIGN = {
    "kind": "text_preference",
    "id": "words",
    "title": "Words",
    "systems": ["a", "b"],
    "items": [{"id": "i0", "stimuli": {"a": {"text": "One."}, "b": {"text": "Two."}}}],
    "listeners": 2,
}


class Board:
    """A small arena, a queue beside it, and what an operator of both can do."""

    def __init__(self, small: Any, folder: Path) -> None:
        self.small = small
        self.folder = folder
        self.rebuilt = 0
        self.queue = Queue(small.database, clock=small.clock)
        self.listening = Listening(
            small.database, secret=Secret(b"a secret of the tests, and of none else"), clock=small.clock
        )
        self.whole = BoardModeration(small.database, small.arena.changed, small.clock)
        self.arena = ArenaModeration(small.arena, small.clock)
        self.submissions = SubmissionModeration(
            self.queue, folder, self._rebuild, small.arena.changed, clock=small.clock
        )

    def _rebuild(self, board: Path) -> None:
        assert board == self.folder
        self.rebuilt += 1

    def trail(self) -> list[tuple[str, str, str, str]]:
        return [(row.action, row.subject, row.reason, row.made_by) for row in self.whole.trail()]

    def submitted(self, state: str = "queued") -> SubmissionRow:
        """A submission of outputs, brought to a state as gate and worker would; published with a run on the board."""
        row = self.queue.receive(DOCUMENT.model_dump(mode="json"), owner="alice")
        self.queue.move(row.id, "received", "checked", by="gate", pinned={"revision": "0" * 40})
        self.queue.move(row.id, "checked", "queued", by="gate")
        if state == "queued":
            return self.queue.get(row.id)
        claim = self.queue.claim("worker")
        assert claim
        assert claim.id == row.id
        if state == "failed":
            self.queue.advance(claim, "running", "failed", reason="it broke")
            return self.queue.get(row.id)
        self.queue.advance(claim, "running", "measured")
        self.publish(row.id)
        self.queue.advance(claim, "measured", "published")
        return self.queue.get(row.id)

    def publish(self, submission: str) -> RunFolder:
        run = RunFolder(self.folder, "real_pod", "demo", "tiny_voice")
        run.begin(
            RunPlan(
                benchmark="real_pod", split="demo", dataset="d", track="voice", system="tiny_voice",
                system_title="Tiny Voice", system_kind="model", generation={"submission": submission}, seed=0,
            )
        )  # fmt: skip
        write_json(run.outputs / "news-1.json", {"item": "news-1"})
        (run.outputs / "news-1.flac").write_bytes(b"fLaC")
        return run


DOCUMENT = Submission.model_validate({
    "schema_version": 1,
    "system": {
        "id": "tiny_voice", "name": "Tiny Voice", "description": "A voice for tests.", "licence": "Apache-2.0",
        "open": True, "languages": ["en"],
    },
    "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
    "source": {"kind": "outputs", "repo": "alice/outputs", "revision": "0" * 40},
})  # fmt: skip


@pytest.fixture
def board(small_arena: Make, tmp_path: Path) -> Board:
    return Board(small_arena(), tmp_path / "board")


def test_a_vote_is_left_out_and_taken_back_and_ratings_follow(board: Board) -> None:
    votes = [board.small.vote(f"voter{number}").vote for number in range(3)]
    board.arena.count_vote(votes[0], False, "a test of ours", "ada")
    assert set(board.small.arena.battles()["vote"]) == set(votes[1:])
    (flagged,) = board.whole.flagged_votes()
    vote = flagged.vote
    assert (vote.id, vote.standing_reason, vote.standing_by) == (votes[0], "a test of ours", "ada")
    assert vote.standing != "counted"
    assert flagged.a.startswith("System s"[:7])
    assert board.small.arena.sweep().restored == [], "rules do not overrule a person"
    board.arena.count_vote(votes[0], True, "it was none", "bob")
    assert set(board.small.arena.battles()["vote"]) == set(votes)
    assert board.trail() == [
        ("vote counted", votes[0], "it was none", "bob"),
        ("vote excluded", votes[0], "a test of ours", "ada"),
    ]
    with pytest.raises(BadInput, match="give a reason"):
        board.arena.count_vote(votes[0], False, "  ", "ada")
    with pytest.raises(BadInput, match="there is no vote nothing"):
        board.arena.count_vote("nothing", False, "why not", "ada")
    assert len(board.trail()) == 2, "what was refused is no decision"


@ON_SQLITE
def test_all_votes_of_one_voter_are_left_out_at_once(board: Board) -> None:
    for voter in ("many", "many", "many", "other"):
        board.small.vote(voter)
    assert board.arena.count_voter("many", False, "a machine", "ada") == 3
    assert list(board.small.arena.battles()["voter"]) == ["other"]
    assert [(flagged.vote.voter, flagged.others) for flagged in board.whole.flagged_votes()] == [("many", 0)] * 3
    assert board.arena.count_voter("many", True, "a person after all", "ada") == 3
    assert board.trail()[0] == ("voter counted", "many", "a person after all", "ada")


@ON_SQLITE
def test_a_listener_is_left_out_under_the_pseudonym(board: Board) -> None:
    from podeval.listening.designs import read_design

    board.listening.create(read_design(DESIGN))
    begun = board.listening.start("words", "prolific:somebody")
    (came,) = session_results.read_sessions(board.small.database, "words")
    board.listening.count_session("words", came.listener, False, "asleep", "ada")
    ((flagged, _),) = board.whole.flagged_sessions()
    assert (flagged.test, flagged.listener, flagged.standing_reason) == ("words", came.listener, "asleep")
    assert flagged.standing != "counted"
    assert board.trail() == [("session excluded", f"words: {came.listener}", "asleep", "ada")]
    assert begun.session not in str(board.trail()), "the session's id is the listener's key"


def test_frozen_votes_and_submissions_are_refused_with_the_sentence_until_thawed(board: Board) -> None:
    battle = board.small.serve("voter")
    board.whole.freeze("votes", "We move to a new server until 14:00 UTC.", "ada")
    for attempt in (lambda: board.small.serve("voter"), lambda: board.small.vote("voter", battle=battle)):
        with pytest.raises(ArenaRefused, match="until 14:00 UTC") as refused:
            attempt()
        assert refused.value.reason == "closed"
    board.whole.thaw("votes", "moved", "ada")
    assert board.small.vote("voter", battle=battle).vote

    desk = SubmissionService(board.queue, Gate(api=None))  # type: ignore[arg-type]
    board.whole.freeze("submissions", "The disk is full.", "ada")
    with pytest.raises(rules.SubmissionRefused, match="The disk is full") as closed:
        desk.submit(DOCUMENT)
    assert closed.value.rule == "open"
    assert board.queue.all() == []
    with pytest.raises(BadInput, match="cannot be frozen"):
        board.whole.freeze("everything", "no", "ada")
    assert [action for action, *_ in board.trail()] == ["frozen", "thawed", "frozen"]


@ON_SQLITE
def test_another_server_of_the_database_refuses_votes_within_a_second(board: Board) -> None:
    other = Arena(board.small.database)
    assert other.why_frozen() is None
    board.whole.freeze("votes", "We move.", "ada")
    time.sleep(1.1)
    assert other.why_frozen() == "no votes are accepted at the moment: We move."


@ON_SQLITE
def test_a_closed_dimension_gets_no_new_battles_and_its_votes_still_count(board: Board) -> None:
    board.arena.open_dimension("semantic", False, "enough votes", "ada")
    assert board.small.arena.dimensions_by_protocol()["whole"] == ["ambient"]
    assert {board.small.serve(f"voter{number}").dimension for number in range(6)} == {"ambient"}
    with pytest.raises(ArenaRefused, match="judged every comparison"):
        board.small.serve("somebody", dimension="semantic")
    board.arena.open_dimension("semantic", True, "a new system came", "ada")
    assert board.small.arena.dimensions_by_protocol()["whole"] == ["ambient", "semantic"]
    with pytest.raises(BadInput, match="no dimension is called 'nothing'"):
        board.arena.open_dimension("nothing", False, "x", "ada")


@ON_SQLITE
def test_a_system_out_of_the_pool_meets_nobody_new(board: Board) -> None:
    board.arena.pool_system("s0", False, "its weights were replaced", "ada")
    met = {system for number in range(12) for system in board.small.sides(board.small.serve(f"voter{number}"))}
    assert met == {"s1", "s2", "s3"}
    board.arena.set_goal(300, "as the paper has", "ada")
    pool = board.arena.pool()
    assert [(id, shown) for id, _, shown, _ in pool.systems] == [("s0", False), *((f"s{n}", True) for n in (1, 2, 3))]
    assert pool.goal == 300
    assert pool.dimensions == {"ambient": (True, 0), "semantic": (True, 0)}


def test_a_submission_is_cancelled_and_queued_again_with_who_and_why(board: Board) -> None:
    row = board.submitted()
    board.submissions.cancel(row.id, "the disk is full", "ada")
    assert board.queue.get(row.id).reason == "cancelled by operator: the disk is full"
    assert board.submissions.requeue(row.id, "there is space again", "ada").state == "queued"
    with pytest.raises(BadInput, match="only failed and cancelled"):
        board.submissions.requeue(row.id, "again", "ada")
    assert [action for action, *_ in board.trail()] == ["submission requeued", "submission cancelled"]


@ON_SQLITE
def test_a_withdrawn_submission_leaves_the_board_and_its_history_stays(board: Board) -> None:
    row = board.submitted("published")
    run = RunFolder(board.folder, "real_pod", "demo", "tiny_voice")
    board.submissions.withdraw(row.id, "its authors asked", "ada")
    assert not run.path.exists()
    (kept,) = (board.folder / ".superseded/real_pod/demo/tiny_voice").iterdir()
    assert (kept / "outputs/news-1.flac").exists()
    last = board.queue.history(row.id)[-1]
    assert (last.after, last.made_by, last.reason) == (
        "withdrawn",
        "operator",
        "withdrawn by operator: its authors asked",
    )
    assert board.rebuilt == 1
    with pytest.raises(BadInput, match="is now withdrawn, no longer published"):
        board.submissions.withdraw(row.id, "again", "ada")
    assert len(board.trail()) == 1

    run = board.publish(row.id)
    with board.small.database.writing() as session:
        heard = session.scalars(select(ArenaOutput).where(ArenaOutput.system == "s0")).first()
        heard.audio, output_id = str(run.outputs / "news-1.flac"), heard.id
    board.submissions.settle()
    with board.small.database.reading() as session:
        silenced = session.get_one(ArenaOutput, output_id)
        assert (silenced.audio, silenced.active) == ("", False), "no battle plays it any more"
    assert board.trail()[0][:3] == ("output retired", f"s0 on {silenced.item}", "its submission was withdrawn")
    assert not run.path.exists(), "killed between the decision and the board, it is taken off later"


@ON_SQLITE
@pytest.mark.parametrize("state", ["published", "queued", "failed"])
def test_what_is_taken_down_says_nothing_any_more_and_is_not_taken_again(board: Board, state: str) -> None:
    row = board.submitted(state)
    run = board.publish(row.id)
    with board.small.database.writing() as session:
        output = session.scalars(select(ArenaOutput).where(ArenaOutput.system == "s0")).first()
        output.audio, output_id = str(run.outputs / "news-1.flac"), output.id
    board.submissions.take_down(row.id, "it speaks with a stolen voice", "ada")
    left = [path for path in board.folder.rglob("*") if path.suffix == ".flac"]
    assert left == []
    assert board.queue.get(row.id).state == {"published": "withdrawn", "queued": "cancelled"}.get(state, "failed")
    assert board.trail() == [("submission taken down", row.id, "it speaks with a stolen voice", "ada")]
    with board.small.database.reading() as session:
        silenced = session.get_one(ArenaOutput, output_id)
        assert (silenced.audio, silenced.active) == ("", False)
    with pytest.raises(rules.SubmissionRefused, match="took the same content down: it speaks with a stolen voice"):
        board.queue.receive(DOCUMENT.model_dump(mode="json"), owner="mallory")
    if state != "published":
        with pytest.raises(BadInput, match="took the same content down"):
            board.submissions.requeue(row.id, "please", "bob")


@ON_SQLITE
def test_votes_on_what_was_taken_down_stay(board: Board) -> None:
    for number in range(4):
        board.small.vote(f"voter{number}")
    row = board.submitted("published")
    with board.small.database.writing() as session:
        for output in session.scalars(select(ArenaOutput)):
            output.audio = str(board.folder / "real_pod/demo/tiny_voice/outputs/news-1.flac")
    battle = board.small.serve("late")
    board.submissions.take_down(row.id, "stolen", "ada")
    assert len(board.small.arena.battles()) == 4
    with board.small.database.reading() as session:
        assert len(session.scalars(select(Vote)).all()) == 4
    with pytest.raises(ArenaRefused, match="was taken down"):
        board.small.arena.sounds.find(battle.a.audio)
