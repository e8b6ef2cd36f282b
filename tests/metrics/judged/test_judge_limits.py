"""What a judge may use: caps, subsets and pilots of runs, files and battles, and what is said and kept of it."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from podeval.cli import app, judge_limits
from podeval.errors import BadInput, PodevalError
from podeval.files import append_lines, read_lines
from podeval.judges.trial_questions import make_tones
from podeval.runs.judge_usage import FILE, sum_usage
from podeval.runs.run_folder import RunFolder, RunSummary
from podeval.stats.sequential import choose_pilot, project_half_width
from tests.fakes.scripted_server import Answer, Call, ScriptedServer
from tests.fakes.waiting import wait_until
from tests.metrics.judged.test_script_quality import quality

QUOTE = "Good morning to you"
WRITER = f"""
def write(prompt, language):
    return "A: " + " ".join(prompt.split())[:90] + "\\nB: {QUOTE}, and what a day it is."
"""
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1150}
DETAILS = {"prompt_tokens_details": {"audio_tokens": 400}}
SEED = json.dumps([{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.', "status": "X"}}])


@dataclass
class PricedJudge:
    """A judge with a price at a server, its file, and the folder of its records."""

    server: Any
    file: Path
    records: Path

    @property
    def options(self) -> list[str]:
        return ["--judge", str(self.file), "--records", str(self.records)]


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PricedJudge]]:
    """Start a judge whose request costs 1 and whose answer 1.5, half of that for 50 thoughts, and its script."""
    monkeypatch.delenv("PODEVAL_JUDGE_KEY", raising=False)
    running: list[ScriptedServer] = []

    def start(answer: Callable[[Call], Any] = lambda call: json.dumps(quality(quote=QUOTE))) -> PricedJudge:
        def script(call: Call) -> Answer:
            reply = answer(call)
            return reply if isinstance(reply, Answer) else Answer(reply, usage={**USAGE, **DETAILS})

        server = ScriptedServer(script).__enter__()
        running.append(server)
        file = tmp_path / f"judge-{len(running)}.yaml"
        price = "{prompt: 1000, answer: 10000, audio: 1000, thinking: 10000}"
        fields = {"model": "m", "endpoint": server.url, "hears": "true", "price": price}
        lines = {"backend": "endpoint", "sampling": "{max_tokens: 256}", **fields}
        file.write_text("".join(f"{name}: {value}\n" for name, value in lines.items()), "utf-8")
        return PricedJudge(server, file, tmp_path / f"records-{len(running)}")

    yield start
    for server in running:
        server.__exit__(None, None, None)


def run(*arguments: str | Path, code: int | None = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, PodevalError):
        raise result.exception
    assert code in (None, result.exit_code), result.output
    return result


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A run of PodBench's sample of six requests, which a judge reads."""
    (tmp_path / "writer.py").write_text(WRITER, "utf-8")
    bench = ["--benchmark", "podbench", "--metrics", "script_quality", "--out", str(tmp_path / "runs")]
    return ["run", "--python", f"{tmp_path / 'writer.py'}:write", *bench, "--workers", "1", "--name", "mine"]


def read_run(tmp_path: Path) -> tuple[dict[str, Any], RunSummary]:
    """What was used for the run by metric, and its summary, which has the same."""
    folder = RunFolder(tmp_path / "runs", "podbench", "sample", "mine")
    (summary,) = folder.summaries()
    usage = sum_usage(folder, "embedded", summary.protocols)
    assert summary.provenance["judge_usage"] == usage
    return usage["script_quality"], summary


def test_a_pilot_foretells_and_the_run_goes_on_from_it(
    priced: Callable[..., PricedJudge], command: list[str], tmp_path: Path
) -> None:
    def answer(call: Call) -> str:
        # Each script is a little better than the one before.
        scores = {"substance": [5 + call.number, 6, 5, 4, 3.5], "narrative": [4, 7, 5, 3], "naturalness": [11, 6]}
        return json.dumps(quality(scores, QUOTE))

    judge = priced(answer)
    said = run(*command, *judge.options, "--pilot", "--limit", "3")
    assert len(judge.server.calls) == 3
    assert "3 items are left for a later run" in said.stderr
    used = "3 calls, 3000 tokens in requests (1200 of them audio) and 450 in answers (150 of them reasoning), cost 7.5"
    assert f"judge: {used}" in said.stderr
    assert "the pilot used 3 of 6 items" in said.stderr
    assert "judge, about: 6 calls, 6000 tokens in requests" in said.stderr
    assert "cost 15" in said.stderr
    (low, high, half) = re.findall(
        r"script_quality\.substance \S+ \[(\S+), (\S+)\] with 3, about ±(\S+) with all", said.stderr
    )[0]
    expected = project_half_width((float(high) - float(low)) / 2, 3, 6)
    assert float(half) == pytest.approx(expected, rel=0.1)
    usage, summary = read_run(tmp_path)
    assert (usage["calls"], usage["audio_tokens"], usage["thinking_tokens"]) == (3, 1200, 150)
    assert usage["cost"] == pytest.approx(7.5)
    (row,) = [row for row in summary.metrics if row.metric == "script_quality" and not row.slice]
    assert (row.scored, row.unscored_ours, row.rankable) == (3, 3, False)
    # The rest is asked, and the run remembers what the whole cost.
    run(*command, *judge.options)
    assert len(judge.server.calls) == 6
    usage, _ = read_run(tmp_path)
    assert (usage["calls"], usage["cost"]) == (6, pytest.approx(15.0))


@pytest.mark.every(2)
@pytest.mark.parametrize("seeds", [1, 2])
def test_a_pilot_that_a_cap_stops_foretells_from_what_was_judged(
    priced: Callable[..., PricedJudge], command: list[str], tmp_path: Path, seeds: int
) -> None:
    writer = WRITER.replace("language)", "language, seed)").replace("prompt.split()", "(str(seed), *prompt.split())")
    (tmp_path / "writer.py").write_text(writer, "utf-8")
    options = ["--pilot", "--limit", "4", "--max-calls", str(4 * seeds - 2), "--judge-workers", "1"]
    said = run(*command, *priced().options, *options, "--seeds", str(seeds), code=1).stderr
    assert f"judge, about: {6 * seeds} calls, {6000 * seeds} tokens in requests" in said
    assert f"cost {15 * seeds}\n" in said
    assert "the budget was used up before 2 items of the pilot were judged" in said


@pytest.mark.parametrize(("cap", "calls"), [(["--max-calls", "2"], 2), (["--max-cost", "12"], 4)])
def test_a_cap_leaves_the_rest_of_a_run_for_a_later_one(
    priced: Callable[..., PricedJudge], command: list[str], tmp_path: Path, cap: list[str], calls: int
) -> None:
    judge = priced()
    said = run(*command, *judge.options, *cap, "--judge-workers", "1", code=1)
    assert 1 <= len(judge.server.calls) <= calls
    assert "the budget is used up" in said.stderr
    made = len(judge.server.calls)
    run(*command, *judge.options)
    assert len(judge.server.calls) == 6
    assert read_run(tmp_path)[0]["calls"] == 6
    assert made < 6


def test_a_refused_parameter_is_refused_once_in_a_run_and_noted_in_its_protocol(
    priced: Callable[..., PricedJudge], command: list[str], tmp_path: Path
) -> None:
    def answer(call: Call) -> Any:
        if "seed" in call.body:
            return Answer(status=400, body=SEED)
        return json.dumps(quality(quote=QUOTE))

    judge = priced(answer)
    first = [*judge.options, "--judge-workers", "1", "--limit", "2"]
    run(*command, *first)
    _, before = read_run(tmp_path)
    run(*command, *judge.options, "--judge-workers", "1")
    assert len(judge.server.calls) == 7
    _, summary = read_run(tmp_path)
    (protocol,) = [one for one in summary.protocols.values() if one["metric"] == "script_quality"]
    assert protocol["unsent"] == ["seed"]
    assert before.protocols.keys() == summary.protocols.keys()
    # What is in the run's folder says so too, and so does a file that is measured.
    folder = RunFolder(tmp_path / "runs", "podbench", "sample", "mine")
    assert folder.protocols("embedded")[protocol["id"]]["unsent"] == ["seed"]
    (tmp_path / "s.txt").write_text("A: Good morning.\nB: Good morning to you.", "utf-8")
    line = json.loads(run("measure", "script_quality", tmp_path / "s.txt", "--json", *judge.options).stdout)
    assert line["protocol"]["unsent"] == ["seed"]


@pytest.mark.long
def test_pilots_by_two_protocols_in_one_folder_do_not_add_up(
    priced: Callable[..., PricedJudge], command: list[str], tmp_path: Path
) -> None:
    first, second, pilot = priced(), priced(), ["--pilot", "--limit", "3"]
    second.file.write_text(second.file.read_text("utf-8").replace("model: m\n", "model: other\n"), "utf-8")
    run(*command, *first.options, *pilot)
    said = run(*command, *second.options, *pilot).stderr
    assert len(second.server.calls) == 3
    assert "judge, about: 6 calls, 6000 tokens in requests" in said, "three for three of six, not six"
    folder = RunFolder(tmp_path / "runs", "podbench", "sample", "mine")
    path = folder.path / "embedded" / FILE
    lines = read_lines(path)
    protocols = {line["protocol"]: line["judge"] for line in lines}
    assert len(lines) == 6
    assert len(protocols) == 2
    for protocol, judge in protocols.items():
        used = sum_usage(folder, "embedded", [protocol])["script_quality"]
        assert (used["calls"], used["judge"]) == (3, judge)
    # A line of before protocols were kept counts, because nobody knows of what it is.
    append_lines(path, [{name: value for name, value in lines[0].items() if name != "protocol"}])
    assert sum_usage(folder, "embedded", protocols)["script_quality"]["calls"] == 7


def test_a_run_that_is_killed_counts_each_call_once(
    priced: Callable[..., PricedJudge], command: list[str], tmp_path: Path
) -> None:
    held = threading.Event()

    def answer(call: Call) -> str:
        if call.number == 3:
            held.wait(60)
        return json.dumps(quality(quote=QUOTE))

    judge = priced(answer)
    arguments = [*command, *judge.options, "--judge-workers", "1"]
    process = subprocess.Popen([sys.executable, "-m", "podeval", *arguments], stderr=subprocess.DEVNULL)
    wait_until(lambda: len(judge.server.calls) == 4)
    process.kill()
    process.wait()
    held.set()
    folder = RunFolder(tmp_path / "runs", "podbench", "sample", "mine")
    (line, *_) = read_lines(folder.path / "embedded" / FILE)
    assert sum_usage(folder, "embedded", [line["protocol"]])["script_quality"]["calls"] == 3
    run(*arguments)
    assert len(judge.server.calls) == 7
    usage, _ = read_run(tmp_path)
    assert (usage["calls"], usage["from_records"]) == (6, 3)


def test_used_tokens_are_told_during_the_work(
    priced: Callable[..., PricedJudge], command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_limits, "PAUSE", 0.0)
    said = run(*command, *priced().options)
    counts = [int(count) for count in re.findall(r"judge, so far: (\d+) calls", said.stderr)]
    assert counts == sorted(counts)
    assert counts[-1] == 6


@pytest.fixture
def scripts(tmp_path: Path) -> list[Path]:
    """Four scripts in each of two folders."""
    paths = [tmp_path / folder / f"{number}.txt" for folder in "ab" for number in range(4)]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"A: Good morning number {number}.\nB: Good morning to you.", "utf-8")
    return paths


def test_files_are_limited_sampled_and_capped(priced: Callable[..., PricedJudge], scripts: list[Path]) -> None:
    judge = priced()
    first = run("measure", "script_quality", *scripts, *judge.options, "--limit", "3", "--json").stdout
    assert [json.loads(line)["file"] for line in first.splitlines()] == [str(path) for path in scripts[:3]]
    pilot = ("measure", "script_quality", *scripts, "--pilot")
    said = run(*pilot, *priced().options, "--limit", "2", "--json")
    assert {json.loads(line)["file"].split("/")[-2] for line in said.stdout.splitlines()} == {"a", "b"}
    assert "the pilot used 2 of 8 items" in said.stderr
    assert "judge, about: 8 calls, 8000 tokens in requests" in said.stderr
    capped = run("measure", "script_quality", *scripts, *priced().options, "--max-calls", "3", code=1)
    assert capped.stdout.count("the budget is used up") == 5
    stopped = run(*pilot, *priced().options, "--limit", "4", "--max-calls", "1", "--json", code=1).stderr
    assert "judge, about: 8 calls, 8000 tokens in requests" in stopped
    again = run("measure", "script_quality", *scripts, *judge.options, "--pilot", "--limit", "3", code=None)
    assert "judge: " in again.stderr


def test_a_pilot_from_records_knows_no_cost(priced: Callable[..., PricedJudge], scripts: list[Path]) -> None:
    judge = priced()
    run("measure", "script_quality", *scripts, *judge.options)
    said = run("measure", "script_quality", *scripts, *judge.options, "--pilot", "--limit", "4")
    assert "unknown, because every answer came from records" in said.stderr
    assert "0 calls" in said.stderr


def test_battles_are_limited_sampled_and_capped(priced: Callable[..., PricedJudge], tmp_path: Path) -> None:
    files = []
    for system in ("Raven", "Lark", "Owl"):
        for number in range(4):
            turn = {"user": "And the weather?", "answer": f"{system} says {number}."}
            content = {"id": f"semantic-{number}-1", "dimension": "semantic", "system": system, "turns": [turn]}
            path = tmp_path / f"{system}-{number}.json"
            path.write_text(json.dumps(content), "utf-8")
            files.append(path)
    judge = priced(lambda call: '{"reason": "r", "winner": "A"}')
    said = run("judge", "battles", *files, *judge.options, "--pilot", "--limit", "6")
    pairs = [(line["system_a"], line["system_b"]) for line in map(json.loads, said.stdout.splitlines())]
    assert sorted(map(pairs.count, set(pairs))) == [2, 2, 2], "two battles of each pair"
    assert "the pilot used 6 of 12 items" in said.stderr
    assert "judge, about: 24 calls" in said.stderr
    assert re.search(r"Raven over Lark 0\.5 \[\S+, \S+\] with 2, about ±\S+ with all", said.stderr)
    assert len(run("judge", "battles", *files, *judge.options, "--limit", "2").stdout.splitlines()) == 2
    for wrong in (["--per-dimension", "5"], ["--pairing", "mtalk", "--limit", "5"], ["--pairing", "mtalk", "--pilot"]):
        with pytest.raises(BadInput, match="--per-dimension needs --pairing mtalk"):
            run("judge", "battles", *files, *judge.options, *wrong)
    capped = run(
        "judge",
        "battles",
        *files,
        *priced(lambda call: '{"reason": "r", "winner": "A"}').options,
        "--max-cost",
        "20",
        code=1,
    )
    assert "the budget is used up" in capped.stderr
    assert capped.stdout.splitlines()


def test_caps_without_a_judge_or_price_are_refused_before_anything_is_made(
    priced: Callable[..., PricedJudge], command: list[str], tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="add --judge"):
        run(*command, "--max-cost", "1")
    with pytest.raises(BadInput, match="the cost of m cannot be limited"):
        run(*command, "--judge", f"m@{priced().server.url}", "--max-cost", "1")
    with pytest.raises(BadInput, match="above 0"):
        run(*command, *priced().options, "--max-cost", "nan")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("count", [1, 7, 20, 99, 100, 300])
def test_each_stratum_has_its_share_of_a_pilot(count: int) -> None:
    strata = ["a"] * 50 + ["b"] * 30 + ["c"] * 20
    chosen = choose_pilot(strata, [str(number) for number in range(100)], count)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(count, 100)
    for stratum in "abc":
        share = sum(strata[i] == stratum for i in chosen)
        assert abs(share - strata.count(stratum) * len(chosen) / 100) <= 1
    assert choose_pilot([], [], 5) == []


def count_tones(samples: Any) -> int:
    loud = abs(samples[::100]) + abs(samples[50::100]) > 0.01
    return int((loud[1:] & ~loud[:-1]).sum())


def test_check_asks_two_questions_and_prints_what_works_at_what_price(priced: Callable[..., PricedJudge]) -> None:
    def answer(call: Call) -> Any:
        if "seed" in call.body:
            return Answer(status=400, body=SEED)
        return json.dumps({"count": 3 if isinstance(call.body["messages"][1]["content"], list) else 7})

    judge = priced(answer)
    said = run("report", "judge", judge.file, "--probe").stdout
    assert len(judge.server.calls) == 3, "one of them refused"
    assert "text: works: the judge counted 7" in said
    assert "audio: works: the judge counted 3" in said
    assert "cost 2.5; a thousand such questions cost 2500" in said
    assert "sent as json_schema; fields omitted because the judge refuses them: seed" in said
    lines = [json.loads(line) for line in run("report", "judge", judge.file, "--probe", "--json").stdout.splitlines()]
    assert [(line["question"], line["works"], line["used"]["calls"]) for line in lines] == [
        ("text", True, 1),
        ("audio", True, 1),
    ]
    assert count_tones(make_tones().samples) == 3


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ('{"count": 2}', "does not work: the judge counted 2, but there are 7"),
        ("Bananas.", "does not work: the judge gave no usable answer in 1 try"),
        (Answer(status=401, body='{"error": {"message": "bad key"}}'), "answered 401: bad key; set PODEVAL_JUDGE_KEY"),
        (
            Answer(status=500, body="audio input is not supported - hint: provide the mmproj"),
            "audio input is not supported",
        ),
    ],
)
def test_check_says_what_does_not_work_and_ends_with_1(
    priced: Callable[..., PricedJudge], reply: Any, words: str
) -> None:
    judge = priced(lambda call: reply)
    assert words in run("report", "judge", judge.file, "--probe", code=1).stdout


def test_check_of_a_judge_that_does_not_hear_asks_about_a_text_alone(priced: Callable[..., PricedJudge]) -> None:
    judge = priced(lambda call: '{"count": 7}')
    judge.file.write_text(judge.file.read_text("utf-8").replace("hears: true", "hears: false"), "utf-8")
    assert (
        "audio: not asked: the judge is not declared to accept audio"
        in run("report", "judge", judge.file, "--probe").stdout
    )
    assert len(judge.server.calls) == 1
    with pytest.raises(BadInput, match="leave out --records"):
        run("report", "judge", judge.file, "--probe", "--records", judge.records)
