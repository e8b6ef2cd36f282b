"""The length a request asks for is read where it is certain, and only there."""

import pytest

from podeval.text.asked_length import length_asked

NO_LIMIT = float("inf")


@pytest.mark.parametrize(
    ("request_text", "least", "most"),
    [
        ("A 10-minute podcast, please.", 10, 10),
        ("about five minutes", 5, 5),
        ("a five-minute episode; five minutes, no more", 5, 5),
        ("between 5 and 10 minutes", 5, 10),
        ("8–12 mins long", 8, 12),
        ("At most 5 minutes.", 0, 5),
        ("at least twenty minutes", 20, NO_LIMIT),
        ("around 1,500 words", 10, 10),
        ("an 8k word script", 8000 / 150, 8000 / 150),
        ("1.5 hours", 90, 90),
        ("请做一个十分钟的播客", 10, 10),
        ("时长控制在5到8分钟", 5, 8),
        ("三十五分钟左右", 35, 35),
        ("不超过两分钟", 0, 2),
        ("3分钟以内", 0, 3),
        ("大约3000字", 10, 10),
        ("五千字", 5000 / 300, 5000 / 300),
        ("半天不够，要1小时", 60, 60),
    ],
)
def test_a_length_is_read(request_text: str, least: float, most: float) -> None:
    found = length_asked(request_text)
    assert found is not None
    assert (found.least, found.most) == (pytest.approx(least), pytest.approx(most))


@pytest.mark.parametrize(
    "request_text",
    [
        "Make a podcast of this.",
        "Ten minutes, of which two minutes on yeast",
        "几十分钟",
        "in other words, keep it short",
        "第五分钟换话题",
        "一千五百字",
        "",
    ],
)
def test_what_is_not_certain_is_not_read(request_text: str) -> None:
    assert length_asked(request_text) is None
