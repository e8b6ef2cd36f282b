"""The length a request asks for is read where it is certain, and only there."""

import time

import pytest

from podeval.text.asked_length import is_length_strict, read_requested_length

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
        ("A twenty-five minute podcast", 25, 25),
        ("forty-five minutes long", 45, 45),
        ("a ten- to fifteen-minute episode", 10, 15),
        ("Write ten to fifteen minutes.", 10, 15),
        ("10-15 minute script about tides", 10, 15),
        ("Make a half-hour show on jazz", 30, 30),
        ("half an hour, please", 30, 30),
        ("It should last an hour and a half.", 90, 90),
        ("An hour-long conversation between two bakers", 60, 60),
        ("one and a half hours", 90, 90),
        ("Produce an episode of 1 hour 30 minutes about Rome.", 90, 90),
        ("a hundred and twenty minutes long", 120, 120),
        ("The script should be two thousand five hundred words.", 2500 / 150, 2500 / 150),
        ("Keep it under 5 minutes for commuters.", 0, 5),
        ("The episode must not be longer than 20 minutes and has two hosts.", 0, 20),
        ("Don't go over ten minutes.", 0, 10),
        ("no less than 1000 words", 1000 / 150, NO_LIMIT),
        ("15 minutes or more", 15, NO_LIMIT),
        ("8 minutes max, two hosts", 0, 8),
        ("5+ minutes", 5, NO_LIMIT),
        ("a podcast episode lasting about 12 minutes in which two experts talk", 12, 12),
        ("Please generate a roughly 3,000-word English podcast script between two speakers.", 20, 20),
        ("10 minutes. That is 1,500 words.", 10, 10),
        ("语速每分钟300字，时长：8-10分钟", 8, 10),
        ("a 3-5k word script", 3000 / 150, 5000 / 150),
        ("Explain why chains wear out in a ten-minute podcast.", 10, 10),
        ("A round table of four people who disagree about night trains, at most 5 minutes.", 0, 5),
        ("Create a 20-minute, two-host podcast on coral reefs.", 20, 20),
        ("A 10-minute podcast on why adults need eight hours of sleep", 10, 10),
        ("A 15 minute podcast about the 40-hour work week", 15, 15),
        ("A 12-minute podcast with a 30-second intro", 12, 12),
        ("Make a 90-second podcast", 1.5, 1.5),
        ("请做一个十分钟的播客", 10, 10),
        ("时长控制在5到8分钟", 5, 8),
        ("三十五分钟左右", 35, 35),
        ("不超过两分钟", 0, 2),
        ("3分钟以内", 0, 3),
        ("大约3000字", 10, 10),
        ("五千字", 5000 / 300, 5000 / 300),
        ("半天不够，要1小时", 60, 60),
        ("一百二十分钟的播客", 120, 120),
        ("请写五千到八千字", 5000 / 300, 8000 / 300),
        ("五到八千字的脚本", 5000 / 300, 8000 / 300),
        ("在5分钟内", 0, 5),
        ("请在5分钟以内讲完", 0, 5),
        ("一个半小时", 90, 90),
        ("半小时的双人播客", 30, 30),
        ("做一期一小时二十分钟的访谈节目", 80, 80),
        ("三百字左右", 1, 1),
        ("1千5百字", 5, 5),
        ("一千五百字", 5, 5),
        ("两万三千字", 23_000 / 300, 23_000 / 300),
        ("一刻钟的节目", 15, 15),
        ("做一期五分钟左右的双人播客，用问题引出讨论，讲讲为什么面团会发酵。", 5, 5),
        ("做一期关于茶叶的十分钟播客", 10, 10),
        ("用五分钟讲讲海水为什么是咸的", 5, 5),
        ("两人对谈，一分钟，讲讲海水。", 1, 1),
        ("字数不少于2000字，不要太正式", 2000 / 300, NO_LIMIT),
        ("写一篇10分钟的播客，说说为什么每天要睡8小时", 10, 10),
    ],
)
def test_a_length_is_read(request_text: str, least: float, most: float) -> None:
    found = read_requested_length(request_text)
    assert found is not None
    assert (found.least, found.most) == (pytest.approx(least), pytest.approx(most))


@pytest.mark.parametrize(
    "request_text",
    [
        "Make a podcast of this.",
        "Ten minutes, of which two minutes on yeast",
        "A 10-minute podcast. No, rather 20 minutes.",
        "in other words, keep it short",
        "Say it in five words",
        "A podcast on why adults need eight hours of sleep",
        "Discuss the 40-hour work week",
        "a podcast about 20 minutes of exercise a day",
        "Talk about 20-minute naps",
        "Explain the 10,000-hour rule",
        "A show on how to fall asleep in 10 minutes",
        "Cars that do 60 miles an hour",
        "Light takes 8 minutes to reach us; explain that",
        "Summarise the 2,000-word essay below",
        "Review the film, which is three hours old",
        "Make a podcast called “Ten Minutes of Peace”",
        "Each segment should be 3 minutes.",
        "A dialogue with a 30-second opening",
        "几十分钟",
        "三五分钟",
        "十几分钟",
        "第五分钟换话题",
        "第十五分钟换话题",
        "每天8小时工作",
        "讨论8小时工作制的播客",
        "为什么成年人需要8小时睡眠",
        "关于《十分钟年华老去》的播客",
        "讲一个四字成语",
        "前5分钟要有悬念",
        "开场控制在30秒",
        "",
    ],
)
def test_what_is_not_certain_is_not_read(request_text: str) -> None:
    assert read_requested_length(request_text) is None


@pytest.mark.every(2)
@pytest.mark.parametrize("piece", ["需要", "5分钟", "“", " ", "10 minutes ", "1-", "exactly ", "时长"])
def test_a_long_request_is_read_in_time(piece: str) -> None:
    started = time.process_time()
    is_length_strict(piece * 10_000 + "5分钟")
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("request_text", "strict"),
    [
        ("Exactly 10 minutes.", True),
        ("Strictly two minutes.", True),
        ("Make a podcast of precisely 1500 words", True),
        ("Strictly keep it to 10 minutes", True),
        ("10 minutes long, no more and no less", True),
        ("A ten-minute podcast. Stick to the length exactly.", True),
        ("严格控制在五分钟", True),
        ("正好3000字", True),
        ("十分钟的播客，严格遵守时长", True),
        ("Make a 10 minute podcast with exactly two speakers", False),
        ("10 minutes, exactly two hosts", False),
        ("A 10-minute podcast that explains precisely how tides work", False),
        ("做一期10分钟的播客，正好两个人", False),
        ("About ten minutes.", False),
    ],
)
def test_only_a_word_about_the_length_makes_it_strict(request_text: str, strict: bool) -> None:
    assert is_length_strict(request_text) is strict
