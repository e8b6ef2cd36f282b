"""The report of `podeval score` in a browser: it plays from where a word or a plot is clicked, and prints."""

from pathlib import Path
from typing import Any

import pytest
import soundfile

import podeval
from podeval.measuring import report as report_room
from podeval.measuring.report import TranscribedTurn
from podeval.models.interfaces import Word

WORDS = ["and", "so", "the", "two", "of", "them", "went", "on", "to", "talk", "of", "rivers", "and", "of", "salt"]


@pytest.fixture
def report(tmp_path: Path, speech_like: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a voice of 6 s with thirteen words, of which a new one begins every 0.4 s."""
    words = [Word(text, 0.4 * number, 0.4 * number + 0.3) for number, text in enumerate(WORDS)]
    turns = (TranscribedTurn("A", 0, 2, tuple(words[:5])), TranscribedTurn("B", 2, 6, tuple(words[5:])))
    monkeypatch.setattr(report_room, "read_turns", lambda scores: turns)
    soundfile.write(tmp_path / "talk.wav", speech_like, 16_000)
    script = " ".join(f"{word}{number % 7}" for number, word in enumerate(WORDS * 12))
    scores = podeval.score(tmp_path / "talk.wav", text=script, metrics="loudness,mattr")
    return scores.report(tmp_path / "report.html")


@pytest.mark.browser
def test_words_and_plots_play_from_where_they_are_by_mouse_and_keyboard(chromium: Any, report: Path) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(report.as_uri())
    # The page's policy forbids what `wait_for_function` does.
    page.locator("audio").evaluate(
        "audio => audio.readyState || new Promise(ready => audio.addEventListener('loadedmetadata', ready))"
    )
    # What is played would move on while it is looked at.
    page.evaluate("HTMLMediaElement.prototype.play = () => Promise.resolve()")

    def at() -> float:
        return float(page.evaluate("document.querySelector('audio').currentTime"))

    page.get_by_text("rivers", exact=True).click()
    assert at() == pytest.approx(4.4, abs=0.05)
    page.locator(".now", has_text="rivers").wait_for()
    bar = page.locator(".wave-track .at")
    bar.click(position={"x": bar.bounding_box()["width"] / 3, "y": 20})
    assert at() == pytest.approx(2, abs=0.1), "where the waveform was clicked"
    bar.press("ArrowRight")
    assert at() > 2.01, "the waveform is reached by keys, too"
    page.get_by_text("rivers", exact=True).click()
    of_tokens, in_time = page.locator(".plot svg:not([data-length])"), page.locator(".plot svg[data-length]")
    of_tokens.first.click()
    assert at() == pytest.approx(4.4, abs=0.05), "tokens are no seconds"
    box = in_time.first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * (48 + 660 / 2) / 720, box["y"] + box["height"] / 2)
    assert at() == pytest.approx(3, abs=0.15)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.emulate_media(media="print")
    assert not page.locator("audio").is_visible()
    assert page.get_by_text("loudness@").first.is_visible(), "on paper is how to get the same again"
    context.close()
    assert not errors
