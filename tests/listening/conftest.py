"""A small listening test of each kind, on a database of the tests, with a clock that is set by hand."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podeval.listening import Listening
from podeval.listening.designs import Design, read_design
from podeval.listening.questionnaire import QUESTIONNAIRE
from podeval.store.database import Database
from podeval.store.secret import Secret

KINDS = ("mushra", "questionnaire", "rubric", "mos", "preference", "text_preference", "abx")
ON_A_SERVER = ("mushra", "questionnaire")
"""One of marks, one of answers."""
EVERY_KIND = pytest.mark.parametrize(
    ("database_place", "kind"),
    [
        *(("sqlite", kind) for kind in KINDS),
        *(("postgresql", kind) for kind in ON_A_SERVER),
        *(pytest.param("postgresql", kind, marks=pytest.mark.long) for kind in KINDS if kind not in ON_A_SERVER),
    ],
    indirect=["database_place"],
)
SECRET = Secret(b"a secret of the tests, and of none else")


def design(kind: str = "mushra", *, items: int | list[dict[str, Any]] = 4, systems: int = 3, **changes: Any) -> Design:
    names = [f"s{n}" for n in range(systems)]
    clip = {"text": "read me"} if kind == "text_preference" else {"audio": "x.wav", "seconds": 10}
    if kind == "questionnaire":
        clip |= {"speakers": 2, "music": False}
    extra = {"reference": clip, "high": clip, "low": clip} if kind == "mushra" else {}
    extra |= {"criteria": ["It answers.", "It is clear."]} if kind == "rubric" else {}
    content = {
        "kind": kind,
        "id": f"a_{kind}",
        "title": kind,
        "systems": names,
        "items": [{"id": f"i{n}", "stimuli": dict.fromkeys(names, clip), **extra} for n in range(items)]
        if isinstance(items, int)
        else items,
        "scales": ["timbre", "fidelity"] if kind == "mos" else [],
        **changes,
    }
    return read_design(content)


def begin(listening: Listening, test: Design, who: str = "prolific:1") -> Any:
    """Take a test in and have a listener start it; how far they are."""
    listening.create(test)
    return listening.start(test.id, who)


def answer(kind: str, shown: Any, value: float = 3) -> dict[str, Any]:
    """A good answer to a page: every mark `value`."""
    match kind:
        case "mushra":
            return dict.fromkeys(shown.stimuli, value)
        case "mos":
            return {"timbre": value, "fidelity": value}
        case "rubric":
            return {"criterion_1": 1, "criterion_2": 0, "rationale": "it rambles"}
        case "questionnaire":
            marked = {q.name: {"mark": value, "reason": f"as for {q.name}"} for q in QUESTIONNAIRE if q.reason}
            return {"speakers": {"mark": 2}, **marked}
        case "abx":
            return {"abx": 1}
        case _:
            return {"preference": 1}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 22, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def listening(database_place: str, empty_store: Path) -> Iterator[Listening]:
    if database_place.endswith(".db"):
        shutil.copy(empty_store, database_place)
    with Database(database_place) as database:
        yield Listening(database, secret=SECRET, clock=Clock())


@pytest.fixture
def heard(listening: Listening) -> Callable[..., str]:
    """Take one listener through a test; the session's name."""

    def hear(test: Design, who: str, marks: Callable[[str, str], float] = lambda item, system: 3) -> str:
        begun = listening.start(test.id, who)
        for number in range(begun.pages):
            shown = listening.show(begun.session, number)
            given = answer(test.kind, shown)
            if test.kind == "mushra":
                with listening.database.reading() as session:
                    from podeval.store.tables import ListeningSession

                    page = session.get_one(ListeningSession, begun.session).pages[number]
                given = {
                    letter: marks(page["item"], name)
                    for letter, name in zip(shown.stimuli, page["stimuli"], strict=True)
                }
            listening.save(begun.session, number, given, seconds=20)
        listening.finish(begun.session)
        return begun.session

    return hear
