"""Labels of stretches of a recording: a label track for Audacity, or cues in WebVTT for players.

Audacity's labels are lines of start, end and text with tabs between them; WebVTT is the W3C's format of cues.
"""

from collections.abc import Iterable

Labels = Iterable[tuple[float, float, str]]
"""Start and end in seconds, and a text."""


def format_audacity_labels(labels: Labels) -> str:
    """Format labels as Audacity imports them."""
    return "".join(f"{start:.6f}\t{end:.6f}\t{' '.join(text.split())}\n" for start, end, text in labels)


def format_webvtt_cues(labels: Labels) -> str:
    """Format labels as cues, each at least a millisecond long; characters of markup are escaped."""
    cues = []
    for start, end, text in labels:
        plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        cues.append(f"{format_moment(start)} --> {format_moment(max(end, start + 0.001))}\n{plain}\n")
    return "\n".join(["WEBVTT\n", *cues])


def format_moment(seconds: float) -> str:
    """Format a moment as hours, minutes and seconds to the millisecond."""
    thousandths = round(seconds * 1000)
    minutes, thousandths = divmod(thousandths, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{thousandths // 1000:02d}.{thousandths % 1000:03d}"
