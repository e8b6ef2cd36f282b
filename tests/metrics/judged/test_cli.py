"""The command line with a judge: measure, criteria that a person approves, battles."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import yaml
from typer.testing import CliRunner, Result

from podeval import benchmarks
from podeval.cli import app
from podeval.datasets.items import load_items
from podeval.errors import BadInput, PodevalError
from podeval.measuring.inputs import read_input
from podeval.metrics import catalogue
from podeval.metrics.judged.dialogue_judge import KEYS
from podeval.metrics.rubric_writing import load_review
from podeval.runs.aggregate import summarise
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder, RunPlan

SCRIPT = "Host 1: Why is the sea salty?\nHost 2: Rivers carry salt into it."
SUBMISSION = {
    "Ambient sound": [
        [
            {
                "question": f"./audio/record_1-1/1-1-turn{turn}_amb.wav",
                "dialogue": {model: f"./{model}/{turn}.wav" for model in ("Raven", "Lark")},
                "question_transcription": asked,
                "dialogue_transcription": {"Raven": f"Raven says {turn}.", "Lark": f"Lark sings {turn}."},
            }
            for turn, asked in enumerate(("Invite them. (thunder)", "And the weather?"), 1)
        ]
    ]
}


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, PodevalError):
        raise result.exception
    return result


def with_judge(made: Any) -> list[str | Path]:
    return ["--judge", made.bench.judge, "--records", made.bench.records]


@pytest.fixture
def dialogues(tmp_path: Path) -> list[Path]:
    (tmp_path / "answers.json").write_text(json.dumps(SUBMISSION), "utf-8")
    made = run("judge", "dialogues", tmp_path / "answers.json", "--to", tmp_path / "dialogues")
    paths = [Path(line) for line in made.stdout.splitlines()]
    for path in paths:  # a listener notes how each answer sounds, which words do not tell
        written = json.loads(path.read_text("utf-8"))
        turns = [turn | {"answer_tags": ["calm"]} for turn in written["turns"]]
        path.write_text(json.dumps(written | {"turns": turns}), "utf-8")
    return paths


def test_measure_prints_one_json_object_a_file_with_the_judge_in_its_protocol(
    judge: Callable[..., Any], tmp_path: Path
) -> None:
    better = {"analysis": "a", **dict.fromkeys(KEYS, 2)}
    made = judge(lambda q: better if "Rivers" in q.inputs["second"] else {**better, "overall": 0})
    (tmp_path / "script.txt").write_text(SCRIPT, "utf-8")
    (tmp_path / "reference.txt").write_text("Host 1: The sea is salty.\nHost 2: Yes.", "utf-8")
    files = [tmp_path / "script.txt", "--reference", tmp_path / "reference.txt"]
    result = run("measure", "dialogue_judge", *files, "--json", *with_judge(made))
    assert result.exit_code == 0
    line = json.loads(result.stdout)
    assert line["overall"] == 1.0
    assert line["protocol"]["models"]["judge"]["model"] == "scripted"
    assert (Path(made.bench.records) / "records.jsonl").exists()


def test_without_a_judge_the_file_is_unscored_and_the_exit_code_is_1(tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text(SCRIPT, "utf-8")
    result = run("measure", "script_quality", tmp_path / "script.txt")
    assert result.exit_code == 1
    assert "no judge is named: add judge=" in result.stdout


def test_what_a_metric_is_measured_against_is_asked_for_and_judges_are_refused_where_nobody_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "script.txt").write_text(SCRIPT, "utf-8")
    with pytest.raises(BadInput, match="instruction_following also needs the request"):
        run("measure", "instruction_following", tmp_path / "script.txt")
    with pytest.raises(BadInput, match="mattr does not use a judge"):
        run("measure", "mattr", tmp_path / "script.txt", "--judge", "x@http://127.0.0.1:9/v1")


def test_criteria_are_written_approved_by_a_person_and_only_then_used(
    judge: Callable[..., Any], dialogues: list[Path], tmp_path: Path
) -> None:
    def answer(question: Any) -> Any:
        if question.prompt == "sample_criteria":
            cut = "weather" not in question.inputs["user_turns"]
            return {"criteria": [{"criterion": f"The answer mentions thing {n}{' early' * cut}."} for n in range(1, 5)]}
        names = [line.partition(":")[0] for line in question.inputs["criteria"].splitlines()]
        return {"verdicts": [{"criterion": name, "met": int("_d_" in name)} for name in names]}

    made = judge(answer)
    review = tmp_path / "review.yaml"
    assert run("judge", "rubrics", *dialogues, "--to", review, "--turns", *with_judge(made)).exit_code == 0
    # One dialogue, whole and cut off at turn 1, whoever answered it; no system's words are shown.
    assert len(made.questions) == 2
    assert not any("Raven" in json.dumps(question.body) for question in made.questions)
    with pytest.raises(BadInput, match="8 entries of the review file are open"):
        run("judge", "apply", review, *dialogues, "--to", tmp_path / "reviewed")
    with pytest.raises(BadInput, match="may contain a person's decisions"):
        run("judge", "rubrics", *dialogues, "--to", review, *with_judge(made))

    data = yaml.safe_load(review.read_text("utf-8"))
    for item in data["items"]:
        for number, entry in enumerate(item["entries"]):
            entry["decision"] = "accept" if number else "reject"
    data["items"][0]["entries"][1]["text"] = "The answer offers a roof against the rain."
    review.write_text(yaml.safe_dump(data), "utf-8")
    assert load_review(review).open == 0
    applied = run("judge", "apply", review, *dialogues, "--to", tmp_path / "reviewed").stdout.splitlines()
    assert len(applied) == 2
    written = json.loads(Path(applied[0]).read_text("utf-8"))
    assert written["criteria"]["sample"][0] == "The answer offers a roof against the rain."
    assert len(written["criteria"]["sample"]) == len(written["turn_criteria"]["1"]) == 3

    measured = run("measure", "rubric", *applied, "--json", *with_judge(made)).stdout.splitlines()
    scores = json.loads(measured[0])
    # Only the three accepted sample criteria are met, of seven.
    assert (scores["sample"], scores["general"], scores["rubric"]) == (100.0, 0.0, pytest.approx(300 / 7))
    assert scores["scenario.family_and_domestic"] == scores["rubric"]
    assert scores["turn_1"] == scores["turn_2"] == scores["ambient"] == scores["rubric"]


def test_checklists_are_written_approved_and_used(judge: Callable[..., Any], tmp_path: Path) -> None:
    def answer(question: Any) -> Any:
        if question.prompt == "podcast_checklist":
            points = [
                ("Names where salt comes from.", "explicit"),
                ("Is fun to hear.", "implied"),
                ("Explains terms.", "implied"),
            ]
            return {"checklist": [{"requirement": text, "kind": kind} for text, kind in points]}
        return {"items": [{"number": 1, "quotes": ["Rivers carry salt"], "reason": "r", "score": 1}]}

    made = judge(answer)
    request, review, script = tmp_path / "sea.txt", tmp_path / "review.yaml", tmp_path / "script.txt"
    request.write_text("两人对谈海水为什么咸。", "utf-8")
    script.write_text(SCRIPT, "utf-8")
    run("judge", "checklists", request, "--to", review, *with_judge(made))
    text = review.read_text("utf-8")
    assert "Nothing here is used until a person" in text
    review.write_text(text.replace("decision: open", "decision: accept", 1).replace("open", "reject"), "utf-8")
    (applied,) = run("judge", "apply", review, request, "--to", tmp_path / "reviewed").stdout.splitlines()
    checklist = json.loads(Path(applied).read_text("utf-8"))["checklist"]
    assert checklist == [{"requirement": "Names where salt comes from.", "kind": "explicit"}]
    result = run("measure", "instruction_following", script, "--reference", applied, "--json", *with_judge(made))
    assert json.loads(result.stdout)["explicit"] == 100.0
    assert made.questions[-1].inputs["checklist"] == "1. (explicit) Names where salt comes from."


def test_criteria_that_repeat_the_standing_ones_are_asked_again(
    judge: Callable[..., Any], dialogues: list[Path], tmp_path: Path
) -> None:
    known = "The answer is correct in its grammar, and easy to understand"
    made = judge(
        lambda q: {"criteria": [{"criterion": text} for text in (known, "It mentions thunder.", "It is calm.")]}
    )
    result = run("judge", "rubrics", dialogues[0], "--to", tmp_path / "review.yaml", *with_judge(made))
    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert not (tmp_path / "review.yaml").exists()


def test_battles_of_every_two_systems_are_lines_of_a_log(judge: Callable[..., Any], dialogues: list[Path]) -> None:
    made = judge(lambda q: {"reason": "it sings", "winner": "A" if "Lark sings" in q.inputs["dialogue_a"] else "B"})
    result = run("judge", "battles", *dialogues, *with_judge(made))
    assert result.exit_code == 0
    (line,) = [json.loads(text) for text in result.stdout.splitlines()]
    assert (line["dialogue"], line["winner"], len(line["ballots"])) == ("ambient-1-1", "Lark", 2)
    assert {ballot["place"] for ballot in line["ballots"]} == {"first", "second"}
    assert line["prompt"].startswith("battle_transcript@1.1#")
    with pytest.raises(BadInput, match="no two systems answered the same dialogue"):
        run("judge", "battles", dialogues[0], *with_judge(made))


def test_battles_of_runs_are_read_as_they_are_by_all_that_follows(judge: Callable[..., Any], tmp_path: Path) -> None:
    benchmark = benchmarks.get("mtalk_bench")
    items = load_items(benchmark, "sample")
    dataset = f"{benchmark.dataset.path}@{items.revision}"
    for number, system in enumerate(("Lark", "Raven", "Wren"), 1):
        folder = RunFolder(tmp_path / "runs", "mtalk_bench", "sample", system)
        about: dict[str, Any] = {"system": system, "system_title": system, "system_kind": "model", "track": "respond"}
        folder.begin(RunPlan(benchmark="mtalk_bench", split="sample", dataset=dataset, generation={}, seed=0, **about))
        for item in items.items:
            name = folder.write_audio(f"{item.id}-1", np.full(1600 * number, 0.1, np.float32), 16_000)
            answers = [OutputAnswer(audio=name, words=f"{system} answers.")] * len(item.user)
            folder.write_output(Output(item=item.id, answers=tuple(answers)))
        folder.write_items(items.items)
        folder.write_summary(summarise(folder, "embedded", benchmark, items.items))
    (folder.outputs / f"{items.items[0].id}.json").unlink()  # Wren did not answer the first
    made = judge(
        lambda q: {"reason": "longer", "winner": "B" if "Lark" in q.inputs.get("dialogue_b", "") else "A"}, hears=True
    )
    sources = [tmp_path / "runs/mtalk_bench/sample" / system for system in ("Lark", "Raven", "Wren")]
    options = ["--pairing", "mtalk", "--transcripts", "claimed"]
    result = run("judge", "battles", *sources, *options, *with_judge(made))
    assert "Wren gave no answer to 1 of 3 dialogues" in result.stderr
    battles = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(battles) == 1 + 3 + 3
    assert {(line["dimension"], line["modality"]) for line in battles} == {
        ("semantic", "transcript"), ("paralinguistic", "audio"), ("ambient", "audio"),
    }  # fmt: skip
    assert all(line["capability"] and line["lengths"] for line in battles)
    path = tmp_path / "battles.jsonl"
    path.write_text(result.stdout, "utf-8")
    # The rating is the same from the lines as from their winners alone.
    by_hand = [{"first": b["system_a"], "second": b["system_b"], "outcome": b["outcome"]} for b in battles]
    rated = [
        catalogue.get("arena")(
            {"system": "Lark", "reference_votes": read_input("reference_votes", votes)}, {"variant": "elo"}
        ).values["rating"]
        for votes in (path, json.dumps(by_hand))
    ]
    assert rated[0] == rated[1]
    from_lines, from_records = (
        json.loads(run("report", "judge", source, "--json").stdout)["judges"][0]["orders"]
        for source in (path, made.bench.records)
    )
    assert from_lines["ties"] + from_lines["agreement"]["count"] == 7
    # Battles are drawn in the order in which their answers came.
    chances = [orders["places"].pop("p") for orders in (from_lines, from_records)]
    assert chances[0] == pytest.approx(chances[1], abs=0.01)
    assert {name: from_lines[name] for name in ("agreement", "ties", "single", "places", "swayed")} == {
        name: from_records[name] for name in ("agreement", "ties", "single", "places", "swayed")
    }
    assert "7 new votes" in run("arena", "import", path, "--database", tmp_path / "arena.db").stdout
    assert "0 new votes" in run("arena", "import", path, "--database", tmp_path / "arena.db").stdout
    run("arena", "export", tmp_path / "votes", "--comments", "--database", tmp_path / "arena.db")
    votes = pandas.read_parquet(tmp_path / "votes" / "votes.parquet")
    assert set(votes["item"]) == {item.id for item in items.items}
    assert set(votes["comment"]) == {"longer"}
    again = run("judge", "battles", *sources, *options, *with_judge(made))
    assert (again.stdout, len(made.questions)) == (result.stdout, 14), "a second time nobody is asked"
    # As they are, they are a column of the board; seven battles are too few for a rank, which is said.
    log = tmp_path / "runs" / "judges" / "scripted" / "battles.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(result.stdout, "utf-8")
    board = run("report", "show", "--runs", tmp_path / "runs").stdout
    assert "Dialogue · preference" in board
    assert "Arena rating ↑" in board
    assert re.search(r"Wren: not ranked: \d more battles, \d more opponents and \d more dialogues are needed", board)
    plan = folder.plan().model_copy(update={"dataset": "another"})
    folder.begin(plan, replace=True)
    with pytest.raises(BadInput, match="answered items that are not in the dataset here"):
        run("judge", "battles", *sources, *with_judge(made))


def test_reasons_become_j_which_mos_takes(judge: Callable[..., Any], tmp_path: Path) -> None:
    systems = {"Raven": ("dull", 2), "Lark": ("lively", 5)}
    lines: list[dict[str, Any]] = [
        {
            "rater": f"p{n}",
            "item": "Arts",
            "system": system,
            "question": question,
            "mark": mark,
            "reason": f"{word} {question} {n}",
        }
        for n in (1, 2)
        for system, (word, mark) in systems.items()
        for question in ("quality", "music")
    ]
    lines.append({"rater": "p3", "item": "Arts", "system": "Lark", "question": "quality", "mark": 1, "reason": ""})
    lines.append({"item": "Arts", "system": "Raven", "music": False})
    # Without music, p1 and p2 marked it all the same for Raven: only what passes the screening is read.
    for line in lines:
        if line.get("question") == "music" and line["system"] == "Raven":
            line["mark"] = 3
    answers = tmp_path / "answers.jsonl"
    answers.write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")

    def answer(question: Any) -> Any:
        parts = question.inputs["comments"].split("System ")[1:]
        return {
            "systems": [
                {"system": number, "summary": "s", "score": 4 if "lively" in part else 3.5}
                for number, part in enumerate(parts, 1)
            ]
        }

    made = judge(answer)
    result = run("judge", "reasons", answers, *with_judge(made))
    found = [json.loads(line) for line in result.stdout.splitlines()]
    # Nobody's reason about Raven's music counts, as there is none: that question is not asked.
    assert {(line["system"], line["question"]): line["judged"] for line in found} == {
        ("Raven", "quality"): 3.5,
        ("Lark", "quality"): 4,
    }
    assert "p3" not in made.questions[0].inputs["comments"]
    with answers.open("a", encoding="utf-8") as file:
        file.write(result.stdout)
    metric = catalogue.get("mos")
    scored = metric({"system": "Lark", "reference_answers": read_input("reference_answers", answers)})
    # Q 5 of the two who stay, J 4
    assert scored.values["quality"] == 4.5
