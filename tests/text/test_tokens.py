import os
import subprocess
import sys
from pathlib import Path

import pytest

from podeval.errors import BadInput
from podeval.text.tokens import detect_language, is_foreign, is_unspaced, stop_words, tokenise


@pytest.mark.parametrize(
    ("text", "foreign", "unspaced"),
    [
        ("海の水はなぜ塩辛いのですか。", True, True),
        ("東京都知事選挙結果発表は本日午後", True, True),
        ("「こんにちは」", True, True),
        ("ทำไมทะเลถึงเค็ม", True, True),
        ("안녕하세요 여러분", True, False),
        ("Добрый вечер", True, False),
        ("海水为什么是咸的？", False, False),
        ("我们聊聊《となりのトトロ》这部电影", False, False),
        ("The sea is called 海の水 there.", False, False),
        ("12:30", False, False),
        ("Добрый вечер, друзья! Welcome to the show.", True, False),
        ("Bonsoir à tous, ça va très bien", False, False),
        ("The word Москва is written in Cyrillic letters", False, False),
    ],
)
def test_what_is_written_in_neither_language(text: str, foreign: bool, unspaced: bool) -> None:
    assert (is_foreign(text), is_unspaced(text)) == (foreign, unspaced)
    assert not (unspaced and detect_language(text) == "zh")


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Hello, World! It's fine.", "en", ["hello", ",", "world", "!", "it", "'s", "fine", "."]),
        # NLTK's Treebank tokeniser alone would leave "one." whole, because it only looks at the end of the text.
        ("This is one. This is two.", "en", ["this", "is", "one", ".", "this", "is", "two", "."]),
        (
            "Dr. Smith lives in the U.S. now.",
            "en",
            ["dr.", "smith", "lives", "in", "the", "u.s.", "now", "."],
        ),
        ('I can\'t say "no".', "en", ["i", "ca", "n't", "say", "``", "no", "''", "."]),
        # jieba's own README gives this sentence and cut, "杭研" being found by its HMM.
        ("他来到了 网易杭研大厦。", "zh", ["他", "来到", "了", "网易", "杭研", "大厦", "。"]),
        ("AI技术", "zh", ["ai", "技术"]),
    ],
    ids=["punctuation", "sentences", "abbreviations", "contractions and quotes", "Chinese", "Latin in Chinese"],
)
def test_words_are_lower_case_and_cut_as_the_treebank_and_jieba_cut(
    text: str, language: str, expected: list[str]
) -> None:
    assert tokenise(text, language) == expected


def test_cutting_chinese_neither_reads_nor_writes_a_shared_file_nor_chatters(tmp_path: Path) -> None:
    (tmp_path / "jieba.cache").write_bytes(b"not a dictionary")
    code = "from podeval.text.tokens import tokenise; print(len(tokenise('他来到了网易杭研大厦', 'zh')))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("6", "")
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"]
    assert (tmp_path / "jieba.cache").read_bytes() == b"not a dictionary"


def test_words_added_to_the_global_jieba_do_not_change_the_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jieba

    monkeypatch.setattr(jieba.dt, "tmp_dir", str(tmp_path))
    before = tokenise("小明喜欢语音评测基准", "zh")
    jieba.add_word("语音评测基准", freq=10_000_000)
    try:
        assert "语音评测基准" in jieba.lcut("小明喜欢语音评测基准")
        assert tokenise("小明喜欢语音评测基准", "zh") == before
        assert "语音评测基准" not in before
    finally:
        jieba.del_word("语音评测基准")


def test_stop_words_are_the_pinned_lists() -> None:
    english = stop_words("en")
    assert len(english) == 179
    # In the classic list, and only in the newer one of 198.
    assert {"the", "shouldn't", "ma", "that'll"} <= english
    assert not {"he'd", "we're", "i'm"} & english
    assert {"的", "了", "是"} <= stop_words("zh")
    assert not any(word.startswith("#") for word in stop_words("zh"))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The ocean is salty.", "en"),
        ("今天我们聊聊海水为什么是咸的。", "zh"),
        ("我用 GPT 和 Whisper 做 podcast 的评测，效果很好。", "zh"),
        ("The word 你好 means hello in Chinese.", "en"),
        ("12:30!", "en"),
        ("", "en"),
    ],
)
def test_language_is_detected_by_script(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_another_language_is_refused() -> None:
    with pytest.raises(BadInput, match="en or zh, not 'fr'"):
        tokenise("bonjour", "fr")
    with pytest.raises(BadInput, match="en or zh"):
        stop_words("fr")
