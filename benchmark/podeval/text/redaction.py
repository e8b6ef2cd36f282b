"""Remove secrets, personal addresses and local paths from a text before others read it."""

import re
import unicodedata

_HIDDEN = (
    (re.compile(r"\b(?:hf|sk|gh[pousr]|github_pat|glpat|xox[abp])[_-][A-Za-z0-9_-]{8,}"), "[secret]"),
    (re.compile(r"\bbearer\s+\S+", re.IGNORECASE), "[secret]"),
    (
        re.compile(r"\b((?:api[_-]?key|token|password|secret)\w*)\s*[=:]\s*[\"']?[^\s\"',;]+", re.IGNORECASE),
        r"\1=[secret]",
    ),
    (re.compile(r"(\w://)[^\s/@]+@"), r"\1"),
    (re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"), "[address]"),
    (re.compile(r"(?<![\w/:.])/(?:[\w.+@-]+/)+([\w.+@-]+)"), r"…/\1"),
    (re.compile(r"\bworker [^\s:]+:\d+"), "worker"),
)
_MOST = 4_000


def redact(text: str) -> str:
    """Remove private content from a text, such as secrets and paths, and everything beyond 4000 characters."""
    text = text[: 2 * _MOST]
    for pattern, instead in _HIDDEN:
        text = pattern.sub(instead, text)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def redact_line(line: str) -> str:
    """Remove secrets and control characters from a line of an untrusted log."""
    printable = "".join(c if c == "\t" or unicodedata.category(c)[0] != "C" else " " for c in line[:8_000])
    return redact(printable).rstrip()
