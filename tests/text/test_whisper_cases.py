"""The English normaliser is OpenAI's but for the signs that it loses: on the cases of its own test nothing differs."""

import pytest
from whisper_normalizer.english import EnglishTextNormalizer

from podeval.text.comparison.normalise import normalise
from podeval.text.comparison.word_errors import count_word_errors

CASES = """
two | thirty one | five twenty four | nineteen ninety nine | twenty nineteen | two point five million
four point two billions | 200 thousand | 200 thousand dollars | $20 million | €52.4 million | £77 thousands
two double o eight | three thousand twenty nine | forty three thousand two hundred sixty
forty three thousand two hundred and sixty | nineteen fifties | thirty first
thirty three thousand and three hundred and thirty third | three billion | millions | july third twenty twenty
august twenty sixth twenty twenty one | 3 14 | 3.14 | 3 point 2 | 3 point 14 | fourteen point 4
two point two five dollars | two hundred million dollars | $20.1 million | ninety percent | seventy six per cent
double oh seven | double zero seven | nine one one | nine double one | one triple oh one | two thousandth
thirty two thousandth | minus 500 | positive twenty thousand | two dollars and seventy cents | 3 cents | $0.36
three euros and sixty five cents | three and a half million | forty eight and a half dollars | b747 | 10 th | 10th
mobilisation | cancelation | Let's | he's like | she's been like | 10km | 10mm | RC232
Mr. Park visited Assoc. Prof. Kim Jr. | 1960s | 274th | one of the ones
"""


@pytest.mark.parametrize("text", [case.strip() for line in CASES.strip().splitlines() for case in line.split("|")])
def test_the_cases_of_whispers_own_test_are_normalised_as_whisper_does(text: str) -> None:
    assert normalise(text) == " ".join(EnglishTextNormalizer()(text).split())


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("it costs $1", "it costs one dollar"),
        ("it costs €1 or £1 or ¥1 or 1¢", "it costs one euro or one pound or one yen or one cent"),
        ("it costs 1 € or 1£", "it costs one euro or one pound"),
        ("1% of it", "one percent of it"),
        ("1 % of it", "one per cent of it"),
        ("-1 degrees, 1° or 25 °C", "minus one degrees, one degrees or twenty-five degrees Celsius"),
        ("₹1 million", "one million rupees"),
        ("version 1.10.1 and 3.1 at 192.168.1.1", "version one point ten point one and three point one at 192.168.1.1"),
        ("$1.50 and $2.01", "one dollar and fifty cents and two dollars and one cent"),
        ("rock & roll, AT&T and R&amp;D", "rock and roll, AT and T and R and D"),
        ("it is 5 < 6 and 7 > 2 ok", "it is five less than six and seven greater than two ok"),
        ("if a<b then c", "if a b then c"),
        ("exam\u00adple a\u200bb\ufeff \u200fhi", "example ab hi"),
        (
            "[S1] Hi {laughs} 【laughs】 <laughs softly> <break time='1s'/> (really (very)) <|laughter|> there",
            "hi there",
        ),
        ("Kleenex™ at 5 p.m.", "Kleenex at five PM"),
        ("rock ’n’ roll it′s", "rock 'n' roll it's"),
        ("it&#39;s &ldquo;fine&rdquo;&nbsp;&mdash; R&amp;amp;B caf&eacute;", "it's fine R and B café"),
        ("see [the site](https://x.org/a_b) or ![a map](map.png) <!-- not this --> now", "see the site or now"),
        ("[laughs](softly) *sighs* __chuckles softly__ it is *really* good", "it is really good"),
        ("if a<b and c>d then <clear throat> go", "if a b and c d then go"),
        (
            "1½ cups, ½ cup, 2¼ miles, 20º C",
            "one and a half cups, half cup, two and a quarter miles, 20 degrees Celsius",
        ),
        ("x² and 10³ but a footnote² or two¹²", "x squared and ten cubed but a footnote or two"),
        ("C++ and C# at № 5 or #6", "C plus plus and C sharp at number five or number six"),
        ("3 × 4 = 12 ≥ 2", "three times four equals twelve greater than or equal to two"),
        ("at 10:30 in the U.S.A. by J.R.R. Tolkien", "at ten thirty in the USA by J. R. R. Tolkien"),
        ("1\u202f000 people and 2\u00a0000\u00a0000 more", "1000 people and 2000000 more"),
    ],
)
def test_what_is_said_in_words_is_equal_to_its_signs(written: str, spoken: str) -> None:
    assert count_word_errors(written, spoken).wer == 0


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("it costs $1", "it costs one"),
        ("it costs €1", "it costs one"),
        ("£1 each", "one each"),
        ("¥1 each", "one each"),
        ("1% of it", "one of it"),
        ("1 % of it", "one of it"),
        ("minus one", "one"),
        ("1° more", "one more"),
        ("version 1.10.1", "version one ten one"),
        ("rock & roll", "rock roll"),
    ],
)
@pytest.mark.parametrize("normaliser", ["whisper", "basic"])
def test_a_lost_unit_is_an_error(written: str, spoken: str, normaliser: str) -> None:
    if normaliser == "basic":
        spoken = spoken.replace("ten", "9").replace("one", "1")
    assert (count_word_errors(written, spoken, normaliser=normaliser).wer or 0) > 0
