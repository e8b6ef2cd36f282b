"""How a value stands to what people and good systems reach: in a word, an arrow and a tone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from podeval.metrics.declaration import Key

Word = Literal["low", "usual", "high", ""]
Tone = Literal["good", "fair", "bad", ""]


def choose_word(key: Key, value: float | None, profile: str = "embedded") -> Word:
    """Say whether a value is low, usual or high beside what people and good systems reach; empty where nobody knows.

    Where a key is best in a range, the word is of that range.
    """
    span = key.ideal or find_usual(key, profile)
    if value is None or span is None:
        return ""
    return "low" if value < span[0] else "high" if value > span[1] else "usual"


def choose_tone(key: Key, value: float | None, profile: str = "embedded") -> Tone:
    """Say whether the word is good news: what colour a value has."""
    word = choose_word(key, value, profile)
    if not word or key.better == "informative":
        return ""
    if word == "usual":
        return "good" if key.better == "in range" else "fair"
    if key.better == "in range":
        return "bad"
    return "good" if (word == "high") == (key.better == "higher") else "bad"


def find_usual(key: Key, profile: str = "embedded") -> tuple[float, float] | None:
    """What people and good systems reach, where it was measured by the models of this profile."""
    if key.reach is None or (key.reach.profile and key.reach.profile != profile.partition(",")[0]):
        return None
    return key.reach.usual


def format_reach(key: Key, profile: str = "embedded") -> tuple[str, str]:
    """What people and what good systems reach, each as a text: `2.94 – 3.39`; empty where nobody knows."""
    if key.reach is None or find_usual(key, profile) is None:
        return "", ""
    return format_span(key.reach.people), format_span(key.reach.systems)


def format_span(span: tuple[float, float] | None) -> str:
    """A range as a text; one number where both ends are one."""
    if span is None:
        return ""
    low, high = (format_number(end) for end in span)
    return low if low == high else f"{low} – {high}"


def format_number(value: float | None) -> str:
    """A value with as many digits as mean something: three, and none behind a hundred."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
    return text.replace("-", "−")
