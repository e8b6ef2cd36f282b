"""Finished podcasts with their own words: files of other programs, what guards their ranks, and their column group."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.benchmarks.benchmark import keep_metrics
from podeval.board.runs_folder import Index
from podeval.board.view import BoardView, resolve_view
from podeval.errors import BadInput
from podeval.metrics.score import Score, Unscored
from podeval.runs.measure import make_protocols
from podeval.runs.own_system import OwnSystem, run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import RunFolder
from podeval.systems.adapters.outputs import OwnOutputs
from podeval.systems.registry import RATE, PlantedPodcast, mix_music
from podeval.systems.speech import Ask
from tests.runs.test_board import column, rank, write_run

REAL_POD = benchmarks.get("real_pod")
ITEMS = [item.id for item in REAL_POD.items("demo")]


def write_tone(path: Path, seconds: float = 1.0, rate: int = 44_100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tone = 0.3 * np.sin(2 * np.pi * 220 * np.arange(round(seconds * rate)) / rate)
    soundfile.write(path, np.stack([tone, 0.9 * tone], axis=1), rate)


def run_podcasts(folder: Path, runs: Path, metric: str = "loudness", **changes: Any) -> Any:
    benchmark = keep_metrics(REAL_POD, [metric], "podcast")
    system = OwnSystem(OwnOutputs(folder), "mine", "Mine", supplied=True)
    return run_own_system(system, RunRequest(benchmark, "demo", "podcast", runs, **changes))


def output_of(runs: Path, item: str) -> Any:
    return RunFolder(runs, "real_pod", "demo", "mine").output(item)


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("demo_Arts_20", "demo_Arts_20.MP3"),
        ("demo_Arts_20", "Demo arts-20.Flac"),
        ("demo_Arts_20", "The Evolution of Street Art_ From Graffiti to Gallery.mp3"),
        ("demo_Arts_20", "The_Evolution_of_Street_Art__From_Graffiti_to_Gallery.WAV"),
        ("demo_Health_and_Fitness_18", "The crucial role of sleep in overall health.ogg"),
    ],
)
def test_a_file_is_found_as_other_programs_and_systems_spell_it(item: str, name: str, tmp_path: Path) -> None:
    write_tone(tmp_path / "my podcasts" / name)
    (tmp_path / "my podcasts" / "notes on The Evolution of Street Art.txt").write_text("not a recording")
    summary = run_podcasts(tmp_path / "my podcasts", tmp_path / "runs")
    (row,) = [row for row in summary.metrics if not row.slice]
    assert (row.scored, row.unscored_system, row.rankable) == (1, 5, False)
    output = output_of(tmp_path / "runs", item)
    assert output.failed is None
    assert output.duration == pytest.approx(1, abs=0.1)
    assert not output.script, "its words are its own"


def test_two_files_that_could_be_meant_are_refused_and_an_exact_name_is_not(tmp_path: Path) -> None:
    for name in ("demo Arts 20.wav", "DEMO_ARTS_20.flac"):
        write_tone(tmp_path / "mine" / name)
    write_tone(tmp_path / "mine" / f"{ITEMS[0]}.wav")
    run_podcasts(tmp_path / "mine", tmp_path / "runs")
    assert "several files were supplied for one output" in output_of(tmp_path / "runs", "demo_Arts_20").failed
    write_tone(tmp_path / "mine" / "demo_Arts_20.wav")
    run_podcasts(tmp_path / "mine", tmp_path / "runs2")
    assert output_of(tmp_path / "runs2", "demo_Arts_20").failed is None


def test_a_further_seed_is_no_other_item_s_file_and_not_the_topic_s(tmp_path: Path) -> None:
    ask = Ask(id="ep_01", topic="Salt")
    write_tone(tmp_path / "ep_011.wav")
    write_tone(tmp_path / "salt.wav")
    outputs = OwnOutputs(tmp_path)
    assert outputs.find_entry(ask, 0).audio == "salt.wav"
    assert outputs.fingerprint(ask, 1) is None


def test_a_manifest_of_windows_names_files_and_sources(tmp_path: Path) -> None:
    write_tone(tmp_path / "mine" / "ton" / "Folge 1.wav")
    (tmp_path / "mine" / "ton" / "quelle.txt").write_text("Sleep sorts memories.", encoding="utf-16")
    line = {"item": ITEMS[0], "audio": "ton\\Folge 1.wav", "sources": ["ton\\quelle.txt"]}
    content = "\ufeff" + json.dumps(line) + "\r\n"
    (tmp_path / "mine" / "manifest.jsonl").write_bytes(content.encode())
    run_podcasts(tmp_path / "mine", tmp_path / "runs")
    output = output_of(tmp_path / "runs", ITEMS[0])
    assert output.failed is None
    assert output.details["sources"] == ["Sleep sorts memories."]


def test_sources_beside_a_podcast_are_read_and_a_change_of_them_is_noticed(tmp_path: Path) -> None:
    write_tone(tmp_path / "mine" / f"{ITEMS[0]}.wav")
    source = tmp_path / "mine" / f"{ITEMS[0]}.sources.txt"
    source.write_text("Sleep sorts memories.")
    run_podcasts(tmp_path / "mine", tmp_path / "runs")
    assert output_of(tmp_path / "runs", ITEMS[0]).details["sources"] == ["Sleep sorts memories."]
    source.write_text("Sleep does nothing.")
    with pytest.raises(BadInput, match="has changed since it was measured"):
        run_podcasts(tmp_path / "mine", tmp_path / "runs")


def test_nothing_of_a_podcast_is_compared_with_a_script(tmp_path: Path) -> None:
    write_tone(tmp_path / "mine" / f"{ITEMS[0]}.wav")
    run_podcasts(tmp_path / "mine", tmp_path / "runs", only=(ITEMS[0],))
    run = RunFolder(tmp_path / "runs", "real_pod", "demo", "mine")
    (item,) = run.items() or ()
    assert (item.script, item.reference_voices, item.voices) == (None, {}, None)
    protocols = make_protocols(REAL_POD, run.plan(), "embedded", {})
    assert {"wer", "sim", "content_errors"}.isdisjoint(protocols)
    assert {name for protocol in protocols.values() for name in protocol.inputs} == {"recording", "request"}


def test_a_system_without_whole_podcasts_is_not_ranked_and_the_columns_are_a_group_of_their_own(tmp_path: Path) -> None:
    failing = {("podcast_checks", number): Score({"passed": 0.0}) for number in range(2)}
    for name, value in (("good", 0.9), ("fair", 0.5)):
        write_run(tmp_path, name, value, track="podcast", wer=None, changes=_pass(range(6)))
    write_run(tmp_path, "empty", 0.95, track="podcast", changes=_pass(range(6)) | failing)
    write_run(tmp_path, "reader", 0.7)
    rows = column(tmp_path, "integrated_score")
    assert {name: rank(row) for name, row in rows.items()} == {
        "good": (1, 1),
        "fair": (2, 2),
        "empty": None,
        "reader": None,
    }
    assert list(json.loads(rows["empty"]["reasons"])) == [
        "not ranked: 67% of its items pass podcast_checks.passed, but 95% are needed"
    ]
    assert (rows["good"]["metric"], rows["good"]["dimension"]) == ("podcast_loudness", "podcast.loudness")
    assert rows["reader"]["metric"] == "loudness"
    from podeval.runs.board_tables import BOARD, read_table

    view = resolve_view(BoardView(board="real_pod/demo", dimension="podcast"), Index.of(read_table(tmp_path / BOARD)))
    assert "podcast" in view.choices.groups
    assert {key[0] for key in view.keys} == {"good", "fair", "empty"}
    titles = {of.id: of.header for of in view.columns}
    assert titles["podcast_smr.smr"].startswith("SMR")
    assert titles["podcast_dnsmos.ovrl"] == "DNSMOS OVRL ↑ (MOS)"


def _pass(numbers: Any) -> dict[tuple[str, int], Any]:
    return {("podcast_checks", number): Score({"passed": 1.0}) for number in numbers}


def test_a_low_rate_is_measured_once_upsampling_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was refused for its rate is final until then, and measured on the next run."""
    from podeval.runs import measure

    def score(use: Any, inputs: Any) -> Any:
        try:
            inputs["recording"].require_rate(44_100)
        except Exception as refusal:
            return Unscored(str(refusal), "system")
        return Score({key: 1.0 for key in use.keys})

    monkeypatch.setattr(measure, "_score_guarded", score)
    write_tone(tmp_path / "mine" / f"{ITEMS[0]}.wav", rate=24_000)
    for allow, scored in ((False, 0), (False, 0), (True, 1), (False, 1)):
        summary = run_podcasts(tmp_path / "mine", tmp_path / "runs", "smr", only=(ITEMS[0],), allow_upsampling=allow)
        (row,) = [row for row in summary.metrics if not row.slice]
        assert row.scored == scored, (allow, row.reasons)


def test_music_is_as_far_below_the_speech_as_it_is_said_to_be() -> None:
    speech = (0.1 * np.random.default_rng(0).standard_normal(24_000 * 4)).astype(np.float32)
    mix = mix_music(speech, 24_000)
    assert len(mix) == 4 * RATE
    assert np.abs(mix).max() <= 1
    with pytest.raises(Exception, match="there is no podcast on the topic of ep_01"):
        PlantedPodcast(music=True).make_one(Ask(id="ep_01", topic="Salt"), 0)
