"""What commands take: systems by name, empty files, names that are no text, and outputs that cannot be written."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile

Podeval = Callable[..., Any]
COMMAND = Path(sys.executable).parent / "podeval"

VOTES = [
    {"model_a": "aria", "model_b": "basso", "winner": winner, "judge": f"u{number % 3}"}
    for number, winner in enumerate(["model_a", "tie", "tie (bothbad)", "model_b", "aria", None])
]
MARKS = [
    {"rater": "p", "page": page, "stimulus": name, "value": value}
    for page in ("Arts", "News")
    for name, value in (("aria", 60), ("HQ", 95), ("LQ", 10))
]
ANSWERS = [
    {"rater": rater, "item": "Arts", "system": "aria", "question": "quality", "mark": 4, "reason": f"{rater} likes it"}
    for rater in ("p1", "p2")
]


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("metric", "records", "settings", "values"),
    [
        ("arena", VOTES, (), {"wins": 2, "battles": 5}),
        ("mushra", MARKS, (), {"mushra": 60.0}),
        ("mos", ANSWERS, ("--set", "screening=false"), {"mos": 4.0}),
    ],
)
def test_a_system_is_measured_by_its_name_and_the_records_of_people(
    podeval: Podeval, tmp_path: Path, metric: str, records: Any, settings: tuple[str, ...], values: dict[str, float]
) -> None:
    path = write_lines(tmp_path / "records.jsonl", records)
    (tmp_path / "aria").write_text("a file that is called like the system")
    os.chdir(tmp_path)
    said = podeval("measure", metric, "aria", "org/nobody", "--reference", path, *settings, "--json")
    found, nobody = map(json.loads, said.out.splitlines())
    assert {key: found[key] for key in values} == values
    assert (nobody["file"], nobody["cause"], said.code) == ("org/nobody", "system", 1)
    assert "org/nobody" in nobody["unscored"]
    assert "add --reference FILE" in podeval("measure", metric, "aria").err


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_measure_says_what_is_noted_of_the_text(podeval: Podeval, tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / "script.txt"
    path.write_text("A cold open.\nSpeaker 1: Hello there, my friend.\nSpeaker 2: Yes indeed.\n")
    assert "words before the first label are read as a turn" in podeval("measure", "mattr", path, *options).out


def test_a_table_in_parquet_is_read_by_the_command_line(podeval: Podeval, tmp_path: Path) -> None:
    pd.DataFrame(VOTES).to_parquet(tmp_path / "votes.parquet")
    said = podeval("measure", "arena", "aria", "--reference", tmp_path / "votes.parquet", "--json")
    assert json.loads(said.out)["battles"] == 5


def test_every_reader_of_votes_reads_the_same(podeval: Podeval, tmp_path: Path) -> None:
    from podeval.measuring.evaluate_module import module

    jsonl = write_lines(tmp_path / "votes.jsonl", VOTES)
    pd.DataFrame(VOTES).to_csv(tmp_path / "votes.csv", index=False)
    array = tmp_path / "array.json"
    array.write_text(json.dumps(VOTES))
    rating = module("arena")(cache_dir=str(tmp_path / "e")).compute(predictions=["aria"], references=[VOTES])["rating"]
    for path in (jsonl, tmp_path / "votes.csv", array):
        said = podeval("measure", "arena", "aria", "--reference", path, "--json")
        assert json.loads(said.out)["rating"] == rating
        result = module("arena")(cache_dir=str(tmp_path / "e")).compute(predictions=["aria"], references=[path])
        assert (result["rating"], result["battles"]) == (rating, 5)
        assert podeval("report", "agreement", "--ratings", path).code == 0
        database = tmp_path / f"{path.stem}{path.suffix}.db"
        assert "6 new votes" in podeval("arena", "import", path, "--database", database).out
        assert "0 new votes" in podeval("arena", "import", path, "--database", database).out
        assert podeval("arena", "sweep", "--database", database).code == 0
        rated = json.loads(podeval("arena", "ratings", "--json", "--database", database).out)["whole"]["overall"]
        assert {row["system"]: row["rating"] for row in rated["systems"]}["aria"] == pytest.approx(rating, abs=0.01)


def test_another_word_in_a_log_is_refused_with_its_line_by_every_reader(podeval: Podeval, tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    lines = [json.dumps(VOTES[0]), "", "null", json.dumps(VOTES[1] | {"winner": "banana"})]
    path.write_text("\n".join(lines))
    database = tmp_path / "arena.db"
    for said in (
        podeval("measure", "arena", "aria", "--reference", path),
        podeval("report", "agreement", "--ratings", path),
        podeval("arena", "import", path, "--database", database),
    ):
        assert said.code == 2
        assert "4: the winner 'banana' is neither aria nor basso" in said.out + said.err
    (tmp_path / "votes.csv").write_text("first,second,outcome\nx,y,a\nx,y,\nx,y,banana\n")
    assert "line 4: the outcome 'banana'" in podeval("report", "agreement", "--ratings", tmp_path / "votes.csv").err


def test_the_battles_of_a_judge_are_votes_for_the_commands_after_it(podeval: Podeval, tmp_path: Path) -> None:
    outcomes = [("a", "aria"), ("tie", None), ("b", "basso"), ("a", "aria")]
    line = {"dimension": "semantic", "system_a": "aria", "system_b": "basso", "ballots": [], "seed": 0, "judge": "j"}
    battles = [
        line | {"dialogue": f"d{number}", "outcome": outcome, "winner": winner}
        for number, (outcome, winner) in enumerate(outcomes)
    ]
    path = write_lines(tmp_path / "battles.jsonl", battles)
    found = json.loads(podeval("measure", "arena", "aria", "--reference", path, "--json").out)
    assert (found["wins"], found["battles"], found["notes"]["ties"]) == (2, 4, 1)
    assert found["notes"]["provisional"]["battles"] == {"missing": 6, "needed": 10}
    said = podeval("report", "agreement", "--ratings", path)
    assert "aria is provisional, 6 of 10 battles, 1 of 5 voters missing" in said.out


def test_a_request_has_an_option_of_its_own(podeval: Podeval, tmp_path: Path) -> None:
    script, request = tmp_path / "script.txt", tmp_path / "request.txt"
    script.write_text("Host 1: Salt.\nHost 2: Yes.")
    request.write_text("A podcast on salt.")
    said = podeval("measure", "instruction_following", script, "--request", request)
    assert (said.code, "no judge is named" in said.out) == (1, True)
    assert podeval("measure", "instruction_following", script, "--reference", request).out == said.out
    assert "add --request FILE" in podeval("measure", "instruction_following", script).err
    assert (
        "mattr does not use requests; leave out --request"
        in podeval("measure", "mattr", script, "--request", request).err
    )


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.wav"
    soundfile.write(path, 0.1 * np.random.default_rng(0).standard_normal(32_000), 16_000)
    return path


@pytest.mark.parametrize("content", ["", "\n", "\ufeff", "null", "null\nnull\n", "NaN"])
@pytest.mark.parametrize("suffix", [".txt", ".json", ".jsonl"])
def test_an_empty_file_is_one_unscored_item(
    podeval: Podeval, tmp_path: Path, sound: Path, content: str, suffix: str
) -> None:
    empty, words = tmp_path / f"empty{suffix}", tmp_path / "words.txt"
    empty.write_text(content)
    words.write_text("a b a c")
    lines = [json.loads(line) for line in podeval("measure", "mattr", empty, words, "--json").out.splitlines()]
    assert (lines[0]["cause"], lines[1]["mattr"]) == ("ours", 0.75)
    assert lines[0]["unscored"].startswith(f"has no text: {empty}")
    said = podeval("measure", "wer", sound, sound, "--text", empty, "--text", empty, "--json")
    for line in map(json.loads, said.out.splitlines()):
        assert line["cause"] == "ours"
        assert line["unscored"].startswith(f"has no reference: {empty}")
    said = podeval("score", sound, "--text", empty, "--metrics", "wer,loudness", "--json", code=1)
    (line,) = map(json.loads, said.out.splitlines())
    assert line["unscored"]["wer"]["unscored"].startswith(f"has no reference: {empty}")
    assert line["scores"]["loudness"]
    (line,) = map(json.loads, podeval("score", empty, "--metrics", "mattr", "--json").out.splitlines())
    assert line["unscored"]["mattr"]["cause"] == "ours"


def test_a_reference_that_cannot_be_read_is_not_the_system_s_fault(
    podeval: Podeval, tmp_path: Path, sound: Path
) -> None:
    said = podeval("measure", "wer", sound, "--text", tmp_path / "absent.txt", "--json")
    assert (said.code, json.loads(said.out)["cause"]) == (2, "ours")
    said = podeval("measure", "mattr", tmp_path / "absent.txt", "--json")
    assert (said.code, json.loads(said.out)["cause"]) == (2, "system")


NAMES = ["播客一.wav".encode(), "播客".encode("gbk") + b".wav", b"bad\xff\xfe.wav", b"=cmd.wav", b"good.wav"]


@pytest.fixture
def named(tmp_path: Path, sound: Path) -> Path:
    """A folder as a program unpacks it from an archive of elsewhere."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    for name in NAMES:
        (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_bytes(sound.read_bytes())
    return folder


@pytest.mark.parametrize(
    "locale", [pytest.param({}, marks=pytest.mark.long), {"LC_ALL": "C", "PYTHONUTF8": "0"}], ids=["utf-8", "C"]
)
def test_no_name_of_a_file_ends_a_batch_or_breaks_an_output(
    named: Path, tmp_path: Path, locale: dict[str, str]
) -> None:
    environment = os.environ | {"PODEVAL_CACHE": str(tmp_path / "cache")} | locale
    outs = [tmp_path / f"scores{ending}" for ending in (".json", ".csv", ".html", ".parquet")]
    asked = [COMMAND, "score", named, "--metrics", "loudness", *(part for out in outs for part in ("--out", out))]
    done = subprocess.run(asked, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(outs[0].read_text())) == len(NAMES)
    tables = [pd.read_csv(outs[1]), pd.read_parquet(outs[3])]
    for table in tables:
        assert table["file"].nunique() == len(NAMES)
        assert table.loc[table["key"] == "integrated", "value"].notna().all()
    assert b"bad\\udcff\\udcfe.wav" in outs[2].read_bytes()
    files = [named / os.fsdecode(name) for name in NAMES]
    for command in (["score", *files, "--metrics", "loudness", "--json"], ["measure", "loudness", *files, "--json"]):
        done = subprocess.run([COMMAND, *command], capture_output=True, check=False, env=environment)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert (done.returncode, len(lines)) == (0, len(NAMES)), done.stderr
        assert not any(line.get("unscored") or line.get("error") for line in lines)
    labels = [COMMAND, "score", files[2], "--metrics", "loudness", "--labels", tmp_path / "labels.txt"]
    assert subprocess.run(labels, capture_output=True, check=False, env=environment).returncode == 0


def test_a_cell_of_a_table_of_scores_is_no_formula(
    podeval: Podeval, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sound.parent)
    names = ["=cmd.wav", "+1.wav", "@x.wav", "./-x.wav"]
    for name in names:
        Path(name).write_bytes(sound.read_bytes())
    assert podeval("score", *names, "--metrics", "loudness", "--out", "scores.csv").code == 0
    cells = {line.partition(",")[0] for line in Path("scores.csv").read_text().splitlines()[1:]}
    assert cells == {"'=cmd.wav", "'+1.wav", "'@x.wav", "./-x.wav"}


@pytest.mark.every(3)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [("score", "--json"), ("score",), ("measure", "--json")])
def test_a_full_disk_is_no_bug(command: tuple[str, ...], sound: Path, tmp_path: Path) -> None:
    name, *options = command
    asked = [COMMAND, name, *(["loudness", sound] if name == "measure" else [sound, "--metrics", "loudness"]), *options]
    with open("/dev/full", "wb") as full:
        environment = os.environ | {"PODEVAL_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(asked, stdout=full, stderr=subprocess.PIPE, check=False, env=environment)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1] == "podeval: cannot write the output: No space left on device"
    assert b"bug" not in done.stderr


def test_measure_prints_shares_in_percent_and_other_values_in_their_units() -> None:
    from podeval.cli.measure import describe_result
    from podeval.metrics import catalogue
    from podeval.metrics.score import Score

    assert describe_result(catalogue.get("wer"), Score({"wer": 0.0638, "cer": None})) == "wer 6.38 % ↓  cer – ↓"
    assert describe_result(catalogue.get("dnsmos"), Score({"ovrl": 3.2})).startswith("ovrl 3.2 MOS ↑")
