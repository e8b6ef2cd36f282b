"""webMUSHRA's files are read as they are, and ours are what it would have written."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.listening import webmushra
from podeval.listening.designs import Design, measure_durations, read_design, resolve_recordings
from podeval.listening.listener_pages import make_pages, validate_answer
from podeval.listening.results import draw_listeners
from podeval.metrics.human_records import read_webmushra
from podeval.plots.svg import stack_pictures
from podeval.stats.mushra_scores import Mark, screen
from podeval.stats.questionnaire_scores import RATED, SPEAKERS
from tests.fakes.loopback_speech import wav

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


def rows_of(marks: list[Mark]) -> list[dict[str, Any]]:
    """The marks as a tidy table has them."""
    return [
        {"counted": True, "listener": mark.rater, "item": mark.page, "stimulus": mark.stimulus, "mark": mark.value}
        | {"seconds": mark.seconds, "reason": mark.comment}
        for mark in marks
    ]


def test_a_configuration_becomes_a_design_a_kind(tmp_path: Path) -> None:
    found = webmushra.read_configuration(configuration(tmp_path, CONFIGURATION))
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
    marks = read_webmushra(path)
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
    path.write_text(webmushra.tabulate("small", "mushra", rows_of(marks)), encoding="utf-8")
    assert path.read_text().splitlines()[0] == ",".join(webmushra.COLUMNS)
    again = read_webmushra(path)
    assert again[0].rater == "'=cmd()"
    assert [(m.page, m.stimulus, m.value, m.seconds, m.comment) for m in again] == [
        (m.page, m.stimulus, m.value, m.seconds, m.comment) for m in marks
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b\n1,2\n", "lacks session_uuid"),
        (RESULTS.replace("55.5", "155"), "line 3: a mark must be a number from 0 to 100"),
        (RESULTS.replace("55.5", "fine"), "not 'fine'"),
        ("", "lacks any line"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=sentence):
        read_webmushra(path)
    for text, told in (
        ("pages: 3", "no list of pages"),
        ("pages: [{type: generic}]", "no page of type"),
        ("[", "YAML"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match=told):
            webmushra.read_configuration(path)


QUESTIONNAIRE = """
testId: asked
pages:
  - type: likert_single_stimulus
    id: System1
    stimuli: {Social_aria: one.wav, Social_basso: two.wav}
    response:
"""
OWN = """
      - [{type: text, label: "How <b>many</b> voices?"}]
      - [{type: rate2, rate: 3, rate_labels: [Poor, Fair, Good], label: "How clear &amp; clean?"}]
      - [{type: text, label: "Why? (a few words)"}]
      - [{type: likert, response: [{label: "no"}, {label: "yes"}], label: "Would you listen on?"}]
      - [{type: option, optional: true, label: "Anything else?"}]
"""


def configuration(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "asked.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_questionnaire_keeps_its_own_questions(tmp_path: Path) -> None:
    found = webmushra.read_configuration(configuration(tmp_path, QUESTIONNAIRE + OWN))
    (design,) = found.designs
    assert [(q.name, q.text, q.labels, q.reason, q.optional) for q in design.questionnaire] == [
        ("q1", "How many voices?", (), False, True),
        ("q2", "How clear & clean?", ("Poor", "Fair", "Good"), True, False),
        ("q3", "Would you listen on?", ("no", "yes"), False, False),
        ("q4", "Anything else?", (), False, True),
    ]
    assert found.notes == ("'How many voices?' is answered in words; here, listeners may skip this question",)
    page = make_pages(design, 0, 0)[0]
    answer = {"q1": "two", "q2": {"mark": 3, "reason": "no noise"}, "q3": 2}
    given = validate_answer(design, page, answer)
    assert [(each.question, each.value, each.words) for each in given] == [
        ("q1", None, "two"), ("q2", 3.0, "no noise"), ("q3", 2.0, ""),
    ]  # fmt: skip
    for wrong, told in (({"q2": {"mark": 4}}, "from 1 to 3"), ({"q2": {"mark": 1}}, "say in a few words why")):
        with pytest.raises(BadInput, match=told):
            validate_answer(design, page, answer | wrong)
    other = webmushra.read_configuration(configuration(tmp_path, QUESTIONNAIRE + OWN.replace("Poor", "Bad")))
    assert other.designs[0].digest != design.digest


def test_webmushras_own_form_is_one_question_by_labels(tmp_path: Path) -> None:
    text = QUESTIONNAIRE.replace("id: System1", "id: System1\n    content: How good")
    text += "      - {value: bad, label: Bad, img: a.png}\n      - {value: good, label: Good, img: b.png}\n"
    (design,) = webmushra.read_configuration(configuration(tmp_path, text)).designs
    assert [(q.text, q.labels) for q in design.questions] == [("How good", ("Bad", "Good"))]


@pytest.mark.parametrize(
    "entry",
    [
        "{type: number, label: How many}",
        "{type: rate, label: How many}",
        "{type: rate, rate: 400, label: How many}",
        "{type: select, select_value: YES, label: How many}",
        "{type: select, label: How many}",
        "{type: rate2, rate: 5, rate_labels: [a, b], label: How many}",
        "{type: rate2, label: How many}",
        "{label: How many, type: ''}",
    ],
)
def test_what_a_page_cannot_ask_is_refused_by_its_name(tmp_path: Path, entry: str) -> None:
    with pytest.raises(BadInput, match="cannot ask: 'How many' of type"):
        webmushra.read_configuration(configuration(tmp_path, f"{QUESTIONNAIRE}{OWN}      - [{entry}]\n"))


def test_pages_that_ask_differently_and_pages_that_ask_nothing(tmp_path: Path) -> None:
    text = QUESTIONNAIRE + OWN + QUESTIONNAIRE.split("pages:")[1].replace("Social", "Arts").replace("System1", "S2")
    with pytest.raises(BadInput, match="ask different questions"):
        webmushra.read_configuration(configuration(tmp_path, text))
    found = webmushra.read_configuration(configuration(tmp_path, QUESTIONNAIRE))
    assert found.designs[0].questions == ()
    assert any("podeval's nine" in note for note in found.notes)


def test_a_design_without_questions_of_its_own_is_the_one_it_was() -> None:
    """Its digest is that of the version before there were any, so that answers go on being pooled."""
    clip = {"audio": "a.wav", "seconds": 1}
    content = {"kind": "questionnaire", "id": "q", "title": "Q", "systems": ["a"]}
    design = read_design(content | {"items": [{"id": "i", "stimuli": {"a": clip}}]})
    assert design.digest == "2f6a7362f4d5de43ff27dca4dbd0c6e70e4b64e28c871105af15e85c35bce519"


@with_shared
def test_podevals_own_configurations_are_read() -> None:
    dialogue = webmushra.read_configuration(SHARED / "configs" / "dialogue.yaml").designs[0]
    assert dialogue.systems == ("mooncast", "podagent", "mossttsd", "notebooklm")
    assert len(dialogue.items) == 17
    assert all(item.high and item.low and item.reference for item in dialogue.items)
    questionnaire = webmushra.read_configuration(SHARED / "configs" / "questionnaire.yaml").designs[0]
    assert sorted(questionnaire.systems) == ["mossttsd", "notebooklm", "podagent", "realpod"]
    assert [len(question.labels) for question in questionnaire.questions] == [0, 5, 5, 5, 5, 5, 5, 5, 0]
    assert [question.reason for question in questionnaire.questions] == [False, *[True] * 7, False]
    assert [question.name for question in questionnaire.questions] == [SPEAKERS, *RATED, "comment"]
    assert [len(question.labels) for question in questionnaire.demographics] == [3, 4, 5, 2, 2, 0, 0]
    assert webmushra.read_configuration(SHARED / "configs" / "default.yaml").designs
    pilot = webmushra.read_configuration(SHARED / "configs" / "questionnaire_prior.yaml")
    questions = pilot.designs[0].questions
    assert [len(question.labels) for question in questions] == [0, *[11] * 7, *[3] * 3, 0]
    assert [question.choice for question in questions] == [False] * 8 + [True] * 3 + [False]
    assert {question.name for question in questions}.isdisjoint(RATED), "its marks are of another scale"
    assert any("1 to 11" in note for note in pilot.notes)


@with_shared
def test_the_published_results_are_read_and_written_back_alike(tmp_path: Path) -> None:
    path = next((SHARED / "results" / "default_example").glob("*.csv"))
    marks = read_webmushra(path)
    assert len(marks) == 8
    assert {mark.stimulus for mark in marks} == {"anchor35", "anchor70", "C1", "C2", "C3"}
    assert {mark.page for mark in marks} == {"trial1", "random_1"}
    ours = tmp_path / "ours.csv"
    ours.write_text(webmushra.tabulate("default_example", "mushra", rows_of(marks)), encoding="utf-8")
    assert ours.read_text().splitlines()[0] == path.read_text().splitlines()[0]
    assert read_webmushra(ours) == marks


def test_the_picture_has_a_panel_a_listener_and_says_who_is_left_out() -> None:
    marks = [
        Mark(rater, str(page), stimulus, value)
        for rater, values in (
            ("good <one> of twenty-five", {"HQ": 90, "LQ": 1, "x": 50}),
            ("flat", {"HQ": 50, "LQ": 50, "x": 50}),
        )
        for page in range(4)
        for stimulus, value in values.items()
    ]
    marks += [
        Mark("odd", str(page), name, value) for page in range(4) for name, value in (("HQ", 1), ("LQ", 9), ("x", 5))
    ]
    pictures = draw_listeners(marks, screen(marks))
    picture = stack_pictures(pictures, "Marks", columns=2)
    root = ElementTree.fromstring(picture)
    said = "".join(root.itertext())
    assert "good <one> of twenty-five" in said
    assert "odd (left out)" in said
    assert "worst on 0.0%" in said
    assert picture.count('class="box"') == 9
    assert root.attrib["width"] == "720", "two columns"
    alone = [ElementTree.fromstring(panel) for panel in pictures]
    assert [int(panel.attrib["width"]) <= 360 for panel in alone] == [True] * 3, "each fits a phone"
    assert "odd (left out)" in "".join(alone[1].itertext()) + "".join(alone[0].itertext())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../x.wav", "points outside"),
        ("a/../../x.wav", "points outside"),
        ("{outside}", "points outside"),
        ("x.wav\x00", "points outside"),
        ("link.wav", "is a link that points outside"),
        ("linked/x.wav", "is a link that points outside"),
    ],
)
@pytest.mark.parametrize("settle", [resolve_recordings, measure_durations])
def test_no_design_has_listeners_hear_a_file_outside_of_its_folder(
    tmp_path: Path, name: str, says: str, settle: Callable[[Design, Path], Design]
) -> None:
    folder = tmp_path / "test"
    (folder / "a").mkdir(parents=True)
    (tmp_path / "x.wav").write_bytes(wav(0.5))
    (folder / "r.wav").write_bytes(wav(0.5))
    (folder / "link.wav").symlink_to(tmp_path / "x.wav")
    (folder / "linked").symlink_to(tmp_path)
    page = {"type": "mushra", "id": "trial_Arts", "reference": "r.wav"}
    stimuli = {"aria_Arts": "r.wav", "basso_Arts": name.format(outside=tmp_path / "x.wav")}
    (folder / "test.yaml").write_text(json.dumps({"pages": [page | {"stimuli": stimuli}]}), encoding="utf-8")
    (design,) = webmushra.read_configuration(folder / "test.yaml").designs
    with pytest.raises(BadInput, match=says):
        settle(design, folder)
