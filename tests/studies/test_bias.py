"""The bias study finds effects that were planted, and none where there is none."""

import re
from pathlib import Path

import numpy as np
import pytest

from studies import bias
from studies.bias_chinese import PINYIN, spell
from studies.bias_effects import partial_effects
from studies.bias_material import SENTENCES, SHORT_LINES


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
