"""The report: one file that plays, reads and prints, whatever a recording is called."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import soundfile

import podeval
from podeval.errors import BadInput
from podeval.measuring.report import encode_sound, join_turns
from podeval.models.interfaces import SpeakerTurn, Word

RATE = 16_000
HOSTILE = "<img src=x onerror=alert(1)>'\"&.wav"

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def page(voice: Path, tmp_path: Path) -> str:
    hostile = voice.rename(tmp_path / HOSTILE)
    return podeval.score(hostile, metrics="loudness").report(tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_hostile_name_is_text(page: str) -> None:
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_nothing_is_fetched_and_only_its_own_script_runs(page: str) -> None:
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page)
    policy = re.search(r"script-src 'sha256-([^']+)'", page)
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)
    assert policy
    assert script
    assert base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode() == policy[1]
    assert "default-src 'none'" in page


def test_its_sound_is_the_recording(page: str, tmp_path: Path, speech_like: Any) -> None:
    sound = re.search(r"data:audio/mpeg;base64,([^\"]+)", page)
    assert sound
    (tmp_path / "sound.mp3").write_bytes(base64.b64decode(sound[1]))
    samples, rate = soundfile.read(tmp_path / "sound.mp3")
    assert rate == RATE
    assert len(samples) / rate == pytest.approx(len(speech_like) / RATE, abs=0.15)


def test_values_protocols_and_sources_are_in_it(page: str) -> None:
    assert "loudness@" in page
    assert "34 clips of real podcasts" in page
    assert page.count("<svg") > 1


def test_a_recording_that_cannot_be_played_has_a_report_all_the_same(silence: Path, tmp_path: Path) -> None:
    page = podeval.score(silence, metrics="loudness").report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<audio" not in page
    assert "digital silence" in page


def test_many_recordings_are_one_file_with_the_means_first(two_voices: Path, tmp_path: Path) -> None:
    table = podeval.score(two_voices, metrics="loudness")
    page = table.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.index("mean of 2") < page.index('<article class="report" id="recording-0"')
    assert page.count("<article") == 1 + 2
    assert 'href="#recording-1"' in page


def test_a_word_is_said_by_whoever_says_most_of_it_or_spoke_before() -> None:
    speakers = [SpeakerTurn("A", 0.0, 0.3), SpeakerTurn("B", 0.3, 0.7), SpeakerTurn("A", 0.7, 1.0)]
    (turn,) = join_turns([Word("well", 0.0, 1.0), Word("yes", 1.1, 1.3)], speakers)
    assert (turn.speaker, turn.text, turn.end) == ("A", "well yes", 1.3)


def test_a_language_without_texts_is_refused(voice: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="choose en or zh"):
        podeval.score(voice, metrics="loudness").report(tmp_path / "r.html", language="fr")


def test_a_folder_that_is_not_there_is_named(voice: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        podeval.score(voice, metrics="loudness").report(tmp_path / "none" / "r.html")


def test_a_rate_that_mp3_has_not_is_brought_down(speech_like: Any) -> None:
    from podeval.recording import Recording

    address = encode_sound(Recording.from_samples(speech_like[: RATE * 2], 96_000))
    assert address.startswith("data:audio/mpeg;base64,")
