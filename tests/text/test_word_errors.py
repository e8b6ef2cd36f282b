import json
import random
import re
import time
from pathlib import Path

import jiwer
import pytest

from podeval.errors import BadInput, CannotScore
from podeval.text.comparison.word_errors import count_word_errors


def test_counts_and_rates_by_hand() -> None:
    errors = count_word_errors("the sea is very salty today", "the sea was salty today indeed", normaliser="basic")
    assert (errors.hits, errors.substitutions, errors.deletions, errors.insertions) == (4, 1, 1, 1)
    assert errors.wer == pytest.approx(3 / 6)
    assert errors.reference_length == 6


def test_equal_words_written_differently_are_no_errors_but_the_raw_rate_sees_them() -> None:
    errors = count_word_errors("It’s 25 dollars.", "it's twenty-five dollars")
    assert (errors.wer, errors.cer) == (0, 0)
    assert errors.wer_raw == 1


def test_raw_rates_are_jiwers_defaults() -> None:
    reference, hypothesis = "The Sea, is  salty.", "the sea is very salty"
    errors = count_word_errors(reference, hypothesis)
    assert errors.wer_raw == jiwer.wer("The Sea, is salty.", hypothesis)
    assert errors.cer_raw == pytest.approx(jiwer.cer("The Sea, is salty.", hypothesis))


def test_a_line_break_in_a_transcript_does_not_join_words() -> None:
    assert count_word_errors("one two three", "one two\nthree").wer_raw == 0


def test_chinese_has_a_character_rate_and_no_word_rate() -> None:
    # 11 characters: 慧 heard as 会, 啊 added.
    errors = count_word_errors("我們今天說：人工智慧，很好！", "我们今天说 人工智会很好啊", "zh")
    assert (errors.wer, errors.wer_raw, errors.unit) == (None, None, "character")
    assert errors.cer == pytest.approx(2 / 11)
    assert (errors.substitutions, errors.insertions, errors.reference_length) == (1, 1, 11)
    assert errors.cer_raw > errors.cer


@pytest.mark.parametrize(
    ("expected", "heard", "errors", "length"),
    [("海の水はなぜ塩辛いのですか。", "海の水がなぜ塩辛いのですか", 1, 13), ("แมวกิน", "แมวกน", 1, 6)],
)
def test_japanese_and_thai_have_a_character_rate_alone(expected: str, heard: str, errors: int, length: int) -> None:
    found = count_word_errors(expected, heard, "en", "basic")
    assert (found.wer, found.wer_raw, found.unit) == (None, None, "character")
    assert found.reference_length == length
    assert found.cer == pytest.approx(errors / length)


def test_silence_is_a_rate_of_one_and_babble_can_exceed_it() -> None:
    assert count_word_errors("one two", "").wer == 1
    assert count_word_errors("one two", "").cer == 1
    assert count_word_errors("你好", "", "zh").cer == 1
    assert count_word_errors("stop", "a b c d").wer == 4


@pytest.mark.parametrize("reference", ["", "  \n", "... — !"])
def test_a_reference_without_words_cannot_be_scored(reference: str) -> None:
    with pytest.raises(CannotScore, match="reference text contains no words"):
        count_word_errors(reference, "anything")


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(BadInput, match="normaliser must be"):
        count_word_errors("a", "a", normaliser="strict")
    with pytest.raises(BadInput, match="language must be"):
        count_word_errors("a", "a", "de")


def test_character_rate_without_alignment_equals_jiwers() -> None:
    generator = random.Random(1)
    reference = "".join(generator.choices("abcde ", k=2000)).strip()
    hypothesis = "".join(letter for letter in reference if generator.random() > 0.2)
    errors = count_word_errors(reference, hypothesis, normaliser="none")
    assert errors.cer == pytest.approx(jiwer.cer(" ".join(reference.split()), " ".join(hypothesis.split())))


def test_two_hours_of_words_take_about_a_second() -> None:
    generator = random.Random(1)
    vocabulary = ["".join(generator.choices("etaoinshr", k=generator.randint(2, 9))) for _ in range(3000)]
    words = generator.choices(vocabulary, k=20_000)
    heard = [generator.choice(vocabulary) if generator.random() < 0.05 else word for word in words]
    start = time.process_time()
    errors = count_word_errors(" ".join(words), " ".join(heard))
    # 0.6 s on a free core; the bound leaves room for a slow, busy one.
    assert time.process_time() - start < 5
    assert errors.wer == pytest.approx(0.05, abs=0.01)


def test_the_published_example_is_reproduced(shared: Path, transcripts: dict[str, str]) -> None:
    # Golden value _wer_Arts_19, computed with jiwer 4.0.0 on PodEval's own transcript.
    golden = json.loads((shared / "data/golden_values.json").read_text())["_wer_Arts_19"]
    script = json.loads((shared / "data/podeval/ref_info/Arts_19.json").read_text(encoding="utf-8"))
    reference = " ".join(turn["text"] for turn in script["dialogue"])
    hypothesis = transcripts["Arts_19"]
    assert (len(reference.split()), len(hypothesis.split())) == (golden["ref_words"], golden["hyp_words"])
    basic = count_word_errors(reference, hypothesis, normaliser="basic")
    assert basic.wer_raw == pytest.approx(golden["wer_raw"], abs=1e-12)

    def lower_nopunct(text: str) -> str:
        return " ".join(re.sub(r"[^\w\s']", " ", text.lower()).split())

    assert jiwer.wer(lower_nopunct(reference), lower_nopunct(hypothesis)) == pytest.approx(golden["wer_lower_nopunct"])
    # The script has a curly apostrophe and five quotations in single quotes, which are read as the transcript's words.
    alike = re.sub(r"(?<!\w)'|'(?!\w)", " ", reference.replace("\u2019", "'"))
    assert basic.wer == pytest.approx(jiwer.wer(lower_nopunct(alike), lower_nopunct(hypothesis)), abs=1e-12)
    assert basic.wer == pytest.approx(70 / 715, abs=1e-12)
    # Fillers, contractions and numbers unified: fewer errors still.
    assert (count_word_errors(reference, hypothesis).wer or 1) < basic.wer


def test_words_may_be_written_together_or_apart() -> None:
    written = "Our co-host spoke every day about healthcare and e-mail."
    heard = "our cohost spoke everyday about health care and email"
    for one, other in ((written, heard), (heard, written)):
        errors = count_word_errors(one, other)
        assert (errors.wer, errors.cer) == (0, 0)
        assert (count_word_errors(one, other, read=False).wer or 0) > 0.5
    # Other words are errors, and no word of the reference changes.
    assert count_word_errors("in two parts, into one", "in to parts into one").substitutions == 1
    assert count_word_errors(written, heard).reference_length == 11


def test_a_turkish_name_changes_no_other_word_of_english() -> None:
    written, heard = "I met Yıldız in Istanbul. I think I like it.", "I met Yildiz in Istanbul. I think I like it."
    assert count_word_errors(written, heard).wer == count_word_errors(heard, written).wer == 0
