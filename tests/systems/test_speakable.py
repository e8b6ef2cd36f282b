import pytest

from podeval.systems.dialogue_reader import estimate_seconds, make_speakable, split_into_short_lines, split_sentences


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Hello, world!", "Hello, world!"),
        ("It’s “fine”", 'It\'s "fine"'),
        ("**Bold** and _thin_", "Bold and thin"),
        ("tea 😀👨‍👩‍👧 time ❤️", "tea time"),
        ("a\x00b\x07c\ud800d", "a b c d"),
        ("𝐁𝐨𝐥𝐝 ½ m² ③ ٣", "Bold 1/2 m2 3 3"),
        ("[[h@l'oU]] [word](/wɜːd/)", "h@l'oU word (/wɜːd/)"),
        ("No!!!!!!!", "No!!!"),
        ("12345678901234567890", " ".join("12345678901234567890")),
        ("$5 & 50% at 20°C", "$5 & 50% at 20°C"),
        ("海水为什么是咸的？", "海水为什么是咸的？"),
        ("cafe\u0301", "café"),
        ("It's [laughs] a boat. [Laughs]", "It's a boat."),
        ("[laughs]", ""),
        ("She laughs.", "She laughs."),
        ("😀 … !?", ""),
        ("", ""),
    ],
)
def test_text_becomes_words_and_punctuation(written: str, said: str) -> None:
    assert make_speakable(written) == said


def test_overlong_words_are_broken_and_ordinary_long_ones_are_not() -> None:
    assert max(map(len, make_speakable("x" * 5000).split())) <= 20
    assert make_speakable("pneumonoultramicroscopic") == "pneumonoultramicroscopic"
    assert make_speakable("海" * 100) == "海" * 100


def test_titles_and_initials_end_no_sentence() -> None:
    assert split_sentences("Dr. Smith met J. K. Rowling. Really? It was 3.5 km... Yes") == [
        "Dr. Smith met J. K. Rowling.",
        "Really?",
        "It was 3.5 km...",
        "Yes",
    ]


def test_chinese_sentences_end_without_a_space() -> None:
    assert split_sentences("你好！天气很好。“是吗？”他问。") == ["你好！", "天气很好。", "“是吗？”", "他问。"]


def test_short_lines_keep_every_word_and_their_length() -> None:
    text = "One two three, " * 60 + "end. " + "word " * 200
    lines = split_into_short_lines(text, 120)
    assert max(map(len, lines)) <= 120
    assert " ".join(lines).split() == text.split()


def test_reading_time_counts_words_and_chinese_characters() -> None:
    assert estimate_seconds("word " * 150) == pytest.approx(60)
    assert estimate_seconds("海" * 250) == pytest.approx(60)
    assert estimate_seconds("海" * 250 + " word" * 150) == pytest.approx(120)


def test_a_laugh_is_marked_as_an_engine_marks_it_and_left_out_for_one_that_cannot() -> None:
    line = "It's quite — [laughs] — it's a boat, sir."
    assert make_speakable(line, laugh="(laughs)") == "It's quite — (laughs) — it's a boat, sir."
    assert make_speakable(f"*{line}*", laugh="[laughs]") == "It's quite — [laughs] — it's a boat, sir."
    assert make_speakable(line) == "It's quite — — it's a boat, sir."
