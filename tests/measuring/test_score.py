"""`podeval.score`, `podeval.measure` and `podeval.list_metrics`: one recording or many, in any form."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import podeval
from podeval.errors import BadInput
from podeval.measuring.inputs import plan_metrics, read_request
from podeval.metrics import catalogue
from podeval.metrics.catalogue import Metric
from podeval.metrics.score import Timeline, Unscored
from podeval.recording.recording import list_recordings

RATE = 16_000

pytestmark = pytest.mark.usefixtures("own_cache")


def test_a_second_call_opens_nothing_and_gives_the_same(voice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = podeval.score(voice, metrics="loudness,reverb_consistency")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the recording was opened again")

    monkeypatch.setattr("podeval.recording.recording.decode", refuse)
    second = podeval.score(voice, metrics="loudness,reverb_consistency")
    assert second.values == first.values
    assert second.facts == first.facts
    assert second.timelines["loudness"] == first.timelines["loudness"]


def test_a_score_that_was_stopped_goes_on_where_it_was(voice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    real = Metric.score

    def stop_at_the_second(metric: Metric, *rest: Any) -> Any:
        tried.append(metric.name)
        if tried.count("loudness") == 1 and metric.name != "loudness":
            raise KeyboardInterrupt
        return real(metric, *rest)

    monkeypatch.setattr(Metric, "score", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        podeval.score(voice, metrics=["loudness", "reverb_consistency"])
    monkeypatch.setattr(Metric, "score", lambda metric, *rest: tried.append(metric.name) or real(metric, *rest))
    podeval.score(voice, metrics=["loudness", "reverb_consistency"])
    assert tried == ["loudness", "reverb_consistency", "reverb_consistency"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nowhere.wav", "does not exist: check the path"),
        (0.1, "audio must be a path, the bytes of a file"),
        ({"array": np.zeros(9)}, "needs its `sampling_rate`"),
        ([], "nothing to score in an empty list"),
        (np.zeros(16_000), r"samples without their rate .*give \(samples, rate\)"),
        ([0.0, 0.5], r"samples without their rate .*give \(samples, rate\)"),
        (b"", "the recording is empty"),
        (b"no audio", "^the recording "),
        ({}, "an audio object needs"),
        ({"array": np.zeros((2, 2, 2)), "sampling_rate": 8000}, r"not \(2, 2, 2\)"),
        ({"array": ["a"], "sampling_rate": 8000}, "must be numbers"),
        ({"array": np.zeros(5), "sampling_rate": -1}, "needs its `sampling_rate`"),
    ],
    ids=[
        *("missing", "no rate", "no rate in a row", "empty list", "array", "numbers", "no bytes", "text in bytes"),
        *("empty row", "three axes", "no numbers", "negative rate"),
    ],
)
def test_what_is_no_recording_is_refused_with_a_sentence(source: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        podeval.score(source, metrics="loudness")


def test_a_file_that_cannot_be_read_is_an_error_and_not_unscored(two_voices: Path) -> None:
    (two_voices / "broken.wav").write_text("These are words, not a recording. " * 20)
    table = podeval.score(two_voices, metrics="loudness")
    assert [scores.name for scores in table] == [str(two_voices / name) for name in ("one.wav", "two.wav")]
    assert list(table.errors) == [str(two_voices / "broken.wav")]
    assert "is a text file, not audio" in str(table)


def test_many_recordings_have_means_with_intervals(two_voices: Path) -> None:
    table = podeval.score(two_voices, metrics="loudness")
    values = [scores["loudness.integrated"] for scores in table]
    interval = table["loudness.integrated"]
    assert interval.mean == pytest.approx(np.mean(values))
    assert interval.low < min(values) < max(values) < interval.high
    assert len(table.to_pandas()) == sum(len(scores) for scores in table)
    assert table["one.wav"].name.endswith("one.wav")
    text = str(table)
    assert "mean of 2" in text
    assert "one.wav" in text
    assert str(two_voices) not in text
    assert "mean of 2" in table._repr_html_()


def test_the_table_says_value_unit_arrow_word_and_what_is_best(voice: Path) -> None:
    text = str(podeval.score(voice, metrics="loudness"))
    line = next(line for line in text.splitlines() if line.startswith("Loudness ") and "LUFS ↔" in line)
    assert line.endswith("best −18 – −14")
    assert "poor" in line or "good" in line
    assert "voice.wav · 6.0 s · 16 kHz · mono · profile embedded" in text


def test_what_is_not_there_is_left_out_with_what_would_get_it(voice: Path) -> None:
    plan = plan_metrics(read_request())
    assert plan.advice["--text FILE"] == ("wer", "speaker_attribution", "content_errors")
    assert plan.advice["--reference [SPEAKER=]FILE"] == ("sim", "wsim", "timbre_similarity")
    assert "sound_fidelity" in plan.advice["--profile reference"]
    assert {"rtf", "mushra", "arena"}.isdisjoint(plan.left_out)
    named = {metric.name for metric in plan.metrics}
    assert {"dnsmos", "sptd", "loudness"} <= named
    with_text = {metric.name for metric in plan_metrics(read_request(text="Some words.")).metrics}
    assert with_text - named == {
        *("wer", "distinct_n", "mattr", "info_dens", "semantic_div"),
        *("content_errors", "speaker_attribution"),
    }


@pytest.mark.parametrize(
    ("metric", "shell", "python"),
    [
        ("wer", "wer needs the words: --text FILE", "wer needs the words: text=FILE"),
        ("sim", "sim compares with a voice: --reference [SPEAKER=]FILE", "sim compares with a voice: references=FILE"),
        (
            "timbre_consistency",
            "--text SCRIPT with its speakers, or --speakers N",
            "text=SCRIPT with its speakers, or speakers=N",
        ),
        ("sound_fidelity", ": --profile reference", ': profile="reference"'),
    ],
)
def test_what_is_missing_is_advised_in_the_words_of_the_face(voice: Path, metric: str, shell: str, python: str) -> None:
    with pytest.raises(BadInput, match=re.escape(shell)):
        plan_metrics(read_request(metrics=metric))
    for ask in (lambda: podeval.measure(metric, voice), lambda: podeval.score(voice, metrics=metric)):
        with pytest.raises(BadInput, match=re.escape(python)) as refusal:
            ask()
        assert "--" not in str(refusal.value)


def test_a_program_is_advised_its_arguments() -> None:
    advice = plan_metrics(read_request(face="python")).advice
    assert advice["text=FILE"] == ("wer", "speaker_attribution", "content_errors")
    assert not [what for what in advice if what.startswith("--")]


@pytest.mark.parametrize("text", ["word " * 100, "词语" * 60, "words\0 and more", "."])
def test_words_that_are_no_name_of_a_file_are_words(text: str) -> None:
    script = read_request(text=text).script
    assert script
    assert script.text.startswith(text[:5])


def test_words_without_speakers_do_not_say_who_speaks() -> None:
    sptd = catalogue.get("sptd")
    assert read_request(text="Only words.").names_for(sptd) == ("recording",)
    script = [{"speaker": "A", "text": "Hello."}, {"speaker": "B", "text": "Hi."}]
    assert read_request(text=script).names_for(sptd) == ("recording", "script")


def test_the_number_of_speakers_reaches_the_metrics_that_have_use_for_it() -> None:
    assert read_request(speakers=3).chosen_for(catalogue.get("sptd"))["speakers"] == 3
    with pytest.raises(BadInput, match="at least 1, not 0"):
        read_request(speakers=0)


def test_results_of_other_words_are_not_mixed_up(voice: Path) -> None:
    first = podeval.score(voice, text="one two three one", metrics=["loudness", "mattr"])
    second = podeval.score(voice, text="one two three four", metrics=["loudness", "mattr"])
    assert (first["mattr"], second["mattr"]) == (0.75, 1.0)


def test_a_metric_for_other_recordings_is_no_failure_unless_it_was_asked_for(voice: Path) -> None:
    scores = podeval.score(voice, metrics="loudness")
    results = {**scores.results, "smr": Unscored("no music", "system"), "dnsmos": Unscored("too short", "system")}
    fields = {name: getattr(scores, name) for name in scores.__dataclass_fields__} | {"results": results}
    assert podeval.Scores(**fields | {"requested": ()}).failed == {"dnsmos": "too short"}
    assert podeval.Scores(**fields | {"requested": ("smr",)}).failed == {"smr": "no music", "dnsmos": "too short"}


def test_silence_is_unscored_with_its_cause(silence: Path) -> None:
    scores = podeval.score(silence, metrics=["loudness"])
    assert scores.values == {}
    assert scores.unscored["loudness"]["cause"] == "system"
    with pytest.raises(KeyError, match="digital silence"):
        scores["loudness"]


def test_scores_as_json_have_the_shape_of_the_command_line(voice: Path) -> None:
    data = json.loads(json.dumps(podeval.score(voice, metrics="loudness").to_json()))
    assert list(data) == [
        *("file", "duration", "verdict", "scores", "unscored", "notes", "defects", "protocols", "titles", "band"),
    ]
    assert data["duration"] == round(soundfile.info(voice).duration, 3)
    assert set(data["scores"]["loudness"]) == {key.name for key in catalogue.get("loudness").keys}
    assert data["protocols"]["loudness"]["id"].startswith("loudness@")


def test_values_are_asked_for_by_name(voice: Path) -> None:
    scores = podeval.score(voice, metrics="loudness")
    assert scores["loudness"] == scores["loudness.integrated"] == scores.values["loudness.integrated"]
    assert list(scores) == list(scores.values)
    with pytest.raises(KeyError, match=r"choose from loudness\.integrated"):
        scores["loudnes"]
    frame = scores.to_pandas()
    assert list(frame["key"]) == [key.name for key in catalogue.get("loudness").keys]


def test_a_plot_has_one_picture_a_value(voice: Path, tmp_path: Path) -> None:
    scores = podeval.score(voice, metrics="loudness")
    plot = scores.plot("loudness.integrated")
    assert list(plot.pictures) == ["loudness.integrated"]
    assert plot.save(tmp_path / "plot.svg").read_text(encoding="utf-8").count("<polyline") >= 1
    assert "over time" in scores._repr_html_().lower()
    with pytest.raises(BadInput, match="metrics that have such values: loudness"):
        scores.plot("wer")


def test_measuring_gives_one_metric(voice: Path) -> None:
    assert podeval.measure("mattr", "one two two")["mattr"] == pytest.approx(2 / 3)
    assert set(podeval.measure("loudness", voice).results) == {"loudness"}
    with pytest.raises(BadInput, match="variant must be one of standard, podeval"):
        podeval.measure("loudness", voice, variant="other")
    # A parameter of many metrics; measure's own argument of that name has no name.
    with pytest.raises(BadInput, match="loudness has no parameter 'source'"):
        podeval.measure("loudness", voice, source="mix")
    with pytest.raises(BadInput, match="needs a judge"):
        podeval.measure("expressive_richness", voice)
    with pytest.raises(BadInput, match="did you mean 'dnsmos'"):
        podeval.measure("dnmos", voice)


def test_the_list_of_metrics_has_all_of_them() -> None:
    listing = podeval.list_metrics()
    assert [entry.name for entry in listing] == list(catalogue.NAMES)
    assert "dnsmos" in str(listing)
    assert "<td>dnsmos</td>" in listing._repr_html_()


def test_every_metric_says_what_people_or_systems_reach_and_by_whom() -> None:
    for metric in catalogue.load_all_metrics():
        for key in metric.keys:
            ranked = key.better != "informative"
            assert not ranked or bool(key.reach) != bool(key.unreached), (
                f"{metric.name}.{key.name}: no values, no reason"
            )
            assert not key.unreached or len(key.unreached) > 20
            if key.reach:
                assert len(key.reach.source) > 20
                assert key.reach.people or key.reach.systems
                low, high = key.reach.usual
                bounds = key.bounds
                assert low <= high
                assert bounds[0] is None or bounds[0] <= low
                assert bounds[1] is None or high <= bounds[1]


def test_a_timeline_of_words_has_no_seconds() -> None:
    scores = podeval.measure("mattr", " ".join(f"word{number % 150}" for number in range(400)))
    result = scores.results["mattr"]
    assert isinstance(result.timeline, Timeline)
    assert "tokens" in scores.plot("mattr").pictures["mattr.mattr"]


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("words")
    with pytest.raises(BadInput, match="contains no recordings"):
        list_recordings(tmp_path)


def test_the_program_apart_tells_what_it_does_how_far_it_is_and_how_long_it_will_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from podeval.measuring import isolated
    from podeval.measuring.verdict import ReportWords

    now = [100.0]
    monkeypatch.setattr(isolated.time, "monotonic", lambda: now[0])
    told: list[str] = []
    for language in ("en", "zh"):
        teller = isolated.StepTeller(lambda line: told.append(line["what"]), ReportWords(language))
        teller.begin(0.5, "WER")
        for second, what, done in ((1, "transcribing", 0), (1, "transcribing", 5), (41, "transcribing", 80)):
            now[0] += second
            teller(what, done, 220)
        teller("transcribing", 81, 220)  # too soon after the last
        teller("a step that has no name", 5, 6)
        teller("transcribing", 220, 220)
    assert told == [
        "WER",
        "WER · transcribing 0:00 of 3:40",
        "WER · transcribing 0:05 of 3:40",
        "WER · transcribing 1:20 of 3:40, about 1 min 15 s left",
        "WER",
        "WER",
        "WER · 转写 0:00/3:40",
        "WER · 转写 0:05/3:40",
        "WER · 转写 1:20/3:40，约剩 1 分 15 秒",
        "WER",
    ]
