"""Reference voices travel with a script: to the model that speaks it, to metrics that compare voices, to protocols."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.runs.item_inputs import gather_inputs
from podeval.runs.measure import list_conditions, make_protocols
from podeval.runs.run_folder import Output, RunPlan
from podeval.submissions.benchmark_entries import RunEntry, ask_of, list_entries, list_possible_runs, write_asks
from podeval.systems.adapters.presets import assign_voices
from podeval.systems.speech import Ask
from podeval.systems.submission import Submission

REAL_POD = benchmarks.get("real_pod")
TOPICS = REAL_POD.items("topics")
ENTRY = RunEntry("real_pod", "topics", "voice")


def test_every_speaker_of_a_script_comes_with_a_voice_beside_the_items(tmp_path: Path) -> None:
    file = write_asks(ENTRY, TOPICS, tmp_path / "items")
    asks = [Ask.model_validate_json(line) for line in file.read_text("utf-8").splitlines()]
    assert len(asks) == 51
    for ask, item in zip(asks, TOPICS, strict=True):
        script = ask.spoken()
        assert tuple(assign_voices(script.speakers, ask.voices, ())) == script.speakers
        for speaker, reference in ask.voices.items():
            voice = item.reference_voices[speaker]
            assert reference.text == voice.words
            assert (file.parent / reference.audio).read_bytes() == voice.recording().read_bytes()
    recordings = [path for path in file.parent.iterdir() if path != file]
    assert len(recordings) == 24, "each recording is there once"


def test_a_script_without_voices_comes_with_none(tmp_path: Path) -> None:
    ask = ask_of(RunEntry("real_pod", "demo", "voice"), REAL_POD.items("demo")[0], tmp_path)
    assert ask.voices == {}


def test_metrics_are_given_the_voices_once_and_by_speaker(tmp_path: Path) -> None:
    item = TOPICS[1]
    script = tuple(item.script.to_json()) if item.script else ()
    inputs = gather_inputs(item, Output(item=item.id, script=script), tmp_path, "embedded")
    voices = inputs["reference_voices"]
    assert list(voices) == ["Agnes", "Tariq", "Harold"]
    assert inputs["reference_voices"] is voices
    assert voices["Tariq"].duration > 3


def test_protocols_tell_given_voices_from_own() -> None:
    def make(split: str, voice: str) -> Any:
        content = f"podeval/real_pod@{REAL_POD.split(split).content}"
        plan = RunPlan(
            benchmark="real_pod", split=split, dataset=content, track="voice", system="s", system_title="S",
            system_kind="model", generation={}, seed=0,
        )  # fmt: skip
        output = Output(item="x", details={"voices": {"Agnes": voice}})
        return make_protocols(REAL_POD, plan, "embedded", list_conditions(plan, [output]))

    demo, own, given = make("demo", "own"), make("topics", "own 0"), make("topics", "reference")
    assert demo["wer"].to_json()["generation"]["voices"] == "own"
    assert own["wer"].to_json()["generation"]["voices"] == "own"
    assert given["wer"].to_json()["generation"]["voices"] == "given"
    assert own["sim"].id == given["sim"].id, "both share a column, which the one with given voices should win"
    assert {"sim", "timbre_similarity", "wsim", "pace", "turn_taking"} == given.keys() - demo.keys()


def test_nobody_enters_with_the_trial_or_for_listening(make_document: Callable[..., dict[str, Any]]) -> None:
    submission = Submission.model_validate(make_document(revision="0" * 40))
    assert list_entries(submission) == (ENTRY,)
    places = {entry.split for entry in list_possible_runs(submission)}
    assert places >= {"demo", "topics", "spontaneous"}, "what was published before is still found"
