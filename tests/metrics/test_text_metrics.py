import math
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.score import Score
from tests.fakes import scoring


def score(name: str, text: str, **parameters: Any) -> Score:
    return scoring.score(name, {"text": text}, **parameters)


def test_distinct_2_of_a_short_text_is_one_window_and_flagged() -> None:
    # Pairs of "a b a b": ab, ba, ab.
    found = score("distinct_n", "a b a b")
    assert found.values == {"distinct_2": pytest.approx(2 / 3)}
    assert (found.notes["tokens"], found.notes["short"]) == (4, True)
    assert set(found.unranked) == {"distinct_2"}
    assert score("distinct_n", "a b a b", variant="podeval").values == {"distinct_2": 0.0}


def test_the_variants_agree_on_a_text_as_long_as_the_window() -> None:
    text = "a b c d " * 30
    default, podeval = (score("distinct_n", text, variant=variant) for variant in ("default", "podeval"))
    # Every window of 100 tokens holds 99 pairs, of which 4 differ.
    assert default.values == podeval.values == {"distinct_2": pytest.approx(4 / 99)}
    assert "short" not in default.notes


def test_windows_slide_by_one_token_and_the_timeline_shows_them() -> None:
    # Windows "a a a" with pairs aa, aa and "a a b" with aa, ab.
    found = score("distinct_n", "a a a b", window=3)
    assert found.values == {"distinct_2": pytest.approx((1 / 2 + 1) / 2)}
    assert found.timeline.values == {"distinct_2": [0.5, 1.0]}
    assert found.timeline.starts == [0, 1]
    assert (found.timeline.window, found.timeline.unit) == (3, "tokens")


def test_mattr_is_the_mean_of_types_by_tokens_over_windows() -> None:
    # Windows "a b a", "b a b", "a b c".
    assert score("mattr", "a b a b c", window=3).values == {"mattr": pytest.approx((2 / 3 + 2 / 3 + 1) / 3)}
    notes = score("mattr", "A b a B").notes
    assert (notes["tokens"], notes["short"]) == (4, True)
    assert score("mattr", "A b a B").values == {"mattr": 0.5}


def test_information_density_is_the_entropy_of_the_content_words() -> None:
    # "the" is a stop word; cat twice and dog once: log2(3) - 2/3 bits, at most log2(3).
    found = score("info_dens", "The cat the dog the cat")
    assert found.values["info_dens"] == pytest.approx(math.log2(3) - 2 / 3)
    assert found.values["info_dens_norm"] == pytest.approx(1 - 2 / 3 / math.log2(3))
    assert (found.notes["tokens"], found.notes["function_words"]) == (3, 0.5)


def test_a_single_content_word_has_no_normalised_density() -> None:
    assert score("info_dens", "the cat").values == {"info_dens": 0.0, "info_dens_norm": None}


def test_chinese_is_told_by_its_characters_and_tokenised_as_chinese() -> None:
    # 我们 / 喜欢 / 咖啡 / 我们 / 喜欢 / 茶: four types among six tokens; as English it is one token.
    text = "我们喜欢咖啡我们喜欢茶"
    assert score("mattr", text).values == {"mattr": pytest.approx(4 / 6)}
    assert score("mattr", text, language="en").notes["tokens"] == 1
    # Pairs: 我们喜欢 twice, and three others.
    assert score("distinct_n", text).values == {"distinct_2": pytest.approx(4 / 5)}


@pytest.mark.parametrize("name", ["distinct_n", "mattr", "info_dens"])
@pytest.mark.parametrize("text", ["Добрый вечер, дорогие друзья.", "안녕하세요 여러분 반갑습니다."])
def test_a_foreign_text_with_spaces_is_scored_and_says_so(name: str, text: str) -> None:
    assert score(name, text).notes["language"] == "other"
    assert "language" not in score(name, "Good evening, dear friends.").notes


@pytest.mark.parametrize("name", ["distinct_n", "mattr", "info_dens"])
@pytest.mark.parametrize("text", ["海の水はなぜ塩辛いのですか。", "東京都知事選挙結果発表は本日午後", "ทำไมทะเลถึงเค็ม"])
def test_a_foreign_text_without_spaces_is_unscored(name: str, text: str) -> None:
    assert "does not separate words by spaces" in scoring.unscored(name, {"text": text}).reason


def test_chinese_that_names_a_japanese_thing_stays_chinese() -> None:
    text = "我们今天聊聊宫崎骏导演的经典动画电影和它在日本的原名《となり》,以及它为什么能够打动观众。"
    assert "language" not in score("mattr", text).notes


@pytest.mark.parametrize("tokens", [399, 400, 698, 699, 1_234])
def test_a_timeline_has_at_most_300_points(tokens: int) -> None:
    found = score("mattr", "a b c " * (tokens // 3) + "a " * (tokens % 3)).timeline
    assert 150 <= len(found.starts) <= 300


@pytest.mark.parametrize("name", ["distinct_n", "mattr", "info_dens"])
def test_a_text_without_tokens_is_unscored_by_the_system_s_cause(name: str) -> None:
    assert scoring.unscored(name, {"text": " "}).cause == "system"


def test_a_window_that_holds_no_n_gram_is_refused() -> None:
    with pytest.raises(BadInput, match="window"):
        catalogue.get("distinct_n")({"text": "a b c d"}, {"n": 3, "window": 2})


@pytest.mark.parametrize("name", ["distinct_n", "mattr", "info_dens"])
def test_punctuation_alone_is_no_text(name: str) -> None:
    found = scoring.unscored(name, {"text": "… — !!! ( ) " * 50})
    assert found.reason == "the text contains no words, only punctuation; give the words of the script"
    assert isinstance(catalogue.get(name)({"text": "… 42 !!!"}, {}), Score), "a number is said as words"
