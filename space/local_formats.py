"""Numbers, moments and spans of time as a language writes them, by Babel; templates have them as filters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from babel.dates import format_skeleton, format_timedelta
from babel.numbers import format_decimal

HOURS_FROM = 1.5
"""Up to so many hours minutes are said."""


def write_number(number: float, language: str) -> str:
    """A number with the language's separators.

    Args:
        number: the number to write.
        language: the language of the page.
    """
    return format_decimal(number, locale=language)


def write_moment(moment: datetime | str, language: str) -> str:
    """Day and minute in UTC, such as `3 Nov 2026`'s order in that language and `08:28 UTC`.

    Args:
        moment: a time, or one in ISO 8601; without a zone it is in UTC.
        language: the language of the page.
    """
    time = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    day, minute = (format_skeleton(parts, time, tzinfo=UTC, locale=language) for parts in ("yMMMd", "Hm"))
    return f"{day}, {minute} UTC" if language == "en" else f"{day} {minute} UTC"


def write_span(seconds: float, language: str) -> str:
    """About so much time, a minute at least, in minutes, hours or days, in the form that the number takes.

    Args:
        seconds: so many.
        language: the language of the page.
    """
    return format_timedelta(
        timedelta(seconds=max(seconds, 60)), granularity="minute", threshold=HOURS_FROM, locale=language
    )


FORMATS = {"number": write_number, "moment": write_moment, "span": write_span}
"""By the names that templates have for them."""
