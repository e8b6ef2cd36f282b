"""What is said of recordings in reports and tables, in the language of the reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from podeval.measuring.plots import PlotTexts
from podeval.measuring.standing import format_number, format_span
from podeval.metrics.reasons import translate_reason, translate_unit
from podeval.reports.page import LANGUAGES, read_report_texts
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.measuring.recording_results import Defect, RecordingResults, ScoreRow

_PHRASE = re.compile(r"^said again: |^in |'s voice$")
"""What stands around the words or the name in what a metric says is heard."""


UNUSABLE = "unusable"
"""The kind of a defect of the whole recording, whose detail begins with a verb."""


def format_clock(seconds: float) -> str:
    """Format a time in a recording: `1:02.5`."""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:04.1f}"


class ReportWords:
    """The texts of a report.

    Args:
        language: `en` or `zh`.

    Raises:
        BadInput: there is no such language.
    """

    def __init__(self, language: str = LANGUAGES[0]) -> None:
        texts = read_report_texts(language)
        self.language = language
        self.texts: Mapping[str, Any] = texts["recording_report"]
        self._defects: Mapping[str, Any] = texts["report"]
        self._causes: Mapping[str, Any] = texts["board"]["causes"]

    def __getitem__(self, name: str) -> Any:
        """Return a text, or a group of them."""
        return self.texts[name]

    @property
    def made(self) -> str:
        """Say by which version a report was made and when, and what the arrows mean."""
        return str(self["made"]).format(__version__, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))

    def reason(self, sentence: str) -> str:
        """Why something is not scored."""
        return translate_reason(sentence, self._causes)

    def unit(self, row: ScoreRow) -> str:
        """Unit and direction of a value."""
        unit = row.key.unit
        return row.key.unit_text.replace(unit, translate_unit(unit, self.language), 1) if unit else row.key.unit_text

    def name(self, row: ScoreRow) -> str:
        """What a value is called, where that says more than its name."""
        return row.key.zh if self.language == "zh" else ""

    def ideal(self, row: ScoreRow) -> str:
        """What is best, where a key is best in a range."""
        if row.key.ideal is None:
            return ""
        low, high = row.key.ideal
        if low == float("-inf"):
            return str(self["best"]["up_to"]).format(format_number(high))
        return str(self["best"]["between"]).format(format_span((low, high)))

    def defect(self, defect: Defect) -> tuple[str, str]:
        """The kind of a defect, and what is to be heard there."""
        if self.language == LANGUAGES[0]:
            kind = defect.kind.replace("_", " ")
            # What is said of a click is that it is a click.
            return kind, "" if defect.detail in (kind, f"a {kind}") else defect.detail
        kinds, phrases = self._defects["defect_kinds"], self._defects["defect_heard"]
        name = defect.kind.replace(" ", "_")
        kind = kinds.get(name) or self["file_defects"].get(name, defect.kind)
        phrase = str(phrases.get(name, "{heard}"))
        if name == UNUSABLE:
            return str(kind), self.reason(f"the recording {defect.detail}")
        seconds = f"{defect.end - defect.start:.1f}"
        return str(kind), self.reason(phrase.format(heard=_PHRASE.sub("", defect.detail), seconds=seconds))

    @property
    def plots(self) -> PlotTexts:
        """What plots say."""
        return PlotTexts(
            str(self["usual"]),
            str(self["plot_over_time"]),
            lambda defect: ": ".join(filter(None, self.defect(defect))),
            css_class="drawn wide",
        )

    def length(self, seconds: float) -> str:
        """A length of time: `48.2 s`, `1 min 31 s`, `1 h 02 min`."""
        if seconds < 60:
            return str(self["lengths"]["seconds"]).format(f"{seconds:.1f}")
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return str(self["lengths"]["minutes"]).format(minutes, f"{rest:02d}")
        return str(self["lengths"]["hours"]).format(minutes // 60, f"{minutes % 60:02d}")

    def facts(self, scores: RecordingResults) -> str:
        """What the recording is, in one line: length, rate, channels, profile."""
        facts = scores.facts
        parts = [str(self["only_words"])]
        if facts.channels:
            channels = self["channels"].get(str(facts.channels)) or self["channels"]["many"].format(facts.channels)
            parts = [self.length(facts.seconds), f"{facts.rate / 1000:g} kHz", str(channels)]
        return " · ".join([*parts, str(self["profile"]).format(scores.profile)])

    def heading(self, scores: RecordingResults) -> str:
        """The name of the recording, and what it is."""
        return f"{scores.name} · {self.facts(scores)}"
