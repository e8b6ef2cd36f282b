import time

import pytest

from podeval.text.comparison.spoken_numbers import say_alike
from podeval.text.comparison.word_errors import count_word_errors


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("二零二四年夏天，气温25度。", "2024年夏天气温二十五度"),
        ("两千零二十四年", "2024年"),
        ("2个人，2万人，200人", "两个人两万人二百人"),
        ("涨了50%，又涨了3.5％", "涨了百分之五十又涨了百分之三点五"),
        ("10,000元和2.5亿", "一万元和二点五亿"),
        ("一百五和一千五百", "150和1500"),
        ("138-0013-8000", "一三八零零一三八零零零"),
        ("13800138000", "幺三八零零幺三八零零零"),
        ("007号，90后，10086", "零零七号九零后一零零八六"),
        ("1,2,3，走", "一二三走"),
        ("25°C，15", "二十五摄氏度一十五"),
        ("100%", "百分之百"),
        ("三萬五千，兩億", "3万5千2亿"),
        ("2024年3月5日", "二〇二四年三月五日"),
    ],
)
def test_digits_and_numerals_of_the_same_number_are_equal(one: str, other: str) -> None:
    assert count_word_errors(one, other, "zh").cer == 0
    assert count_word_errors(other, one, "zh").cer == 0
    assert count_word_errors(one, other, "zh").cer_raw > 0


@pytest.mark.parametrize(
    ("one", "other", "errors"),
    [
        ("25", "五十二", 2),
        ("25", "52", 2),
        ("15", "五十", 2),
        ("5", "十五", 1),
        ("20", "二", 1),
        ("2024", "二零二五", 1),
        ("35个", "三五个", 1),
        ("3.14", "三点一五", 1),
        ("5%", "百分之五十", 1),
        ("150", "一百零五", 2),
        ("12万", "二十万", 2),
    ],
)
def test_another_number_stays_an_error_either_way(one: str, other: str, errors: int) -> None:
    for reference, heard in ((one, other), (other, one)):
        found = count_word_errors(reference, heard, "zh")
        assert found.substitutions + found.insertions + found.deletions == errors


def test_texts_without_digits_stay_as_they_are() -> None:
    pair = ("二零二四年三五个人千万别走", "两千零二十四年三十五个人")
    assert say_alike(*pair) == pair


def test_other_normalisers_and_languages_leave_numbers_alone() -> None:
    assert count_word_errors("25度", "二十五度", "zh", "lfs").cer > 0
    assert count_word_errors("25度", "二十五度", "zh", "basic").cer > 0


def test_every_number_of_a_long_text_takes_a_moment() -> None:
    text = "今天是2024年3月5日，气温25度，涨了3.5%，大家好。" * 2000
    start = time.process_time()
    say_alike(text, text.replace("2024", "二零二四"))
    # 0.3 s on a free core.
    assert time.process_time() - start < 5
