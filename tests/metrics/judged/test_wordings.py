"""Prompts in other words: files that replace ours, what they must ask about, and how the protocol tells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import podeval
from podeval.errors import BadInput
from podeval.judges.prompt import Prompt
from podeval.judges.wording import list_inputs, reword, write_wording
from podeval.measuring.evaluate_module import module
from podeval.metrics import pairwise_judge, prompts
from podeval.metrics.judged.content_density import DIVIDE
from podeval.metrics.judged.rubric import build_hearing_prompt, build_reading_prompt
from podeval.metrics.judged.script_quality import QUALITY

from .test_cli import run
from .test_rubric import dialogue, scored, verdicts
from .test_script_quality import quality

PAPERS = 'Check {criteria} of {dialogue}; answer {"criteria_s_1": 1, "n": {"of": 2}} and nothing else.'


@pytest.mark.parametrize("prompt", prompts.list_all_prompts(), ids=lambda prompt: prompt.name)
def test_our_own_wording_is_our_own_prompt(prompt: Prompt) -> None:
    assert reword(prompt, write_wording(prompt)) is prompt
    assert prompt.passages or list_inputs(prompt) == list(prompt.placeholders)


def test_a_folder_as_it_is_written_changes_nothing(tmp_path: Path) -> None:
    written = [Path(line) for line in run("judge", "prompts", "--out", tmp_path / "own").stdout.splitlines()]
    assert {path.stem for path in written} == {prompt.family for prompt in prompts.list_all_prompts()}
    assert prompts.read_wordings(tmp_path / "own") == {}
    with pytest.raises(BadInput, match="may contain your own wording"):
        run("judge", "prompts", "--out", tmp_path / "own")


def test_braces_of_a_papers_text_stay_and_the_id_is_of_the_text() -> None:
    own = reword(build_reading_prompt(), PAPERS)
    assert own.placeholders == ("criteria", "dialogue")
    (_, user) = own.messages({"criteria": "C", "dialogue": "D"})
    assert user["content"].endswith('answer {"criteria_s_1": 1, "n": {"of": 2}} and nothing else.')
    assert own.system == ""
    assert own.id.startswith("rubric_transcript@own#")
    assert own.id != reword(build_reading_prompt(), PAPERS.replace("Check", "Test")).id
    assert own.answer is build_reading_prompt().answer


def test_one_file_serves_dialogues_of_every_length() -> None:
    wording = "[system]\nYou listen.\n[request]\nHear {turns}\nDecide {criteria}"
    long = reword(build_hearing_prompt(4), wording)
    assert long.placeholders == build_hearing_prompt(4).placeholders
    assert (long.system, long.name) == ("You listen.", "rubric_audio_4")
    battle = reword(pairwise_judge.build_hearing_prompt(2, "mtalk"), "Hear {turns} by {focus}")
    assert battle.answer is pairwise_judge.ForcedChoice
    assert battle.placeholders == pairwise_judge.build_hearing_prompt(2).placeholders


@pytest.mark.parametrize("form", ["plain", "bom", "windows", "utf-16"])
def test_line_ends_and_marks_of_encodings_are_no_wording(tmp_path: Path, form: str) -> None:
    text = write_wording(QUALITY).replace("{script}", "{script}\nBe strict.")
    forms = {
        "plain": text.encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "windows": text.replace("\n", "\r\n").encode(),
        "utf-16": text.encode("utf-16"),
    }
    (tmp_path / "script_quality.txt").write_bytes(forms[form])
    (tmp_path / "README.md").write_text("ours")
    (tmp_path / ".DS_Store").write_bytes(b"\x00")
    read = prompts.read_wordings(tmp_path)
    assert reword(QUALITY, read["script_quality"]).id == reword(QUALITY, text).id


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "script_qualty.txt",
            "{script}",
            "script_qualty.txt is not named after a prompt; its name must be one of .*script_quality",
        ),
        ("script_quality.md", "{script}", "is not named after a prompt"),
        ("script_quality.txt", "Judge it.", r"asks about \{script\}; the request lacks \{script\}"),
        ("script_quality.txt", "[system]\n{script}\n[request]\nJudge it.", r"lacks \{script\}"),
        ("script_quality.txt", "Judge {script} by {podcast_script}.", r"not about \{podcast_script\}"),
        ("script_quality.txt", " \n", "is empty"),
        ("script_quality.txt", b"\xff\xfe\xff", "cannot be read as UTF-8"),
        ("rubric_audio.txt", "Hear {user_1} {criteria}", r"lacks \{turns\}"),
    ],
)
def test_a_bad_file_is_refused_by_its_name(tmp_path: Path, name: str, text: str | bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=f"(?s){name}.*{sentence}" if "is not named after" not in sentence else sentence):
        prompts.read_wordings(tmp_path)


def test_a_folder_that_is_none_or_empty_is_refused(tmp_path: Path) -> None:
    for folder, sentence in ((tmp_path / "no", "is not a folder"), (tmp_path, "contains no prompts")):
        with pytest.raises(BadInput, match=f"{sentence}; run `podeval judge prompts"):
            prompts.read_wordings(folder)


def test_a_judge_is_asked_in_the_files_words_and_the_protocol_says_so(
    judge: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    own = write_wording(build_reading_prompt()).replace("The criteria:", "The criteria, and be brief:")
    (folder / "rubric_transcript.txt").write_text(own)
    (folder / "essential_clauses.txt").write_text(write_wording(DIVIDE))
    every = dict.fromkeys((f"criteria_{level}_{n}" for level in "smd" for n in (1, 2)), 1)
    made = judge(verdicts(every))
    ours = scored([dialogue()], made.bench)
    worded = type(made.bench)(made.bench.judge, made.bench.records, wordings=prompts.read_wordings(folder))
    theirs = scored([dialogue()], worded)
    assert [("be brief" in question.told) for question in made.questions] == [False, False, True, True]
    (told,) = theirs["protocol"]["models"]["prompts"]
    assert told.startswith("rubric_transcript@own#")
    assert theirs["protocol"]["id"] != ours["protocol"]["id"]
    assert theirs["rubric"] == 100.0
    (folder / "rubric_transcript.txt").unlink()
    unchanged = type(made.bench)(made.bench.judge, made.bench.records, wordings=prompts.read_wordings(folder))
    assert scored([dialogue()], unchanged)["protocol"]["id"] == ours["protocol"]["id"]


def test_other_words_are_asked_from_python_too(judge: Callable[..., Any], tmp_path: Path) -> None:
    own = write_wording(QUALITY).replace("How to work:", "How to work, briefly:")
    assert "briefly" in own
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / f"{QUALITY.family}.txt").write_text(own)
    made = judge(lambda question: quality(quote="Rivers carry salt"))
    script = "A: Why is the sea salty?\nB: Rivers carry salt into it."
    options = {"judge": made.bench.judge, "records": str(made.bench.records)}
    folder = str(tmp_path / "own")
    measured = [
        podeval.measure("script_quality", script, **options, **more).protocols["script_quality"]
        for more in ({}, {"prompts": folder}, {"prompts": tmp_path / "own"})
    ]
    assert ["briefly" in question.told for question in made.questions] == [False, True], "the third is in the records"
    theirs = module("script_quality")().compute(predictions=[script], **options, prompts=folder)
    assert len(made.questions) == 2
    assert measured[1] == measured[2]
    assert measured[0]["id"] != measured[1]["id"]
    for protocol in (measured[1], theirs["protocol"]):
        assert [prompt.partition("#")[0] for prompt in protocol["models"]["prompts"]] == [f"{QUALITY.family}@own"]
    with pytest.raises(BadInput, match="is not a folder"):
        podeval.measure("script_quality", script, **options, prompts=tmp_path / "none")
    # Where nobody is asked, `prompts` is what the metric says, or nothing.
    with pytest.raises(BadInput, match="prompts"):
        podeval.measure("mattr", script, prompts=folder)


def test_a_file_with_our_words_leaves_the_other_variants_alone(tmp_path: Path) -> None:
    (tmp_path / "battle_transcript.txt").write_text(write_wording(pairwise_judge.build_reading_prompt()))
    bench_prompts = prompts.read_wordings(tmp_path)
    assert "battle_transcript" not in bench_prompts, "or the paper's variant would be allowed to tie"
