"""Ratings of public corpora are read in the layouts in which they are published; what is wrong is named by its line."""

import io
import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from podeval.datasets.http import Web
from podeval.errors import BadInput
from podeval.validation import rating_files
from podeval.validation.rating_files import LAYOUTS, Preference, RatingFile, fetch_ratings, read_rating_files
from tests.fakes.podcast_server import Page, PodcastServer


def read(folder: Path, content: str, name: str = "ratings.csv") -> RatingFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    (file,) = read_rating_files(path)
    return file


def marks(file: RatingFile) -> list[tuple[str, str, str, float, str]]:
    return [(one.rater, one.stimulus, one.page, one.value, one.scale) for one in file.marks]


def test_pams_folder_has_a_task_each_and_its_recordings(tmp_path: Path) -> None:
    for task in ("TTA", "TTM"):
        lines = "File Name,Model,OVL,REL\na1,AudioLDM,3.5,4.0\na1,AudioGen,2.5,\n"
        read(tmp_path, lines, f"human_eval/{task}/scores.csv")
    files = read_rating_files(tmp_path / "human_eval")
    assert [file.name for file in files] == ["TTA", "TTM"]
    assert marks(files[0]) == [
        ("", "AudioLDM", "a1", 3.5, "OVL"),
        ("", "AudioLDM", "a1", 4.0, "REL"),
        ("", "AudioGen", "a1", 2.5, "OVL"),
    ]
    assert files[0].recordings["AudioLDM", "a1"] == "AudioLDM/a1"
    with pytest.raises(BadInput, match="contains no scores"):
        read_rating_files(tmp_path)


def test_both_of_pams_filters_are_applied_where_raters_and_times_are_there(tmp_path: Path) -> None:
    """Six samples with one mark on both scales exclude a rater, five do not; under ten seconds no answer counts."""
    flat = [f"f{n},m,3,3,flat,30" for n in range(6)] + [f"f{n},m,3,3,five,30" for n in range(5)]
    lines = ["File Name,Model,OVL,REL,WorkerId,WorkTimeInSeconds", *flat, "f9,m,2,4,five,9", "f8,m,2,4,five,11"]
    file = read(tmp_path, "\n".join(lines))
    assert {mark.rater for mark in file.marks} == {"five"}
    assert [mark.page for mark in file.marks] == [*(f"f{n}" for n in range(5) for _ in "ab"), "f8", "f8"]
    assert file.notes[0].startswith(
        "1 raters who gave all scales the same mark on more than five samples were excluded, and so were 2"
    )


def test_voicemos_lists_have_no_line_of_names(tmp_path: Path) -> None:
    means = read(tmp_path, "sys64e2f-utt9c183cd.wav,4.125\nsysab-uttcd.wav,2.5\n", "val_mos_list.txt")
    assert marks(means) == [("", "sys64e2f", "utt9c183cd", 4.125, "MOS"), ("", "sysab", "uttcd", 2.5, "MOS")]
    listeners = "sys64e2f,sys64e2f-utt9c183cd.wav,4,VDP1ovyrBzg8_1,{}_30-39_bZPQ_Female_Valid_1_No\n"
    each = read(tmp_path, listeners, "TRAINSET")
    assert marks(each) == [("{}_30-39_bZPQ_Female_Valid_1_No", "sys64e2f", "utt9c183cd", 4.0, "MOS")]
    assert each.recordings["sys64e2f", "utt9c183cd"] == "sys64e2f-utt9c183cd.wav"
    with pytest.raises(BadInput, match="line 2 has neither the form"):
        read(tmp_path, "sysa-utt1.wav,3\nsysa,3\n", "TESTSET")


def test_somos_has_marks_by_listener_means_and_checks_of_its_pages(tmp_path: Path) -> None:
    head = "utteranceId\tchoice\tsystemId\tlistenerId\tclean"
    raw = f"{head}\nnovel_2007_0098_015\t4\t015\tK1\t1\nnews_1_003\t5\t003\tK2\t0\n"
    file = read(tmp_path, raw, "raw_scores.tsv")
    assert marks(file) == [("K1", "015", "novel_2007_0098", 4.0, "MOS")]
    assert file.notes == ("1 lines were left out: their pages failed SOMOS's quality checks",)
    means = read(tmp_path, "utteranceId,mean\nnovel_2007_0098_015.wav,3.5\n", "test_mos_list.txt")
    assert marks(means) == [("", "015", "novel_2007_0098", 3.5, "MOS")]
    assert marks(read(tmp_path, "systemId,mean\n015,3.5\n", "test_system.csv")) == [("", "015", "", 3.5, "MOS")]


def test_nisqa_has_five_scales_and_a_system_for_each_condition(tmp_path: Path) -> None:
    text = (
        "db,con,file,filename_deg,votes,mos,noi,col,dis,loud,filepath_deg\n"
        "NISQA_VAL_SIM,7,1,c07_s1.wav,5,3.1,3.0,2.9,4.0,,NISQA_VAL_SIM/deg/c07_s1.wav\n"
    )
    file = read(tmp_path, text, "NISQA_corpus_file.csv")
    assert [(mark.scale, mark.value) for mark in file.marks] == [("mos", 3.1), ("noi", 3.0), ("col", 2.9), ("dis", 4.0)]
    assert file.recordings == {("NISQA_VAL_SIM/7", "c07_s1"): "NISQA_VAL_SIM/deg/c07_s1.wav"}
    with pytest.raises(BadInput, match="line 2: mos must be a number, not 'good'"):
        read(tmp_path, text.replace("3.1", "good"))


def test_speechjudge_is_read_from_parquet_without_its_sound(tmp_path: Path) -> None:
    row = {
        "index": 7,
        "rater": ["r1", "r2", "r3"],
        "naturalness_annotation": ["A+2", "Tie (both not good)", "B+1"],
        "naturalness_label": "A",
        "audioA": {"bytes": b"RIFF", "path": "x/a.wav"},
        "audioB": {"bytes": b"RIFF", "path": "x/b.wav"},
    }
    pd.DataFrame([row]).to_parquet(tmp_path / "test.parquet")
    (file,) = read_rating_files(tmp_path / "test.parquet")
    assert [(one.rater, one.choice) for one in file.preferences] == [("r1", 1), ("r2", 0), ("r3", -1)]
    assert file.recordings == {("A", "7"): "x/a.wav", ("B", "7"): "x/b.wav"}
    lines = json.dumps({"index": 1, "naturalness_label": "B"}) + "\n"
    assert read(tmp_path, lines, "test.jsonl").preferences == (Preference("", "1", "A", "B", -1),)
    with pytest.raises(BadInput, match="line 1: annotations must be a list"):
        read(tmp_path, json.dumps({"index": 1, "naturalness_label": "C"}), "wrong.jsonl")


def test_podevals_published_session_of_webmushra_is_read_mark_by_mark(shared_data: Path) -> None:
    (path,) = (shared_data / "podeval" / "subjective" / "results").rglob("*.csv")
    (file,) = read_rating_files(path)
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    assert (file.layout, len(file.marks)) == ("webmushra", len(lines))
    assert [mark.value for mark in file.marks] == [float(line[7]) for line in lines]
    assert [mark.seconds for mark in file.marks] == [float(line[8]) / 1000 for line in lines]
    assert {mark.rater for mark in file.marks} == {path.stem}
    assert {mark.stimulus for mark in file.marks} == {"anchor35", "anchor70", "C1", "C2", "C3"}


def test_our_listening_tests_have_marks_and_choices_of_sessions_that_count(tmp_path: Path) -> None:
    head = "kind,listener,item,stimulus,compared_with,scale,mark,counted"
    single = "mos,l1,i1,a,,OVL,4,True\nmos,l2,i1,a,,OVL,5,False"
    paired = "preference,l1,i1,a,b,preference,2,True\nabx,l1,i1,a,b,abx,1,True"
    file = read(tmp_path, "\n".join([head, single, paired]))
    assert marks(file) == [("l1", "a", "i1", 4.0, "OVL")]
    assert file.preferences == (Preference("l1", "i1", "a", "b", -1),)
    assert len(file.notes) == 2


def test_an_order_is_of_systems_as_wholes_and_votes_have_the_item_of_their_battle(tmp_path: Path) -> None:
    assert marks(read(tmp_path, "system,place\na,1\nb,2\n")) == [("", "a", "", -1.0, ""), ("", "b", "", -2.0, "")]
    with pytest.raises(BadInput, match="an order has one line per system"):
        read(tmp_path, "system,score\na,1\na,2\n")
    vote = {"system_a": "a", "system_b": "b", "outcome": "b", "voter": "p", "item": "Arts_1"}
    lines = [vote, vote | {"outcome": "skip"}, vote | {"standing": "excluded"}]
    file = read(tmp_path, "\n".join(map(json.dumps, lines)), "votes.jsonl")
    assert file.preferences == (Preference("p", "Arts_1", "a", "b", -1),)
    assert len(file.votes) == 3


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "", "\x00\x01", "{]"])
def test_a_file_in_no_layout_is_refused_with_the_layouts(tmp_path: Path, content: str) -> None:
    with pytest.raises(BadInput, match="layouts of ratings: pam, voicemos"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "system,item,score\nA,1,4,5\n", "line 2 has more cells than the header line"),
        ("a.csv", "system;item;score\nA;1;4,5\n", "line 2: the score '4,5' is not a number"),
        ("a.csv", "system,item,score,score\nA,1,4,3\n", "the header line contains names more than once"),
        ("list", "sysa-utt1.wav,4,5\n", "the source contains no ratings"),
        ("a.jsonl", '{"index": 1, "naturalness_label": "Both bad"}', "annotations must be a list"),
    ],
)
def test_a_mark_that_would_be_another_is_refused(tmp_path: Path, name: str, content: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read(tmp_path, content, name)


def test_other_separators_spaces_and_words_of_excel_change_no_mark(tmp_path: Path) -> None:
    for content in (
        "System; Item ;SCORE\nA ; 1;4.5 \n",
        "\ufeffsystem\titem\tscore\t\r\nA\t1\t4.5\t\r\n",
        "sep=;\nsystem;item;score\nA;1;4.5\n",
        "\n\nsystem,item,score\nA,1,4.5\n",
    ):
        assert marks(read(tmp_path, content)) == [("", "A", "1", 4.5, "")]
    lines = "listener,item,stimulus,mark,counted\nl,1,A,4,WAHR\nl,1,B,3,FALSCH\nl,1,C,3,no\n"
    assert marks(read(tmp_path, lines)) == [("l", "A", "1", 4.0, "")]


def test_systems_of_webmushra_that_share_a_word_are_not_one_item(tmp_path: Path) -> None:
    """`tts_v1` and `tts_v2` on two pages were `v1` and `v2` of one item, `tts`, and half of the marks were lost."""
    lines = [f"u,trial_{page},tts_v{version},{page}{version}" for page in (1, 2) for version in (1, 2)]
    file = read(tmp_path, "\n".join(["session_uuid,trial_id,rating_stimulus,rating_score", *lines]))
    assert [mark[1:4] for mark in marks(file)] == [
        ("tts_v1", "1", 11), ("tts_v2", "1", 12), ("tts_v1", "2", 21), ("tts_v2", "2", 22)
    ]  # fmt: skip


def make_zip(members: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


def make_tar(members: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


def test_a_corpus_is_fetched_once_unpacked_and_stays_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = {"human_eval/TTA/scores.csv": "File Name,Model,OVL\na,m,3\n"}
    with PodcastServer() as server:
        for name, content in (("all.zip", make_zip(members)), ("all.tar.gz", make_tar(members))):
            server.pages[f"/{name}"] = Page(content)
            layout = replace(LAYOUTS["pam"], archive=f"{server.url}/{name}")
            monkeypatch.setattr(rating_files, "LAYOUTS", {**LAYOUTS, "pam": layout})
            web, into = Web(pause=0, allow_private=True), tmp_path / name
            for _ in range(2):
                fetch_ratings("pam", into, web, 1 << 20)
            assert server.paths().count(f"/{name}") == 1, "what is there is not fetched again"
            assert marks(read_rating_files(into / "human_eval")[0]) == [("", "m", "a", 3.0, "OVL")]
            with pytest.raises(BadInput):
                fetch_ratings("pam", tmp_path / "small", web, 10)
        server.pages["/all.tar.gz"] = Page(make_tar({"../outside": "x"}))
        with pytest.raises(BadInput, match="is not the archive"):
            fetch_ratings("pam", tmp_path / "inside", web, 1 << 20)
    assert not (tmp_path / "outside").exists()
    with pytest.raises(BadInput, match="accept its terms"):
        fetch_ratings("speechjudge", tmp_path, web, 1)
    with pytest.raises(BadInput, match="no ratings 'mos'; choose pam, voicemos, somos, nisqa"):
        fetch_ratings("mos", tmp_path, web, 1)
