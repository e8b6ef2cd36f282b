"""Chinese pages say nothing in English but names, code, commands and what strangers wrote."""

from __future__ import annotations

import html
import re
import urllib.request
from typing import Any

import pytest

from podeval.metrics import catalogue

pytestmark = [pytest.mark.space]

PAGES = (
    *("/", "/cards", "/method", "/judges", "/compare", "/system?system=hibari", "/report/hibari", "/arena/ratings"),
    "/api/docs",
)
OF_THE_FIXTURE = (
    *("How museums decide", "return of the radio play", "election desk", "Why maps disagree", "how little we know"),
    *(
        "Running late in life",
        "Tonight we ask",
        "Whoever hums it last",
        "Piper, two voices",
        "One sentence repeated",
        "Real-Pod episodes",
    ),
)
"""Titles of items and systems, and what is said in recordings."""
OF_PAPERS = (
    *("Uniform Domain Rubric", "Generic Checklist-Based Evaluation", "Inter-Annotator Agreement", "Doubao"),
    *("Gemini", "Claude", "Qwen", "Audio Flamingo", "Human"),
)
"""Names of judges and measures as papers print them."""
RUN = re.compile(r"[A-Za-z][a-z’']+(?:[ ,;:]+[A-Za-z][a-z’']+){2,}")
_APART = re.compile(r"<(script|style|pre|code|svg|blockquote)\b.*?</\1>", re.DOTALL)
_ENGLISH = re.compile(r"<([a-z]+)[^>]* lang=\"en\"[^>]*>.*?</\1>", re.DOTALL)
_COMMAND = re.compile(r"`[^`]*`")


def read(url: str) -> str:
    request = urllib.request.Request(url, headers={"accept-language": "zh", "accept": "text/html"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def list_english_runs(page: str) -> list[str]:
    """Three English words and more in a row, in what a page says."""
    body = page[page.index("<body") :]
    # The page of the tabs has its first view before Gradio's own script.
    body = _ENGLISH.sub(" ", _APART.sub(" ", body))
    text = _COMMAND.sub(" ", html.unescape(re.sub(r"<[^>]+>", "\n", body)))
    labels = "\n".join(html.unescape(label) for label in re.findall(r'(?:aria-label|placeholder|alt)="([^"]*)"', body))
    known = (*OF_THE_FIXTURE, *OF_PAPERS, "podeval report judge")
    runs = RUN.findall(f"{text}\n{labels}")
    # Lists of names of metrics are code.
    said = [run for run in runs if not set(re.split(r"[ ,;:]+", run)) <= set(catalogue.NAMES)]
    return [run for run in said if not any(name in run or run in name for name in known)]


@pytest.mark.parametrize("path", PAGES)
def test_a_chinese_page_has_no_run_of_english_words(address: str, path: str) -> None:
    assert list_english_runs(read(f"{address.rstrip('/')}{path}")) == []


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize("tab", ["", "arena", "score", "submit", "queue", "about"])
def test_a_chinese_tab_has_no_run_of_english_words(chromium: Any, address: str, tab: str) -> None:
    context = chromium.new_context(locale="zh-CN")
    page = context.new_page()
    page.goto(f"{address}{tab}")
    page.wait_for_selector("gradio-app .tabitem:visible, .gradio-container [role=tabpanel]:visible")
    page.wait_for_load_state("networkidle")
    text = page.evaluate("document.body.innerText")
    context.close()
    runs = list_english_runs(f"<body>{html.escape(_COMMAND.sub(' ', text))}")
    assert [run for run in runs if not run.startswith("podeval ")] == []


def test_a_run_is_found() -> None:
    assert list_english_runs("<body><p>看 <code>podeval score file now</code> and what it says</p>") == [
        "and what it says"
    ]
