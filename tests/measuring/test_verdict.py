"""What is said of a recording first: a verdict, its defects, ten lines; and the words that a value gets."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import podeval
from podeval.measuring.recording_results import RecordingFacts
from podeval.measuring.verdict import LINES, ReportWords
from podeval.metrics import catalogue
from podeval.metrics.score import Defect, Score, Unscored
from podeval.metrics.standing import choose_word
from tests.measuring.material import SCRIPT, make_recordings

GOLDEN = Path(__file__).parent / "golden"
NUMBER = re.compile(r"\d+(?:\.\d+)?")

pytestmark = pytest.mark.usefixtures("own_cache")


def make_scores(
    values: Mapping[str, float], *defects: Defect, notes: Mapping[str, Any] | None = None
) -> podeval.Scores:
    """Make scores of a minute of sound in which there was a script of a hundred words."""
    grouped: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        metric, _, key = name.partition(".")
        grouped.setdefault(metric, {})[key] = value
    known = {"seconds_sounding": 60.0, "reference_length": 100, **(notes or {})}
    results = {metric: Score(of, known) for metric, of in grouped.items()}
    return podeval.Scores("talk.wav", results, defects=defects, facts=RecordingFacts(60.0, 24_000, 1))


CLEAN = {
    "wer.wer": 0.02,
    "content_errors.errors_per_1000": 0.0,
    "distillmos.distillmos": 4.4,
    "dnsmos.ovrl": 3.3,
    "integrity.faults_per_hour": 0.0,
    "loudness.integrated": -16.0,
}


def test_defects_come_first_then_what_is_poor_then_the_rest() -> None:
    hole, again = (
        Defect("hole", 17.2, 17.5, "0.30 s of digital silence"),
        Defect("repeated", 26.5, 27.5, "said again: so"),
    )
    damaged = {**CLEAN, "integrity.faults_per_hour": 60.0, "content_errors.errors_per_1000": 30.0}
    scores = make_scores({**damaged, "loudness.integrated": -24.2}, hole, again)
    assert scores.verdict == (
        "2 defects: 0.30 s of silence at 0:17.2; words repeated at 0:26.5. "
        "Quiet for a podcast (−24.2 LUFS, target −16). Everything else is usual."
    )
    assert str(scores).index("2 defects") < str(scores).index("0:17.2 to 0:17.5") < str(scores).index("DNSMOS")
    assert "2 处缺陷：0:17.2 处0.30 秒静音；0:26.5 处重复。" in scores.write_verdict(ReportWords("zh"))


def test_a_clean_recording_is_said_to_be_one_and_what_was_not_checked_is_said() -> None:
    assert make_scores(CLEAN).verdict == "No defects were found. Everything is usual or good."
    unread = {name: value for name, value in CLEAN.items() if not name.startswith(("wer", "content"))}
    assert make_scores(unread).verdict.startswith("No defects were found in the sound; without a script its words were")
    assert make_scores({"mattr.mattr": 0.7}).verdict == "No value here has a usual range to compare it with."
    absent = Unscored("no weights", "ours")
    assert "failed: sptd" in podeval.Scores("talk.wav", {"sptd": absent}).verdict


def test_music_is_named_and_is_no_defect() -> None:
    scores = make_scores(CLEAN, notes={"music": [[0.0, 49.3]]})
    assert "Music 0:00–0:49." in scores.verdict
    assert scores.defects == ()
    over_music = make_scores({**CLEAN, "dnsmos.ovrl": 2.0}, notes={"stem": {"music_seconds": 49.3}})
    assert "Poor" not in over_music.verdict, "music is noise to DNSMOS"


def test_many_faults_of_a_kind_are_one_phrase_and_a_rate_is_a_count() -> None:
    clicks = [Defect("click", float(at), at + 0.001, "a click") for at in range(5)]
    scores = make_scores({**CLEAN, "integrity.faults_per_hour": 300.0}, *clicks)
    assert "5 defects: a click 5 times (0:00.0, 0:01.0, 0:02.0 …)." in scores.verdict
    (line,) = (line for line in str(scores).splitlines() if line.startswith("Faults"))
    assert re.split(r"\s{2,}", line)[1] == "5 in 1 min 00 s"
    assert scores.to_json()["scores"]["integrity"]["faults_per_hour"] == 300.0


def test_no_recording_with_a_fault_is_called_better_than_people() -> None:
    better = {**CLEAN, "dnsmos.ovrl": 4.0}
    assert "good" in {row.word for row in make_scores(better).rows}
    hole = Defect("hole", 1.0, 1.3, "0.30 s of digital silence")
    words = {row.name: row.word for row in make_scores(better, hole).rows}
    assert (words["dnsmos.ovrl"], words["distillmos.distillmos"], words["loudness.integrated"]) == ("", "usual", "good")


def test_equal_error_rates_never_get_opposite_words() -> None:
    wer, attribution = catalogue.get("wer"), catalogue.get("speaker_attribution")
    rates = [(wer, wer.headline), *((attribution, key) for key in attribution.keys if key.name == "cpwer")]
    for rate in (step / 1000 for step in range(300)):
        assert {choose_word(metric, key, rate) for metric, key in rates} != {"good", "poor"}, rate


def test_a_word_rests_on_this_version_and_this_kind_of_recording_and_says_on_what() -> None:
    for metric in catalogue.load_all_metrics():
        for key in metric.keys:
            if key.reach and not key.reach.version:
                assert key.ideal or choose_word(metric, key, key.reach.usual[1]) == "", f"{metric.name}.{key.name}"
            if key.reach and key.reach.version:
                assert key.reach.version == metric.version, f"{metric.name}.{key.name} was measured by another version"
                assert key.reach.n >= 9
    band = make_scores(CLEAN).to_json()["band"]
    assert band["dnsmos"]["ovrl"]["word"] == "usual"
    assert band["dnsmos"]["ovrl"]["n"] == 85
    assert "34 clips of real podcasts" in band["dnsmos"]["ovrl"]["material"]
    assert "(n = 85)" in make_scores(CLEAN)._repr_html_()


def test_the_lines_that_are_shown_first_are_values_of_metrics() -> None:
    names = {f"{metric.name}.{key.name}" for metric in catalogue.load_all_metrics() for key in metric.keys}
    assert set(LINES) <= names
    text = str(make_scores({**CLEAN, "dnsmos.sig": 3.5}))
    assert "1 more values: --all" in text
    assert "2.0 %" in text
    assert "dnsmos.ovrl" not in text


def compare(found: str, expected: str) -> None:
    """Compare texts: words exactly, and numbers to two units of their last printed digit."""
    assert NUMBER.sub("#", re.sub(r" +", " ", found)) == NUMBER.sub("#", re.sub(r" +", " ", expected))
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True):
        assert float(one) == pytest.approx(float(other), abs=2.1 * 10 ** -len(other.partition(".")[2])), (one, other)


@pytest.mark.models
@pytest.mark.long
@pytest.mark.parametrize("name", ["clean", "damaged", "music", "espeak"])
def test_the_whole_text_of_a_recording_is_as_a_reader_has_judged_it(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.getbasetemp() / "verdicts"
    if not folder.is_dir():
        folder.mkdir()
        make_recordings(folder)
    monkeypatch.chdir(folder)
    compare(str(podeval.score(f"{name}.wav", text=SCRIPT)) + "\n", (GOLDEN / f"{name}.txt").read_text(encoding="utf-8"))
