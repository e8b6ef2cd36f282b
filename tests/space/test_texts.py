"""What pages say: words of the field, the same in both languages, and nothing that only its authors would say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

SPACE = Path(__file__).parents[2] / "space"
PLACEHOLDER = re.compile(r"\{\w*\}")
QUOTED = (
    *("before they are kept", "Not kept yet", "Every rule is kept", "The same as a table", "Play again and again"),
    *("Leave it to chance", "Who was who", "Your share", "This could not be done", "For programs", "Against it"),
    *("How the numbers come about", "The other system", "Why not", "Who runs this board", "They are taken"),
    *("Give it again for new runs", "larger always better", "errors errors", "Nothing has been measured here yet"),
    *("are not told", "are told", "is told", "stands on the trail", "USD are gone", "What was seen", "Do this?"),
    *("than which nothing", "What it made is kept", "what became of the rest", "is worked on", "Who came"),
)
"""What reviewers quoted as a dialect of ours."""
CHINESE = (
    *("对数少于", "中间值为 1000", "十比一的胜率", "都需要一个人", "谜底", "已经相遇", "尚未相遇", "从未相遇"),
    *("若干嗓音", "你自己", "数字从何而来", "听众的度量", "您已听完全部"),
)
"""The same in Chinese."""
EXPECTED = {
    "method": {"title": "Methodology"},
    "interface": {"title": "API"},
    "site": {"refused": "Not found", "programs": "API", "method": "Methodology"},
    "board": {"as_table": "Show as table"},
    "arena": {"chance": "Random", "mine": "Your votes"},
    "listening": {"repeat": "Loop"},
}


def texts(language: str) -> dict[str, Any]:
    return {
        path.name.partition(".")[0]: yaml.safe_load(path.read_text("utf-8"))
        for path in sorted((SPACE / "texts").glob(f"*.{language}.yaml"))
    }


def leaves(value: Any, at: str = "") -> dict[str, str]:
    """Every text by where it stands."""
    if isinstance(value, dict):
        return {place: text for key, part in value.items() for place, text in leaves(part, f"{at}.{key}").items()}
    if isinstance(value, list):
        parts = enumerate(value)
        return {place: text for number, part in parts for place, text in leaves(part, f"{at}[{number}]").items()}
    return {at: str(value)}


def test_nothing_that_was_quoted_is_said_any_more() -> None:
    said = {f"en{place}": text for place, text in leaves(texts("en")).items()}
    said |= {str(path.name): path.read_text("utf-8") for path in (SPACE / "templates").glob("*.html")}
    said |= {str(path.name): '"Why not"' for path in (SPACE / "tabs").glob("*.py") if '"Why not"' in path.read_text()}
    wrong = [f"{place}: {quoted}" for place, text in said.items() for quoted in QUOTED if quoted in text]
    chinese = leaves(texts("zh"))
    wrong += [f"zh{place}: {quoted}" for place, text in chinese.items() for quoted in CHINESE if quoted in text]
    assert not wrong


@pytest.mark.parametrize("page", sorted(EXPECTED))
def test_pages_are_called_as_the_field_calls_them(page: str) -> None:
    own = texts("en")[page]
    for name, word in EXPECTED[page].items():
        assert word == own.get(name, next((part[name] for part in own.values() if name in (part or ())), None))


def test_both_languages_say_the_same_things_with_the_same_places_for_values() -> None:
    english, chinese = leaves(texts("en")), leaves(texts("zh"))
    groups = (".board.groups", ".refused")
    missing = {place for place in english if place not in chinese and not place.startswith(groups)}
    assert not missing
    for place in english.keys() & chinese.keys():
        assert set(PLACEHOLDER.findall(english[place])) == set(PLACEHOLDER.findall(chinese[place])), place
