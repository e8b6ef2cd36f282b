"""The listening test of the docs from end to end: real recordings, listeners who are made, and what they show.

Made listeners hear that a room and a quick pace are worse, one in six marks at random, and one has no headphones.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml
from typer.testing import CliRunner

from podeval.cli import app
from podeval.listening import Listening, headphones
from podeval.listening.headphones import INTERVALS, NEEDED, TRIAL_NAMES
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.store.tables import ListeningSession
from studies import validity_test_kit as kit

LIKED = {"plain": 4.4, "opus": 4.0, "fast": 2.6, "room": 1.6}


def take(database: Database, service: Listening, who: str, random: np.random.Generator) -> None:
    """Take one listener through the test."""
    begun = service.start("validity", who)
    with database.reading() as session:
        row = session.get_one(ListeningSession, begun.session)
        rights, pages = headphones.find_right_answers(row.seed), row.pages
    right = NEEDED - 2 if who == "loudspeakers" else len(TRIAL_NAMES)
    answers = {
        name: r if n < right else r % INTERVALS + 1 for n, (name, r) in enumerate(zip(TRIAL_NAMES, rights, strict=True))
    }
    service.save(begun.session, 0, answers)
    for number in range(1, begun.pages):
        (letter,) = service.show(begun.session, number).stimuli
        condition = pages[number]["stimuli"][0].rpartition("-")[2]
        liked = random.uniform(1, 5) if who.startswith("careless") else LIKED[condition] + random.normal(0, 0.5)
        mark = int(np.clip(round(liked), 1, 5))
        service.save(begun.session, number, {kit.SCALE: mark}, seconds=30, heard_shares={letter: 1.0})
    service.finish(begun.session)


def podeval(*arguments: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.long
def test_the_test_is_made_taken_and_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    path = kit.make(tmp_path, ("espeak_ng",), 3, {})
    design = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert len(design["items"]) == 6
    assert design["systems"] == [f"espeak_ng-{name}" for name in sorted(kit.CONDITIONS)]
    excerpt = tmp_path / design["items"][0]["stimuli"]["espeak_ng-plain"]["audio"]
    assert soundfile.info(excerpt).duration == pytest.approx(kit.SECONDS, abs=0.1)
    assert "minutes" in podeval("listening", "check", path)
    place = tmp_path / "listening.db"
    assert podeval("listening", "add", path, "--database", place) == "validity\n"
    random = np.random.default_rng(0)
    with Database(place) as database:
        service = Listening(database, secret=Secret(b"a secret of the tests, and of none else"))
        for number in range(12):
            who = "loudspeakers" if number == 11 else f"careless{number}" if number in (3, 7) else f"p{number}"
            take(database, service, who, random)
    answers = tmp_path / "answers.csv"
    answers.write_text(podeval("listening", "export", "validity", "--form", "csv", "--database", place), "utf-8")
    assert len({row["listener"] for row in csv.DictReader(answers.open(encoding="utf-8"))}) == 12
    marks = kit.read_marks(answers)
    assert len({mark.rater for mark in marks}) == 11, "who failed the headphone check does not count"
    rows = {
        f"{row.metric}.{row.key}": row for row in kit.analyse(tmp_path, answers, ("reverb_consistency", "loudness"))
    }
    assert rows, "the excerpts are measured"
    assert {row.systems.count for row in rows.values()} == {4}
    assert all(row.srcc.value is None or -1 <= row.srcc.value <= 1 for row in rows.values())
