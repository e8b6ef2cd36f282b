"""`podeval listening` and `podeval report agreement` as an operator uses them."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile
import yaml

from podeval.listening import Listening
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.store.tables import ListeningSession


def design(folder: Path) -> Path:
    """A MUSHRA test of two systems on four items, as a file."""
    clip = {"audio": "x.wav", "seconds": 10}
    items = [
        {"id": f"i{n}", "reference": clip, "high": clip, "low": clip, "stimuli": {"aria": clip, "basso": clip}}
        for n in range(4)
    ]
    content = {"kind": "mushra", "id": "small", "title": "Small", "systems": ["aria", "basso"], "items": items}
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def write_tone(path: Path) -> None:
    soundfile.write(path, np.sin(np.arange(4_000) / 9) / 2, 8_000)


@pytest.fixture
def place(tmp_path: Path, podeval: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database in which three listeners finished the test, one of whom marked all alike, and one did not finish."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    place = tmp_path / "listening.db"
    added = podeval("listening", "add", design(tmp_path), "--database", place).out
    assert added.startswith("small: 4 pages for each listener\n  http://127.0.0.1:7860/listen/small?pid=NAME")
    marks = {"aria": 70, "basso": 40, "HQ": 95, "LQ": 2}
    with Database(place) as database:
        service = Listening(database, secret=Secret(b"a secret of the tests, and of none else"))
        for who in ("p1", "p2", "alike", "gone"):
            begun = service.start("small", who)
            for number in range(begun.pages):
                with database.reading() as session:
                    page = session.get_one(ListeningSession, begun.session).pages[number]
                letters = list(service.show(begun.session, number).stimuli)
                given = {
                    letter: 50 if who == "alike" else marks[name] + number
                    for letter, name in zip(letters, page["stimuli"], strict=True)
                }
                service.save(begun.session, number, given, seconds=30)
                if who == "gone":
                    break
            else:
                service.finish(begun.session)
    return place


def test_a_design_is_checked_with_its_duration(podeval: Any, tmp_path: Path) -> None:
    said = podeval("listening", "check", design(tmp_path))
    assert said.out.splitlines() == [
        "small: mushra, 2 systems, 4 items; 20 listeners with 4 items each, about 5 minutes",
        "  each listener rates 4 pages; each system gets 80 marks",
        "  scale: ITU-R BS.1534 (MUSHRA): 0 to 100 in bands of 20: Bad, Poor, Fair, Good, Excellent",
    ]
    assert podeval("listening", "check", tmp_path / "none.yaml").code == 2


def test_a_design_is_written_from_folders_whose_files_pair_by_name(
    podeval: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("aria", "basso", "people"):
        (tmp_path / folder).mkdir()
        for name in ("Arts.wav", "Law.wav"):
            write_tone(tmp_path / folder / name)
    new = ("listening", "new")
    said = podeval(*new, "mos", "--systems", "aria/", "basso/", "--out", "test.yaml").out.splitlines()
    assert said[0].startswith("test: mos, 2 systems, 2 items; 20 listeners")
    assert said[1:3] == [
        "  each listener rates 4 pages; each system gets 40 marks",
        "  scale ACR: Bad, Poor, Fair, Good, Excellent (1 to 5), as in ITU-T P.800 (absolute category rating)",
    ]
    text = Path("test.yaml").read_text()
    assert "test.yaml already exists" in podeval(*new, "mos", "aria", "basso", "--out", "test.yaml", code=2).err
    assert Path("test.yaml").read_text() == text
    Path("some.yaml").write_text(text.replace("each: all\n", ""))
    shorter = podeval("listening", "check", "some.yaml").out
    assert "each listener rates 2 of 4 recordings (with `each: all` in the design, all of them)" in shorter
    assert "each system gets 20 marks" in shorter
    assert "add --reference FOLDER" in podeval(*new, "mushra", "aria", "basso", "--out", "m.yaml", code=2).err
    podeval(*new, "mushra", "aria", "basso", "--reference", "people", "--out", "m.yaml", code=0)
    first = yaml.safe_load(Path("m.yaml").read_text())["items"][0]
    assert first["reference"] == {"audio": "people/Arts.wav"}
    assert first["stimuli"]["basso"] == {"audio": "basso/Arts.wav"}
    podeval(*new, "abx", "aria", "basso", "--out", "x.yaml", code=0)
    (tmp_path / "basso/Law.wav").rename(tmp_path / "basso/Lore.wav")
    refused = podeval(*new, "abx", "aria", "basso", "--out", "y.yaml", code=2).err
    assert "some have no partner: aria lacks Lore; basso lacks Law" in refused
    assert not Path("y.yaml").exists()


def test_webmushras_recordings_are_found_where_it_has_them_or_refused_by_name(
    podeval: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    (tmp_path / "configs/audio").mkdir(parents=True)
    content = {
        "testId": "dialogue",
        "pages": [
            {
                "type": "mushra",
                "id": "trial_Arts",
                "reference": "configs/audio/r.wav",
                "stimuli": {"aria_Arts": "configs/audio/a.wav", "basso_Arts": "configs/audio/b.wav"},
            }
        ],
    }
    path, place = tmp_path / "configs/dialogue.yaml", tmp_path / "listening.db"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    write_tone(tmp_path / "configs/audio/r.wav")
    write_tone(tmp_path / "configs/audio/a.wav")
    command = ("listening", "add", path, "--webmushra", "--database", place)
    assert "1 of 3 recordings are missing: configs/audio/b.wav" in podeval(*command, code=2).err
    assert not place.exists()
    write_tone(tmp_path / "configs/audio/b.wav")
    assert podeval(*command).out.startswith("dialogue: 1 page for each listener\n")
    with Database(place) as database:
        stimulus = Listening(database).design("dialogue").items[0].stimuli["aria"]
    assert (stimulus.audio, stimulus.seconds) == (str(tmp_path / "configs/audio/a.wav"), 0.5)


def test_two_questionnaires_never_become_one_and_answers_in_words_come_out(
    podeval: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    write_tone(tmp_path / "a.wav")
    place, paths = tmp_path / "listening.db", []
    for name, label in (("one", "How clear?"), ("two", "How loud?")):
        marked = {"type": "rate2", "rate": 2, "rate_labels": ["no", "yes"], "label": label}
        asked = [[marked], [{"type": "text", "label": "What did you hear?"}]]
        page = {"type": "likert_single_stimulus", "id": "S", "stimuli": {"S_aria": "a.wav"}, "response": asked}
        paths.append(tmp_path / f"{name}.yaml")
        paths[-1].write_text(yaml.safe_dump({"testId": "asked", "pages": [page]}), encoding="utf-8")
    first, second = (podeval("listening", "add", path, "--webmushra", "--database", place) for path in paths)
    assert first.out.startswith("asked: 1 page for each listener\n")
    assert (second.code, second.out) == (2, "")
    assert "a test asked with a different design exists" in second.err
    with Database(place) as database:
        service = Listening(database, secret=Secret(b"a secret of the tests, and of none else"))
        begun = service.start("asked", "p1")
        assert [q["text"] for q in service.show(begun.session, 0).questions] == ["How clear?", "What did you hear?"]
        service.save(begun.session, 0, {"q1": 2, "q2": {"reason": "a tone"}}, seconds=30)
        service.finish(begun.session)
    lines = [json.loads(line) for line in podeval("listening", "export", "asked", "--database", place).out.splitlines()]
    answers = [(line["question"], line["mark"], line["reason"]) for line in lines if "question" in line]
    assert answers == [("q1", 2, ""), ("q2", None, "a tone")]
    (row,) = map(json.loads, podeval("listening", "results", "asked", "--database", place, "--json").out.splitlines())
    assert (row["scale"], row["mean"]) == ("q1", 2.0)


def test_results_have_intervals_and_say_who_was_left_out(podeval: Any, place: Path, tmp_path: Path) -> None:
    said = podeval("listening", "list", "--database", place)
    assert said.out == "small: mushra, 3 of 20 listeners finished, 1 unfinished, 0 excluded by hand\n"
    picture = tmp_path / "listeners.svg"
    said = podeval("listening", "results", "small", "--database", place, "--json", "--plots", picture)
    rows = {row["stimulus"]: row for row in map(json.loads, said.out.splitlines())}
    assert rows["aria"]["mean"] == 71.5
    assert (rows["aria"]["listeners"], rows["aria"]["marks"]) == (2, 8)
    assert (rows["aria"]["best"], rows["aria"]["worst"]) == (1, 2), "two listeners of one mind are no evidence of more"
    assert rows["HQ"]["best"] is None
    assert "all but the low anchor have the same mark on 100.0% of 4 pages" in said.err
    assert "1 of 3 listeners were excluded by the screening: equal marks for all but the low anchor 1" in said.err
    assert (rows["aria"]["unscreened_listeners"], rows["aria"]["unscreened_marks"]) == (3, 12)
    assert rows["aria"]["unscreened_low"] < rows["aria"]["unscreened_mean"] < rows["aria"]["mean"]
    printed = podeval("listening", "results", "small", "--database", place).out
    assert f"; without screening {rows['aria']['unscreened_mean']:.2f} [" in printed
    assert "who did not (their marks do not count): 1" in said.err
    assert "Krippendorff's alpha 1.00" in said.err
    assert picture.read_text().startswith("<svg")


def test_marks_go_out_in_webmushras_layout_and_come_back(podeval: Any, place: Path, tmp_path: Path) -> None:
    out = podeval("listening", "export", "small", "--database", place, "--form", "webmushra").out
    path = tmp_path / "ours.csv"
    path.write_text(out, encoding="utf-8")
    again = [json.loads(line) for line in podeval("listening", "read", path).out.splitlines()]
    ours = [json.loads(line) for line in podeval("listening", "export", "small", "--database", place).out.splitlines()]
    assert len(again) == 3 * 4 * 4
    assert {(m["rater"], m["page"], m["stimulus"], m["value"]) for m in again} == {
        (m["rater"], m["page"], m["stimulus"], m["value"]) for m in ours
    }


def test_finished_sessions_show_how_raters_agree_also_without_runs(podeval: Any, place: Path, tmp_path: Path) -> None:
    said = podeval("report", "agreement", "--database", place, "--runs", tmp_path, "--json")
    raters = [json.loads(line) for line in said.out.splitlines()]
    assert {finding["analysis"] for finding in raters} == {"marks", "ceiling", "leave one out", "pairs of raters"}
    names = {finding["data"].get("rater") for finding in raters} - {None}
    assert len(names) == 3, "of the finished sessions, by pseudonym"
    assert "no runs" in said.err


def test_unknown_tests_and_forms_are_sentences(podeval: Any, place: Path) -> None:
    assert "no listening test 'nope'" in podeval("listening", "results", "nope", "--database", place).err
    said = podeval("listening", "export", "small", "--database", place, "--form", "xml").err
    assert "jsonl, csv, parquet or webmushra" in said
    assert "needs a file" in podeval("listening", "export", "small", "--database", place, "--form", "parquet").err


def test_a_tidy_table_is_one_row_a_mark_as_csv_and_as_parquet(podeval: Any, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "marks.parquet"
    podeval("listening", "export", "small", "--database", place, "--form", "parquet", "--out", file)
    table = pd.read_parquet(file)
    assert len(table) == 3 * 4 * 4
    assert str(table["saved_at"].dtype).startswith("datetime64")
    printed = pd.read_csv(
        io.StringIO(podeval("listening", "export", "small", "--database", place, "--form", "csv").out)
    )
    columns = ["listener", "page", "item", "stimulus", "mark", "counted"]
    pd.testing.assert_frame_equal(printed[columns], table[columns], check_dtype=False)


def test_an_operator_asks_whether_the_test_may_stop_and_how_many_listeners_it_needs(place: Path, podeval: Any) -> None:
    stopped = podeval("listening", "stop", "small", "--database", place)
    assert "aria minus basso: 30, 2 listeners: not told apart yet" in stopped.out, "who marked all alike is left out"
    assert stopped.out.endswith("Continue the test.\n")
    (verdict,) = map(json.loads, podeval("listening", "stop", "small", "--database", place, "--json").out.splitlines())
    assert (verdict["mean"], verdict["better"]) == (30, "")
    refused = podeval("listening", "plan", "small", "--difference", "5", "--database", place, code=2)
    assert "2 listeners heard both aria and basso, but a pilot needs three or more" in refused.err
