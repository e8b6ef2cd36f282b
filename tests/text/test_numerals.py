"""Numbers in words and digits, both ways."""

import pytest

from podeval.text.numerals import is_number_word, parse_number, say_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ninety-nine", 99),
        ("one hundred and twenty", 120),
        ("fifteen hundred", 1500),
        ("a thousand", 1000),
        ("eight thousand five hundred", 8500),
        ("2 and a half", 2.5),
        ("8k", 8000),
        ("1,500", 1500),
        ("十", 10),
        ("一百零五", 105),
        ("二百五", 250),
        ("一千零五", 1005),
        ("1.5万", 15_000),
        ("1万2千", 12_000),
        ("两万三", 23_000),
        ("三五", None),
    ],
)
def test_numbers_as_they_are_written(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("digits", "english", "chinese"),
    [
        ("0", "zero", "零"),
        ("7", "seven", "七"),
        ("12", "twelve", "十二"),
        ("25", "twenty five", "二十五"),
        ("105", "one hundred five", "一百零五"),
        ("115", "one hundred fifteen", "一百一十五"),
        ("1500", "fifteen hundred", "一五零零"),
        ("1,500", "one thousand five hundred", "一千五百"),
        ("1905", "nineteen oh five", "一九零五"),
        ("2000", "two thousand", "二千"),
        ("2024", "twenty twenty four", "二零二四"),
        ("10050", "ten thousand fifty", "一万零五十"),
        ("3000000", "three million", "三百万"),
        ("007", "zero zero seven", "零零七"),
    ],
)
def test_digits_as_they_are_said(digits: str, english: str, chinese: str) -> None:
    assert (say_number(digits), say_number(digits, "zh")) == (english, chinese)


def test_words_of_numbers_are_told_from_others() -> None:
    numbers = "one nineteen forty eighties twentieth ninth second million hundreds zero"
    assert all(map(is_number_word, numbers.split()))
    assert not any(map(is_number_word, ("often", "tent", "percent", "onset", "a", "", "1980s", "everyone")))


def test_a_row_of_digits_is_said_digit_by_digit() -> None:
    assert say_number("1" * 5000).split() == ["one"] * 5000
