"""A system of the user's own is run without a queue or a document: a folder, a function, a server."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.benchmarks.benchmark import keep_metrics
from podeval.cli.evaluation import tell_unscored
from podeval.errors import BadInput
from podeval.metrics.score import Score, Unscored
from podeval.runs.measure import make_protocols
from podeval.runs.own_system import OwnSystem, list_notes, run_own_system
from podeval.runs.run import RunRequest, reopen_failed
from podeval.runs.run_folder import RunFolder, RunPlan, RunSummary
from podeval.systems.adapters.outputs import OwnOutputs
from podeval.systems.servers.connection import RequestRefused, ServerBusy
from podeval.systems.speech import Ask, OwnMaker, Speech, SpeechFailed, SpokenAnswer, SpokenAnswers, WrittenScript
from tests.fakes.command import refuse_command


def write_wav(path: Path, seconds: float = 1.0, level: float = 0.3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tone = level * np.sin(2 * np.pi * 220 * np.arange(round(seconds * 16_000)) / 16_000)
    soundfile.write(path, tone.astype(np.float32), 16_000)


def run_folder_of(tiny: Any, folder: Path, runs: Path, **changes: Any) -> Any:
    system = OwnSystem(OwnOutputs(folder), "mine", "Mine", supplied=True)
    return run_own_system(
        system, RunRequest(**{"benchmark": tiny.BENCHMARK, "split": "demo", "track": "voice", "runs": runs} | changes)
    )


def counts(summary: Any, metric: str = "loudness") -> tuple[int, int, int, bool]:
    row = next(row for row in summary.metrics if row.metric == metric and not row.slice)
    return row.scored, row.unscored_system, row.unscored_ours, row.rankable


def test_a_folder_of_outputs_is_measured_without_a_document(tiny: Any, tmp_path: Path) -> None:
    for item in tiny.ITEMS:
        write_wav(tmp_path / "mine" / f"{item}.wav")
    summary = run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")
    assert counts(summary) == (3, 0, 0, True)
    run = RunFolder(tmp_path / "runs", "tiny", "demo", "mine")
    assert run.plan().provenance == "outputs supplied"
    output = run.output("one")
    assert (output.duration, output.wall_seconds) == (1.0, None), "nobody knows how long it took"


def test_a_partial_set_is_incomplete_and_is_completed_later(tiny: Any, tmp_path: Path) -> None:
    write_wav(tmp_path / "mine" / "one.wav")
    first = run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")
    assert counts(first) == (1, 2, 0, False)
    reason = next(iter(first.metrics[0].reasons))
    assert "nothing was supplied: no file is named after the item" in reason
    write_wav(tmp_path / "mine" / "two.flac")
    write_wav(tmp_path / "mine" / "three.wav")
    assert counts(run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")) == (3, 0, 0, True)


def test_a_file_that_changes_under_a_run_is_noticed(tiny: Any, tmp_path: Path) -> None:
    for item in tiny.ITEMS:
        write_wav(tmp_path / "mine" / f"{item}.wav")
    run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")
    run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")
    write_wav(tmp_path / "mine" / "two.wav", level=0.1)
    with pytest.raises(BadInput, match="the file of two has changed since it was measured; choose a new name"):
        run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")


def test_a_manifest_names_files_and_times_that_count_apart(tiny: Any, tmp_path: Path) -> None:
    write_wav(tmp_path / "mine" / "sound" / "a.wav")
    line = {"item": "one", "audio": "sound/a.wav", "wall_seconds": 0.5}
    (tmp_path / "mine" / "manifest.jsonl").write_text(json.dumps(line) + "\n")
    assert counts(run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")) == (1, 2, 0, False)
    output = RunFolder(tmp_path / "runs", "tiny", "demo", "mine").output("one")
    assert output.wall_seconds == 0.5


def test_further_seeds_have_files_of_their_own(tiny: Any, tmp_path: Path) -> None:
    for item in tiny.ITEMS:
        write_wav(tmp_path / "mine" / f"{item}.wav")
        write_wav(tmp_path / "mine" / f"{item}.1.wav", level=0.1)
    run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")
    second = run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs", seed=1, repeats=True)
    assert counts(second) == (3, 0, 0, True)
    run = RunFolder(tmp_path / "runs", "tiny", "demo", "mine")
    (repeat,) = run.repeats()
    assert (repeat.path, repeat.plan().seed) == (run.path / "seeds" / "1", 1)
    first, other = (next(iter(folder.results("embedded").values())) for folder in (run, repeat))
    assert first != other
    with pytest.raises(BadInput, match="any of 3 items"):
        run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs", seed=2, repeats=True)


def test_a_folder_with_nothing_of_the_benchmark_is_refused_in_words(tiny: Any, tmp_path: Path) -> None:
    write_wav(tmp_path / "mine" / "episode 1.wav")
    with pytest.raises(BadInput, match=r"any of 3 items \(it contains episode 1.wav\); .*files one\.wav, .*, or write"):
        run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_folder_of_links_is_refused_as_such(tiny: Any, tmp_path: Path) -> None:
    write_wav(tmp_path / "elsewhere.wav")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "one.wav").symlink_to(tmp_path / "elsewhere.wav")
    with pytest.raises(BadInput, match=r"it contains one\.wav \(a link, which is not read"):
        run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs")


def test_only_the_metrics_asked_for_are_measured(tiny: Any, tmp_path: Path) -> None:
    write_wav(tmp_path / "mine" / "one.wav")
    some = keep_metrics(tiny.BENCHMARK, ["loudness"], "voice")
    summary = run_folder_of(tiny, tmp_path / "mine", tmp_path / "runs", benchmark=some)
    assert {row.metric for row in summary.metrics} == {"loudness"}
    with pytest.raises(BadInput, match="does not measure warmth on the track voice; choose among loudness, trouble"):
        keep_metrics(tiny.BENCHMARK, ["warmth"], "voice")


class Fickle(OwnMaker[Any]):
    """Speaks what it is told to, item by item; a server that is down is down once."""

    generation: ClassVar[dict[str, str]] = {"system": "fickle"}

    def __init__(self) -> None:
        self.down = True

    def make_one(self, ask: Any, seed: int) -> Any:
        if ask.id == "two" and self.down:
            raise ServerBusy("no server answers")
        if ask.id == "three":
            return Speech(np.full(16_000, np.nan, np.float32), 16_000, (), 0.1)
        return Speech(np.full(16_000, 0.1, np.float32), 16_000, (), 0.1)


def test_what_a_server_could_not_do_is_done_by_the_next_run(tiny: Any, tmp_path: Path) -> None:
    maker, sentences = Fickle(), []
    request = RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path)
    system = OwnSystem(maker, "fickle", "Fickle", say=sentences.append)
    assert counts(run_own_system(system, request)) == (1, 1, 1, False)
    assert sentences == ["Fickle: two is left for the next run: no server answers"]
    maker.down = False
    assert counts(run_own_system(system, request)) == (2, 1, 0, False)
    result = list(RunFolder(tmp_path, "tiny", "demo", "fickle").results("embedded").values())
    assert sum(isinstance(one, Score) for one in result) >= 4
    reasons = {one.reason for one in result if isinstance(one, Unscored)}
    assert any("NaN or infinite samples" in reason for reason in reasons)


class Mended(OwnMaker[Any]):
    """Fails on one item and is silent on another, until it is mended; remembers what it was asked."""

    generation: ClassVar[dict[str, str]] = {"system": "mended"}

    def __init__(self) -> None:
        self.broken, self.asked = True, list[str]()

    def make_one(self, ask: Any, seed: int) -> Any:
        self.asked.append(ask.id)
        if ask.id == "two" and self.broken:
            raise SpeechFailed("the WAV announces 2147479552 bytes and has 31044")
        level = 0.0 if ask.id == "three" and self.broken else 0.1
        tone = level * np.sin(np.arange(16_000) / 9)
        return Speech(tone.astype(np.float32), 16_000, (), 0.1)


def test_what_failed_is_spoken_and_measured_again_when_asked(tiny: Any, tmp_path: Path) -> None:
    maker = Mended()
    system, request = OwnSystem(maker, "mended", "Mended"), RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path)
    assert counts(run_own_system(system, request)) == (1, 2, 0, False)
    maker.broken = False
    maker.asked.clear()
    assert counts(run_own_system(system, request)) == (1, 2, 0, False)
    assert not maker.asked, "what the system failed on is final"
    run = RunFolder(tmp_path, "tiny", "demo", "mended")
    kept = (run.outputs / "one.json").read_bytes()
    assert counts(run_own_system(system, replace(request, retry=True))) == (3, 0, 0, True)
    assert maker.asked == ["two", "three"]
    assert (run.outputs / "one.json").read_bytes() == kept


def test_a_changed_system_takes_the_place_of_one_that_failed_on_everything(tiny: Any, tmp_path: Path) -> None:
    class Broken(Mended):
        def make_one(self, ask: Any, seed: int) -> Any:
            raise SpeechFailed("my_tts.py: no such model")

    request = RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path)
    assert counts(run_own_system(OwnSystem(Broken(), "mended", "Mended"), request)) == (0, 3, 0, False)
    changed = Mended()
    changed.broken, changed.generation = False, {"system": "mended since"}  # type: ignore[misc]
    system = OwnSystem(changed, "mended", "Mended")
    with pytest.raises(BadInput, match="differs in generation"):
        run_own_system(system, request)
    assert counts(run_own_system(system, replace(request, retry=True))) == (3, 0, 0, True)
    changed.generation = {"system": "mended again"}  # type: ignore[misc]
    with pytest.raises(BadInput, match="differs in generation"):
        run_own_system(system, replace(request, retry=True))


def test_a_retry_that_is_killed_before_it_measures_leaves_nothing_of_the_old_output(tiny: Any, tmp_path: Path) -> None:
    maker = Mended()
    system, request = OwnSystem(maker, "mended", "Mended"), RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path)
    run_own_system(system, request)
    maker.broken = False
    run = RunFolder(tmp_path, "tiny", "demo", "mended")
    reopen_failed(run, "embedded")
    assert (run.output("two"), run.output("three")) == (None, None)
    assert counts(run_own_system(system, request)) == (3, 0, 0, True)


def test_a_cause_is_told_once_however_its_numbers_differ(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = {f"the system produced no audio: the WAV announces 2147479552 bytes and has {n}": 1 for n in range(6)}
    row = SimpleNamespace(slice="", scored=0, unscored_system=6, unscored_ours=0, reasons=reasons)
    rows = [SimpleNamespace(metric=name, **vars(row)) for name in ("wer", "dnsmos")]
    assert not tell_unscored("Mine", cast("RunSummary", SimpleNamespace(metrics=rows)))
    one, final = capsys.readouterr().err.splitlines()
    assert one.startswith("Mine: every metric unscored on 6 of 6 items: for example, the system produced no audio")
    assert "--retry failed" in final


def test_a_podcast_without_music_is_not_said_to_have_failed(capsys: pytest.CaptureFixture[str]) -> None:
    missing = {"no music is heard under speech": 1}
    row = SimpleNamespace(metric="smr", slice="", scored=0, unscored_system=1, unscored_ours=0, reasons=missing)
    assert not tell_unscored("Mine", cast("RunSummary", SimpleNamespace(metrics=[row])))
    assert capsys.readouterr().err.splitlines() == [
        "Mine: smr unscored on 1 of 1 items: no music is heard under speech"
    ]


class Writer(OwnMaker[Any]):
    generation: ClassVar[dict[str, str]] = {"system": "writer"}

    def make_one(self, ask: Any, seed: int) -> WrittenScript:
        return WrittenScript(f"1: {ask.prompt[:20]}\n2: Yes.", None, 0.1, {"whole": False})


def test_scripts_are_written_for_any_split(tmp_path: Path) -> None:
    real_pod = keep_metrics(benchmarks.get("real_pod"), ["distinct_n", "mattr"], "write")
    split = next(split.name for split in real_pod.splits if "write" in split.tracks)
    request = RunRequest(real_pod, split, "write", tmp_path)
    summary = run_own_system(OwnSystem(Writer(), "writer", "Writer"), request)
    total = sum(counts(summary, "mattr")[:3])
    assert counts(summary, "mattr")[0] == total
    assert total > 1
    notes = list_notes(RunFolder(tmp_path, "real_pod", split, "writer"))
    assert f"{total} outputs were cut off at the model's length limit: their ends are missing" in notes


class Answerer(OwnMaker[Any]):
    generation: ClassVar[dict[str, str]] = {"system": "answerer"}

    def make_one(self, ask: Ask, seed: int) -> SpokenAnswers:
        sound = Speech(np.full(8_000, 0.1, np.float32), 16_000, (), 0.1)
        return SpokenAnswers(tuple(SpokenAnswer(turn.id, sound, "Yes.") for turn in ask.user or ()), 0.2)


def test_dialogues_are_answered_turn_by_turn(tmp_path: Path) -> None:
    mtalk = benchmarks.get("mtalk_bench")
    request = RunRequest(mtalk, mtalk.first_split.name, "respond", tmp_path)
    run_own_system(OwnSystem(Answerer(), "answerer", "Answerer"), request)
    run = RunFolder(tmp_path, "mtalk_bench", mtalk.first_split.name, "answerer")
    item = (run.items() or ())[0]
    output = run.output(item.id)
    assert output.answers[0].words == "Yes."
    assert (run.outputs / str(output.answers[0].audio)).is_file()


def test_the_command_takes_exactly_one_system_and_says_so(tiny: Any, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from podeval.cli import app

    def refuse(*words: object) -> str:
        return refuse_command("run", *words, "--out", tmp_path / "runs")

    none = CliRunner().invoke(app, ["run"])
    assert none.exit_code == 2
    assert "name a system, or give one of --outputs" in none.output
    assert "SYSTEM and --python specify several systems" in refuse("espeak_ng", "--python", "a.py:speak")
    assert "give --server too" in refuse("espeak_ng", "--model", "x")
    assert "name the model" in refuse("--server", "http://127.0.0.1:9/v1")
    assert "can only be used with --server" in refuse("espeak_ng", "--api", "chat")
    foreign = refuse("--server", "http://127.0.0.1:9/v1", "--model", "x", "--api", "chat", "--stream")
    assert "--stream cannot be used with the API chat" in foreign
    assert "no server answers" in refuse("--server", "http://127.0.0.1:9/v1", "--model", "x")
    write_wav(tmp_path / "espeak_ng" / "one.wav")
    folder = tmp_path / "espeak_ng"
    assert "comes with podeval; choose another name with --name" in refuse("--outputs", folder, "--benchmark", "tiny")
    assert "lower-case letters" in refuse("--outputs", folder, "--benchmark", "tiny", "--name", "My TTS")


def test_one_line_leads_from_a_python_function_to_a_row(tmp_path: Path) -> None:
    (tmp_path / "my_tts.py").write_text(
        "import numpy as np\n"
        "def speak(turns, voices, language):\n"
        "    return 0.2 * np.sin(np.arange(16000 * len(turns)) / 9), 16000\n"
    )
    program = Path(__file__).parents[1] / "fakes" / "tiny_run.py"
    words = ["run", "--python", "my_tts.py:speak", "--benchmark", "tiny", "--metrics", "loudness", "--name", "first"]
    done = subprocess.run(
        [sys.executable, str(program), *words, "--workers", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "first" in done.stdout
    assert (tmp_path / "runs" / "tiny" / "demo" / "first" / "embedded" / "summary.json").is_file()


def test_a_log_of_the_submitters_own_is_another_protocol(tmp_path: Path) -> None:
    lfs = benchmarks.get("lfs_bench")
    plan = RunPlan(
        benchmark="lfs_bench",
        split=lfs.first_split.name,
        dataset="x",
        track="voice",
        system="mine",
        system_title="Mine",
        system_kind="model",
        generation={},
        seed=0,
    )
    ours = make_protocols(lfs, plan, "embedded", {})
    theirs = make_protocols(lfs, plan.model_copy(update={"provenance": "outputs supplied"}), "embedded", {})
    assert {name for name in ours if ours[name].id != theirs[name].id} == {"rtf"}


def test_what_we_asked_wrongly_is_our_fault_and_is_tried_again(tiny: Any, tmp_path: Path) -> None:
    """A server that refuses a field of ours, and an error that nobody thought of, cost their items alone."""

    class Served(OwnMaker[Any]):
        generation: ClassVar[dict[str, Any]] = {"system": "server"}
        refuses = True

        def make_one(self, ask: Any, seed: int) -> Speech:
            if self.refuses and ask.id == "one":
                raise RequestRefused("http://x answered 400: Unknown name seed")
            if self.refuses and ask.id == "two":
                raise AttributeError("'list' object has no attribute 'get'")
            return Speech(np.full((16_000, 1), 0.1, np.float32), 16_000, (), 1.0)

    maker = Served()
    request = RunRequest(tiny.BENCHMARK, "demo", "voice", tmp_path)
    summary = run_own_system(OwnSystem(maker, "served", "Served"), request)
    assert counts(summary) == (1, 0, 2, False)
    reasons = " ".join(next(row for row in summary.metrics if row.metric == "loudness").reasons)
    assert "answered 400: Unknown name seed" in reasons
    assert "AttributeError" in reasons
    maker.refuses = False
    assert counts(run_own_system(OwnSystem(maker, "served", "Served"), request)) == (3, 0, 0, True)
