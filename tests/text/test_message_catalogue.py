"""Texts of pages are read from catalogues by message id, with English where a language says nothing."""

from pathlib import Path

import pytest
from babel.messages.pofile import PoFileError

from podeval.text.message_catalogue import PluralText, read_texts

HEAD = (
    'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n"Plural-Forms: {};\\n"\n\n'
)
RULES = {"en": "nplurals=2; plural=(n != 1)", "zh": "nplurals=1; plural=0"}


def write(folder: Path, language: str, page: str, body: str) -> None:
    place = folder / language / "LC_MESSAGES" / f"{page}.po"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(HEAD.format(language, RULES[language]) + body, encoding="utf-8")


def test_ids_are_ways_to_texts_numbers_are_lists_and_what_is_missing_is_said_in_english(tmp_path: Path) -> None:
    plural = 'msgid "votes"\nmsgid_plural "votes"\n'
    write(
        tmp_path,
        "en",
        "arena",
        'msgid "play"\nmsgstr "Play"\n\nmsgid "keys/0/0"\nmsgstr "A"\n\nmsgid "keys/10/0"\nmsgstr "last"\n\n'
        'msgid "keys/2/0"\nmsgstr "second"\n\nmsgid "fields/base.repo"\nmsgstr "Base"\n\n'
        f'{plural}msgstr[0] "{{}} vote"\nmsgstr[1] "{{}} votes"\n',
    )
    write(
        tmp_path,
        "zh",
        "arena",
        f'msgid "play"\nmsgstr "播放"\n\nmsgid "names/overall"\nmsgstr "总体"\n\n{plural}msgstr[0] "{{}} 票"\n',
    )
    english, chinese = (read_texts(tmp_path, language)["arena"] for language in ("en", "zh"))
    assert (english["play"], chinese["play"]) == ("Play", "播放")
    assert english["keys"] == chinese["keys"] == [["A"], ["second"], ["last"]]
    assert chinese["fields"]["base.repo"] == "Base"
    assert (english["names"], chinese["names"]) == ({}, {"overall": "总体"})
    assert [english["votes"].format(count) for count in (0, 1, 2)] == ["0 votes", "1 vote", "2 votes"]
    assert [chinese["votes"].format(count) for count in (1, 2)] == ["1 票", "2 票"]


def test_a_plural_text_goes_by_its_count_or_its_last_number_and_is_a_text_without_one() -> None:
    text = PluralText(("{0} of {1} item", "{0} of {1} items"), lambda number: int(number != 1))
    assert [text.format(2, 1), text.format(1, 2), text.format("?", "!")] == [
        "2 of 1 item",
        "1 of 2 items",
        "? of ! items",
    ]
    assert PluralText(("{n} a", "{n} b"), lambda number: int(number != 1)).format(n="one", count=1) == "one a"
    assert text == "{0} of {1} items"


def test_a_broken_catalogue_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "en", "arena", 'msgid "play"\n<<<<<<< HEAD\nmsgstr "Play"\n')
    with pytest.raises(PoFileError, match="misformatted keyword on 7"):
        read_texts(tmp_path, "en")
