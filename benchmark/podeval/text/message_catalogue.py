"""Page texts by message id, from gettext catalogues that Babel reads: one file for each language and page.

The id `plot/shapes/ranked` of `en/LC_MESSAGES/board.po` is `texts["board"]["plot"]["shapes"]["ranked"]`; names that are
numbers form a list. Texts that are missing in a language are shown in English.
"""

import gettext
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Self

FIRST = "en"
"""The language whose catalogues contain all messages."""


class PluralText(str):
    """A text with plural forms: `format` uses the form for `count` or, without it, for the last whole number.

    Attributes:
        forms: forms of the text in the catalogue; the text itself is the last form.
        rule: function that returns the index of the form for a number.

    Example:
        >>> votes = PluralText(("{} vote", "{} votes"), lambda number: int(number != 1))
        >>> votes.format(1), votes.format(3)
        ('1 vote', '3 votes')
    """

    forms: tuple[str, ...]
    rule: Callable[[int], int]

    def __new__(cls, forms: tuple[str, ...], rule: Callable[[int], int]) -> Self:
        """Create the text that is used if no number is given."""
        self = super().__new__(cls, forms[-1])
        self.forms, self.rule = forms, rule
        return self

    def format(self, *values: Any, **named: Any) -> str:
        """Fill in the values, using the plural form for their number."""
        numbers = [value for value in (*values, *named.values()) if isinstance(value, int)]
        count = named.get("count", numbers[-1] if numbers else None)
        form = self.forms[-1] if count is None else self.forms[self.rule(count)]
        return form.format(*values, **named)


def read_texts(folder: Path, language: str, pages: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read the texts in one language.

    Args:
        folder: folder that contains `<language>/LC_MESSAGES/<page>.po`.
        language: the language of the texts.
        pages: the pages to read; by default, all of them.

    Returns:
        Texts by page, then by the parts of their ids. A group that has texts only in other languages is present but
            empty, because the engine itself contains its English texts.
    """
    languages = sorted(path.name for path in folder.iterdir() if path.is_dir())
    names = pages or sorted(path.stem for path in folder.glob(f"{FIRST}/LC_MESSAGES/*.po"))
    texts: dict[str, Any] = {}
    for page in names:
        messages = {code: read_messages(folder / code / "LC_MESSAGES" / f"{page}.po") for code in languages}
        page_texts: dict[str, Any] = {
            id.partition("/")[0]: {} for said in messages.values() for id in said if "/" in id
        }
        for id, text in {**messages[FIRST], **messages[language]}.items():
            *groups, name = id.split("/")
            group = page_texts
            for each in groups:
                group = group.setdefault(each, {})
            group[name] = text
        texts[page] = _make_lists(page_texts)
    return texts


@cache
def read_messages(file: Path) -> dict[str, str]:
    """Read a catalogue; return its texts by message id, with plural forms as `PluralText`."""
    from babel.messages.pofile import read_po

    if not file.is_file():
        return {}
    with file.open("rb") as opened:
        catalogue = read_po(opened, abort_invalid=True)
    rule = gettext.c2py(catalogue.plural_expr)
    messages: dict[str, str] = {}
    for message in catalogue:
        if not message.id:
            continue
        id = message.id if isinstance(message.id, str) else message.id[0]
        forms = (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
        messages[id] = forms[0] if isinstance(message.id, str) else PluralText(forms, rule)
    return messages


def _make_lists(value: Any) -> Any:
    """Return the same texts with a list for each group whose names are numbers."""
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_make_lists(value[name]) for name in sorted(value, key=int)]
    return {name: _make_lists(part) for name, part in value.items()}
