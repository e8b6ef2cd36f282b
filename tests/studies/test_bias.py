"""The bias study finds effects that were planted, and none where there is none."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.metrics import catalogue
from podeval.models import registry
from podeval.recording import recording as analysis_recording
from podeval.recording.cache import Cache
from studies import bias, bias_music
from studies.bias_chinese import PINYIN, spell
from studies.bias_effects import partial_effects
from studies.bias_material import (
    CHANGES,
    SENTENCES,
    SHORT_LINES,
    StudyClip,
    clips,
    dialogue_clips,
    minute_clips,
    pairs,
    texts,
    turn_clips,
    voices,
)
from studies.bias_picture import draw

Vector = np.ndarray[Any, Any]


def rows() -> list[dict[str, str]]:
    """Ten voices of one engine: a room takes 0.3, a codec nothing, women have 0.2 more."""
    random = np.random.default_rng(1)
    made = []
    for number in range(10):
        sex = "female" if number % 2 else "male"
        quality = 3 + random.normal(0, 0.05) + (0.2 if sex == "female" else 0)
        for factor, level, change in (("plain", "plain", 0.0), ("room", "0.6 s", -0.3), ("codec", "Opus", 0.0)):
            value = quality + change + random.normal(0, 0.02)
            made.append(
                {"voice": f"v{number}", "engine": "x", "sex": sex, "factor": factor, "level": level, "m.k": f"{value}"}
            )
    return made


def test_partial_effects_are_those_that_were_planted() -> None:
    effects = {(effect.factor, effect.level): effect for effect in partial_effects(rows())}
    room, codec, sex = effects["room", "0.6 s"], effects["codec", "Opus"], effects["sex", "female − male"]
    assert room.effect == pytest.approx(-0.3, abs=0.03)
    assert room.high is not None
    assert room.high < 0
    assert room.voices == 10
    assert codec.low is not None
    assert codec.high is not None
    assert codec.low <= 0 <= codec.high
    assert sex.effect == pytest.approx(0.2, abs=0.08)


def test_where_two_kinds_of_voices_move_in_opposite_directions_both_stand_beside_the_mean() -> None:
    random = np.random.default_rng(2)
    planted = []
    for number in range(12):
        engine, sign = ("espeak-ng", 1) if number % 2 else ("Kokoro", -1)
        for level, change in (("plain", 0.0), ("1.2 s", sign * 0.5), ("0.3 s", -0.5)):
            value = f"{3 + change + random.normal(0, 0.01)}"
            factor = "plain" if level == "plain" else "room"
            labels = {"voice": f"v{number}", "engine": engine, "sex": "male", "factor": factor, "level": level}
            planted.append({**labels, "m.k": value})
    effects = {effect.level: effect.effect for effect in partial_effects(planted) if effect.factor == "room"}
    assert effects == {
        "1.2 s": pytest.approx(0, abs=0.02),
        "1.2 s, espeak-ng": pytest.approx(0.5, abs=0.02),
        "1.2 s, neural voices": pytest.approx(-0.5, abs=0.02),
        "0.3 s": pytest.approx(-0.5, abs=0.02),
    }


def test_the_picture_is_whole_and_marks_what_leaves_out_nought() -> None:
    effects = partial_effects(rows())
    picture = ElementTree.fromstring(draw("m", effects))
    circles = [node for node in picture.iter() if node.tag.endswith("circle")]
    assert len(circles) == len(effects)
    assert {node.get("fill") for node in circles} == {"#fff", "#1a1a1a"}


def test_a_table_that_is_whole_stays_and_metrics_that_came_later_have_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, ...]] = []

    def measured(samples: object, script: object, metrics: dict[str, tuple[str, ...]], *_: object) -> dict[str, str]:
        made.append(tuple(metrics))
        return {f"{name}.{key}": "1" for name, keys in metrics.items() for key in keys}

    monkeypatch.setattr(bias, "measure", measured)
    monkeypatch.setattr(bias, "say", lambda *_: np.zeros(24_000, np.float32))
    monkeypatch.setattr(bias, "say_lines", lambda *_: np.zeros(24_000, np.float32))
    monkeypatch.setattr(bias, "say_dialogue", lambda *_: np.zeros(24_000, np.float32))
    monkeypatch.setattr(bias, "say_over_music", lambda *_: np.zeros(44_100, np.float32))
    monkeypatch.setattr(bias, "_score_texts", lambda path, *_: path.touch())
    bias.run(tmp_path, 0)
    assert {file.name for file in tmp_path.iterdir()} == {
        "values.csv", "more.csv", "dialogues.csv", "turns.csv", "music.csv", "minutes.csv", "texts.csv", "meanings.csv",
        "faults.csv", "words.csv", "versions.json",
    }  # fmt: skip
    (tmp_path / "more.csv").unlink()
    made.clear()
    before = (tmp_path / "values.csv").read_text(encoding="utf-8")
    bias.run(tmp_path, 0)
    assert set(made) == {tuple(bias.MORE)}
    assert len(made) == 21
    assert (tmp_path / "values.csv").read_text(encoding="utf-8") == before


def test_a_table_of_another_version_of_a_metric_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "music.csv").touch()
    (tmp_path / "versions.json").write_text('{"music.csv": {"smr": "0.1"}}', encoding="utf-8")
    (tmp_path / "texts.csv").touch()
    (tmp_path / "meanings.csv").touch()
    with pytest.raises(SystemExit, match=r"music\.csv holds .*0\.1"):
        bias.run(tmp_path, 0, files=["music.csv"])


class StandIn:
    """Every model of the reference profile at once: it likes what is loud, and hears speech and music all the time."""

    scale = 1.0

    def score(self, windows: Sequence[Vector], rate: int | None = None) -> Vector:
        marks = np.array([3 + 10 * np.sqrt(np.mean(np.square(window))) for window in windows], np.float32)
        return np.repeat(marks[:, None], 4, axis=1) if self.marks_four else marks

    def __init__(self, job: str) -> None:
        self.marks_four = job == "aesthetics"

    def speech(self, samples: Vector) -> tuple[Span, ...]:
        return (Span(0, 3600),)

    music = speech

    def separate(self, samples: Vector) -> tuple[Vector, Vector]:
        return samples / 2, samples / 2

    def audio(self, clips: Sequence[Vector]) -> Vector:
        angles = 10 * np.array([np.sqrt(np.mean(np.square(clip))) for clip in clips])
        return np.stack([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)

    def text(self, texts: Sequence[str]) -> Vector:
        half = len(texts) // 2
        return np.array([(1.0, 0.0)] * half + [(0.0, 1.0)] * half, np.float32)

    def harmony(self, speech: Sequence[Vector], music: Sequence[Vector]) -> Vector:
        return np.array([float(np.abs(clip).mean()) for clip in speech], np.float32)


def test_where_the_weights_are_the_reference_profile_s_metrics_have_effects_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(4)

    def few(changed: int) -> Iterator[StudyClip]:
        for voice in voices()[:3]:
            yield StudyClip(voice, "plain", "plain", "en", 2)
            yield StudyClip(voice, "level", "-20 dB", "en", 2)

    def speak(*_: object) -> Vector:
        return random.normal(0, 0.1, 4 * bias.RATE).astype(np.float32)

    tables = [replace(table, clips=few) for table in bias.TABLES if table.file == "reference.csv"]
    with_music = [table for table in bias.TABLES if table.file == "reference_music.csv"]
    monkeypatch.setattr(bias, "TABLES", (*tables, *with_music))
    monkeypatch.setattr(bias_music, "clips", few)
    monkeypatch.setattr(bias, "say", speak)
    monkeypatch.setattr(bias_music, "say_lines", speak)
    monkeypatch.setattr(bias, "_score_texts", lambda path, *_: path.write_text("clip\n"))
    monkeypatch.setattr(registry, "load", lambda job, profile: StandIn(job))
    monkeypatch.setattr(analysis_recording, "open_default_cache", lambda: Cache(tmp_path / "cache"))
    bias.run(tmp_path, 0, "reference")
    (tmp_path / "reference_meanings.csv").unlink()
    docs = tmp_path / "docs"
    docs.mkdir()
    bias.report(tmp_path, docs)
    with (docs / "bias.csv").open(encoding="utf-8") as file:
        softer = {row["key"]: row for row in csv.DictReader(file) if row["level"] == "-20 dB"}
    wanted = {f"{name}.{key}" for name, keys in bias.OF_REFERENCE.items() for key in keys}
    assert set(softer) - {"casp.casp"} == wanted
    assert {row["voices"] for row in softer.values()} == {"3"}
    assert all(float(softer[key]["high"]) < 0 for key in wanted), "what is softer is liked less, as was planted"
    metrics = {key.partition(".")[0] for key in (*wanted, "casp.casp")}
    assert {file.name for file in docs.glob("*.svg")} == {f"bias-{name}.svg" for name in metrics}
    assert {row["version"] for row in softer.values()} == {catalogue.get(name).version for name in metrics}
    whole = (docs / "bias.csv").read_text(encoding="utf-8")
    (tmp_path / "reference.csv").unlink()
    bias.report(tmp_path, docs)
    assert (docs / "bias.csv").read_text(encoding="utf-8") == whole, "effects that were not measured again stay"


def test_chinese_is_read_with_its_tones_and_every_line_of_the_study_has_sounds() -> None:
    assert spell("山的后面有一座灯塔。") == "ʂan→tɤxou↘mjɛn↘jou↓i↗ʦwo↘təŋ→tʰa↓."
    assert spell("天气好的话，我很想去。") == "tʰjɛn→ʨʰi↘xau↓tɤxwa↘, wo↓xən↓ɕjaŋ↓ʨʰy↘."
    for line in (*SENTENCES["zh"], *SHORT_LINES["zh"]):
        syllables = re.findall(r"[a-z]+[1-5]", PINYIN[line])
        assert len(syllables) == sum(letter not in "，。？" for letter in line), line
        assert spell(line)


def test_what_is_compared_with_another_clip_than_the_plain_one_has_its_effect_from_that() -> None:
    planted = []
    for number in range(4):
        labels = {"voice": f"v{number}", "engine": "x", "sex": "male"}
        for factor, level, value in (
            ("plain", "plain", 1.0),
            ("length", "four sentences", 2.0),
            ("rate", "1.5 times", 2.5),
        ):
            planted.append({**labels, "factor": factor, "level": level, "m.k": f"{value + number}"})
    against = {("rate", "1.5 times"): ("length", "four sentences")}
    effects = {effect.level: effect.effect for effect in partial_effects(planted, against)}
    assert effects == {"1.5 times": pytest.approx(0.5), "four sentences": pytest.approx(1.0)}


def test_dialogues_have_all_voices_in_pairs_under_every_change() -> None:
    joined = pairs()
    assert {voice.name for pair in joined if pair.pair for voice in pair.pair} == {voice.name for voice in voices()}
    assert {pair.sex for pair in joined} == {"one sex", "two sexes"}
    assert len(joined) == 19
    of_first = [clip for clip in dialogue_clips(21) if clip.voice == joined[1]]
    assert {(clip.factor, clip.level) for clip in of_first} >= {
        (factor, level) for factor, levels in CHANGES.items() for level in levels
    }
    assert {clip.sentences for clip in of_first} == {12, 18, 24}
    assert {clip.language for clip in of_first} == {"en", "zh"}
    assert sum(clip.language == "zh" for clip in dialogue_clips(21)) >= 10
    assert min(clip.sentences for clip in turn_clips(21)) > 15
    fast = {clip.sentences for clip in minute_clips(21) if clip.level == "1.5 times"}
    assert fast == {4}, "what is faster is longer, or less than 40 s of it are left"


def test_texts_are_the_same_script_in_three_lengths_and_chinese_ones_of_each_category() -> None:
    rows = list(texts())
    levels = [level for _, _, level, _ in rows]
    assert (levels.count("plain"), levels.count("half"), levels.count("a quarter")) == (51, 51, 51)
    assert levels.count("Chinese") == 17
    (whole, half) = (script for topic, _, level, script in rows[:2])
    assert half.turns == whole.turns[: len(half.turns)]


def test_dialogues_of_two_sexes_are_set_against_those_of_one() -> None:
    planted = [{**row, "sex": "two sexes" if row["sex"] == "female" else "one sex"} for row in rows()]
    (effect,) = [effect for effect in partial_effects(planted) if effect.factor == "sex"]
    assert effect.level == "two sexes − one sex"
    assert effect.effect == pytest.approx(0.2, abs=0.08)


def test_the_design_has_what_it_says() -> None:
    speakers = voices()
    assert len(speakers) == 21
    assert {voice.sex for voice in speakers} == {"female", "male"}
    assert len({voice.engine for voice in speakers}) == 4
    changed = [clip for clip in clips(6) if clip.voice == speakers[0]]
    assert {clip.factor for clip in changed} == {"plain", "language", "rate", "level", "codec", "room", "length"}
    assert len({clip.name for clip in clips(6)}) == len(list(clips(6)))
