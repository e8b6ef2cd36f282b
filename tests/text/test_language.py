import json
import re
import time
from pathlib import Path

import pytest

from podeval.benchmarks import real_pod
from podeval.text.language import get_language_name, identify_language, read_as
from podeval.text.tokens import HAN, KANA, detect_language

PARAGRAPHS: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "data" / "languages.json").read_text(encoding="utf-8")
)
ENGLISH = (
    "Good evening and welcome back to the show. Tonight we ask why the sea is salty, and what the rivers have to do "
    "with it. Every drop of rain dissolves a little rock, and the river carries what it took down to the coast. The "
    "water goes up again under the sun, but the salt stays where it is. So over millions of years the sea has become "
    "what it is now, and it will not taste any different in your lifetime or mine."
)
CHINESE = (
    "大家好，欢迎收听我们的节目。今天我们来聊聊海水为什么是咸的，以及河流和这件事有什么关系。每一滴雨水都会溶解一点点岩石，"
    "河流再把这些物质慢慢地带到海边。水在阳光下蒸发了，盐却留了下来。"
)


@pytest.mark.parametrize("code", sorted(PARAGRAPHS))
def test_paragraphs_of_ten_languages_are_in_their_language_and_never_in_english(code: str) -> None:
    assert len(PARAGRAPHS[code]) >= 3
    for text in PARAGRAPHS[code]:
        assert len(text.split()) >= 60 or len(re.findall(f"[{HAN}{KANA}]", text)) >= 120
        found = identify_language(text)
        assert (found.code, found.noted, read_as(text)) == (code, {}, "other")
        assert found.is_in("en") is False


def test_english_and_chinese_paragraphs_are_in_theirs() -> None:
    assert (read_as(ENGLISH), read_as(CHINESE)) == ("en", "zh")
    assert identify_language(ENGLISH).words == "English"
    assert identify_language(ENGLISH).is_in("en") is True
    assert identify_language(ENGLISH).is_in("zh") is False


def test_every_script_of_real_pod_is_english() -> None:
    scripts = [item.script for split in ("topics", "spontaneous") for item in real_pod.BENCHMARK.items(split)]
    assert len(scripts) == 102
    found = [identify_language(script.text) for script in scripts if script]
    assert {(each.code, tuple(each.noted)) for each in found} == {("en", ())}


@pytest.mark.long
def test_every_lfs_text_is_in_the_language_it_says(shared: Path) -> None:
    wrong, counted = [], 0
    for path in (shared / "data/lfs_swanbench").glob("*_speaker.jsonl"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            row = json.loads(line)
            text = " ".join(turn["text"] for turn in row["content"])
            found = identify_language(text)
            counted += 1
            stated = {"english": "en", "chinese": "zh"}[row["language"]]
            if not found.code == stated == detect_language(text) or found.noted:
                wrong.append(f"{path.name}:{number} {found}")
    assert counted > 1000
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    ["", "12:30!", "Hello.", "Okay, yes.", "GPU", "la la la la la la", "Mmm. Mmm. Mmm. Mmm.", "word " * 300],
)
def test_a_few_words_are_in_no_known_language_least_of_all_in_english(text: str) -> None:
    found = identify_language(text)
    assert (found.code, dict(found.shares), read_as(text)) == (None, {}, None)
    assert found.is_in("en") is None


def test_letters_of_no_language_are_in_none() -> None:
    assert identify_language("xqz vbn qwe rty uio plk mnb vcx zaq wsx edc rfv tgb yhn ujm " * 5).code is None


@pytest.mark.parametrize("text", ["안녕하세요", "Привет", "こんにちは", "ทำไมทะเลถึงเค็ม"])
def test_letters_that_few_languages_have_tell_by_a_word_that_it_is_another(text: str) -> None:
    assert read_as(text) == "other"


@pytest.mark.parametrize("code", ["fr", "de", "es", "ru", "ja", "zh"])
def test_a_fifth_in_another_language_is_noted_and_a_half_makes_it_no_language_of_the_text(code: str) -> None:
    other = CHINESE * 2 if code == "zh" else PARAGRAPHS[code][0]
    fifth = identify_language(f"{ENGLISH} {ENGLISH} {other} {ENGLISH} {ENGLISH}")
    assert fifth.code == "en"
    assert list(fifth.noted) == ["en", code]
    assert 0.12 < fifth.noted[code] < 0.28
    assert fifth.words == f"English, {fifth.noted[code]:.0%} {get_language_name(code)}"
    half = identify_language(f"{ENGLISH} {other}")
    assert half.code == "mul"
    assert set(half.noted) == {"en", code}
    assert half.is_in("en") is False
    assert 0.3 < half.noted["en"] < 0.7
    # Chinese and English are both read here.
    assert read_as(f"{ENGLISH} {other}") == ("en" if code == "zh" else "other")


def test_terms_and_quotes_of_another_language_leave_the_language_as_it_is() -> None:
    terms = "我用 GPT 和 Whisper 做 podcast 的评测，效果很好，今天就和大家分享一下。"
    assert (identify_language(terms).code, identify_language(terms).noted) == ("zh", {})
    assert read_as("我们聊聊《となりのトトロ》这部电影") == "zh"
    quoted = f"{ENGLISH} The word 你好 means hello in Chinese. He said c'est la vie and laughed about it."
    assert (identify_language(quoted).code, identify_language(quoted).noted) == ("en", {})


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "text",
    [f"{ENGLISH} " * 2500, "1. 2. " * 170_000, "a. " * 330_000, "《" * 1_000_000, "我 a. " * 200_000, "「あ" * 500_000],
    ids=["english", "numbers", "letters", "brackets", "mixed", "japanese"],
)
def test_a_megabyte_takes_a_moment(text: str) -> None:
    identify_language("The model is loaded by this sentence.")
    start = time.process_time()
    identify_language(text)
    # 0.3 s on a free core; the bound leaves room for a slow, busy one.
    assert time.process_time() - start < 3


def test_half_a_surrogate_pair_ends_nothing() -> None:
    assert identify_language(f"\ud800 {ENGLISH}").code == "en"
