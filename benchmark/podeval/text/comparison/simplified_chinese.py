"""Converts traditional Chinese characters to simplified ones with OpenCC and the dictionaries in its package."""

from functools import cache
from typing import Any


def simplify(text: str) -> str:
    """Convert the traditional Chinese characters of a text one by one; the wording is not changed."""
    return _convert(text, "t2s")


def convert_to_mainland(text: str) -> str:
    """Convert a text to simplified characters and, if it was in traditional ones, to mainland wording.

    A text is in traditional characters if simplifying changes more of it than the reverse conversion does. Other texts
    keep their words, because OpenCC treats every 程序 as the Taiwanese word for 进程.
    """
    simple = simplify(text)
    if simple == text or _count_changes(text, simple) < _count_changes(text, _convert(text, "s2t")):
        return simple
    return _convert(text, "tw2sp")


def _count_changes(text: str, converted: str) -> int:
    return sum(before != after for before, after in zip(text, converted, strict=False))


def _convert(text: str, configuration: str) -> str:
    # OpenCC takes UTF-8, in which an unpaired surrogate, which JSON allows, cannot be encoded.
    return str(_load_converter(configuration).convert(text.encode("utf-8", "replace").decode("utf-8")))


@cache
def _load_converter(configuration: str) -> Any:
    from opencc import OpenCC

    return OpenCC(configuration)
