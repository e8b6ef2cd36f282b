"""webMUSHRA's files are read as they are, and ours are what it would have written."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from podeval.errors import BadInput
from podeval.human import webmushra
from podeval.human.box_plots import box_plots
from podeval.stats.marks import Mark
from podeval.stats.screening import screen

CONFIGURATION = """
testname: Small test
testId: small_test
pages:
    - type: generic
      id: first
    - type: mushra
      id: trial_Arts
      reference: audio/reference/Arts.wav
      createAnchor35: false
      stimuli: {HQ_Arts: audio/HQ/Arts.wav, LQ_Arts: audio/LQ/Arts.wav, our_tts_Arts: a.wav, other_Arts: b.wav}
    -
      - random
      - type: mushra
        id: trial_True_Crime
        reference: audio/reference/TC.wav
        createAnchor35: true
        stimuli: {HQ_True_Crime: h.wav, LQ_True_Crime: l.wav, our_tts_True_Crime: a.wav, other_True_Crime: b.wav}
    - type: paired_comparison
      id: pair
    - type: likert_single_stimulus
      id: System1
      stimuli: {Social_aria: one.wav, Social_basso: two.wav}
    - {type: finish, name: Thank you}
"""
RESULTS = """session_test_id,username,gender,Age,session_uuid,trial_id,rating_stimulus,rating_score,\
rating_time/ms,rating_comment
small,ann,female,20-40,u-1,trial_Arts,HQ_Arts,100,1944,
small,ann,female,20-40,u-1,trial_Arts,our_tts_Arts,55.5,1944,"fine, but thin"
small,ann,female,20-40,u-1,trial_1,C1,100,1944,
small,ann,female,20-40,u-1,trial_1,anchor35,0,1944,
"""
SHARED = Path("/work/shared/data/podeval/subjective")
with_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real files of PodEval's listening tests are not here")


def test_a_configuration_becomes_a_design_a_kind(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(CONFIGURATION, encoding="utf-8")
    found = webmushra.read_configuration(path)
    mushra, questionnaire = found.designs
    assert (mushra.kind, mushra.id, mushra.systems) == ("mushra", "small_test-mushra", ("our_tts", "other"))
    assert [item.id for item in mushra.items] == ["Arts", "True_Crime"]
    assert mushra.item("Arts").high.audio == "audio/HQ/Arts.wav"
    assert mushra.item("Arts").reference.audio == "audio/reference/Arts.wav"
    assert (questionnaire.kind, questionnaire.systems) == ("questionnaire", ("aria", "basso"))
    assert questionnaire.items[0].id == "Social"
    assert any("3.5 kHz" in note for note in found.notes)
    assert any("paired_comparison" in note for note in found.notes)


def test_results_are_read_with_their_systems(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(RESULTS, encoding="utf-8")
    marks = webmushra.read_results(path)
    assert marks[0] == Mark("u-1", "Arts", "HQ", 100.0, seconds=1.944)
    assert (marks[1].stimulus, marks[1].value, marks[1].comment) == ("our_tts", 55.5, "fine, but thin")
    assert [(mark.page, mark.stimulus) for mark in marks[2:]] == [("1", "C1"), ("1", "anchor35")]


def test_what_we_write_is_read_back_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    marks = [
        Mark("=cmd()", "Arts", "HQ", 90, seconds=12.5),
        Mark("=cmd()", "Arts", "aria", 33.25, seconds=12.5, comment='a\nb,"c"'),
        Mark("b", "Arts", "HQ", 80),
        Mark("b", "Arts", "aria", 0),
    ]
    path = tmp_path / "ours.csv"
    path.write_text(webmushra.results("small", marks), encoding="utf-8")
    assert path.read_text().splitlines()[0] == ",".join(webmushra.COLUMNS)
    again = webmushra.read_results(path)
    assert again[0].rater == "'=cmd()"
    assert [(m.page, m.stimulus, m.value, m.seconds, m.comment) for m in again] == [
        (m.page, m.stimulus, m.value, m.seconds, m.comment) for m in marks
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b\n1,2\n", "lacks session_uuid"),
        (RESULTS.replace("55.5", "155"), "line 3: a mark is a number from 0 to 100"),
        (RESULTS.replace("55.5", "fine"), "not 'fine'"),
        ("", "lacks any line"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=sentence):
        webmushra.read_results(path)
    for text, told in (
        ("pages: 3", "no list of pages"),
        ("pages: [{type: generic}]", "no page of type"),
        ("[", "YAML"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=told):
            webmushra.read_configuration(path)


@with_shared
def test_podevals_own_configurations_are_read() -> None:
    dialogue = webmushra.read_configuration(SHARED / "configs" / "dialogue.yaml").designs[0]
    assert dialogue.systems == ("mooncast", "podagent", "mossttsd", "notebooklm")
    assert len(dialogue.items) == 17
    assert all(item.high and item.low and item.reference for item in dialogue.items)
    questionnaire = webmushra.read_configuration(SHARED / "configs" / "questionnaire.yaml").designs[0]
    assert sorted(questionnaire.systems) == ["mossttsd", "notebooklm", "podagent", "realpod"]
    for name in ("default", "questionnaire_prior"):
        assert webmushra.read_configuration(SHARED / "configs" / f"{name}.yaml").designs


@with_shared
def test_the_published_results_are_read_and_written_back_alike(tmp_path: Path) -> None:
    path = next((SHARED / "results" / "default_example").glob("*.csv"))
    marks = webmushra.read_results(path)
    assert len(marks) == 8
    assert {mark.stimulus for mark in marks} == {"anchor35", "anchor70", "C1", "C2", "C3"}
    assert {mark.page for mark in marks} == {"trial1", "random_1"}
    ours = tmp_path / "ours.csv"
    ours.write_text(webmushra.results("default_example", marks), encoding="utf-8")
    assert ours.read_text().splitlines()[0] == path.read_text().splitlines()[0]
    assert webmushra.read_results(ours) == marks


def test_the_picture_has_a_panel_a_listener_and_says_who_is_left_out() -> None:
    marks = [
        Mark(rater, str(page), stimulus, value)
        for rater, values in (("good <one>", {"HQ": 90, "LQ": 1, "x": 50}), ("flat", {"HQ": 50, "LQ": 50, "x": 50}))
        for page in range(4)
        for stimulus, value in values.items()
    ]
    marks += [
        Mark("odd", str(page), name, value) for page in range(4) for name, value in (("HQ", 1), ("LQ", 9), ("x", 5))
    ]
    picture = box_plots(marks, screen(marks))
    root = ElementTree.fromstring(picture)
    said = "".join(root.itertext())
    assert "good <one>" in said
    assert "odd (left out)" in said
    assert "worst on 0.0%" in said
    assert len([e for e in root.iter() if e.tag.endswith("rect")]) == 1 + 9
