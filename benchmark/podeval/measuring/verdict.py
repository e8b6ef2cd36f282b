"""A verdict on a recording in one or two sentences, and the few values to show first, in the reader's language."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from podeval.metrics import standing
from podeval.metrics.catalogue import NAMES, Metric, get, get_title
from podeval.metrics.facts import ARROWS, Key
from podeval.metrics.score import Defect, Result, Score, Unscored, format_clock
from podeval.reports.page import LANGUAGES, read_report_texts
from podeval.texts import translate_reason
from podeval.version import __version__

GROUPS: Mapping[str, tuple[str, ...]] = {
    "words": ("speech.accuracy", "speech.completeness"),
    "voices": ("speech.voice_fidelity", "speech.timbre_difference", "speech.who_says_it", "acoustics.timbre"),
    "sound": ("speech.quality", "speech.naturalness", "acoustics", "audio.quality", "audio.faults"),
    "loudness": ("audio",),
    "conversation": ("speech", "semantics", "expressiveness", "dialogue"),
    "script": ("script",),
    "other": ("",),
}
"""Prefixes of dimensions by group; a metric belongs to the first group that has a prefix of its dimension."""

LINES = (
    *("wer.wer", "wer.cer", "content_errors.errors_per_1000"),
    *("speaker_attribution.attribution_accuracy", "sptd.sptd", "sim.sim", "timbre_consistency.timbre_consistency"),
    *("distillmos.distillmos", "dnsmos.ovrl", "integrity.faults_per_hour"),
    *("loudness.integrated", "loudness.true_peak", "smr.smr"),
    *("turn_taking.human_distance", "pace.speaking_rate", "mattr.mattr"),
)
"""The values that are shown by default, that is, without names and without `--all`."""

_OF_DEFECTS = {"integrity": "sound", "content_errors": "words"}
"""The part of a recording that a metric checks for defects."""
_FEW = 3
_LEVEL = "loudness.integrated"
"""The value that is called too quiet or too loud, and the middle of its ideal range."""


@dataclass(frozen=True)
class ScoreRow:
    """A value of a metric, for a table; `value` is None if it does not exist for this recording.

    A value that is not ranked (`unranked` gives the reason) is called neither good nor poor; in a recording with
    defects (`faulty`), no value is called better than people's. For a rate, `counted` is the length to which it refers,
    in hours or thousands of words. A `censored` value is a lower bound.
    """

    metric: Metric
    key: Key
    value: float | None
    unranked: str = ""
    profile: str = "embedded"
    faulty: bool = False
    counted: float = 0.0
    censored: bool = False

    @property
    def word(self) -> standing.Word:
        """Whether the value is good, usual or poor; empty if unknown, or if it is not ranked."""
        word = "" if self.unranked else standing.choose_word(self.metric, self.key, self.value, self.profile)
        return "" if word == "good" and self.faulty and not self.key.ideal else word

    @property
    def band(self) -> dict[str, Any]:
        """The basis of the word: its bounds, the material and the number of recordings; empty if there is no word."""
        return standing.describe_band(self.metric, self.key, self.profile) if self.word else {}

    @property
    def name(self) -> str:
        """The name of the value in requests, `metric.key`."""
        return f"{self.metric.name}.{self.key.name}"


_PHRASE = re.compile(r"^said again: |^in |'s voice$")
"""The phrases that surround the words or the name in the detail of a metric's defect."""
_UNRANKED = re.compile(r"not ranked \(([^)]*)\): ")
UNUSABLE = "unusable"
"""The kind of defect that affects the whole recording; its detail begins with a verb."""


class ReportWords:
    """The texts of a report in a language, `en` or `zh`.

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
        """Return a text, or a group of texts."""
        return self.texts[name]

    @property
    def made(self) -> str:
        """State the version of podeval, the date of a report, and the meaning of its arrows."""
        return str(self["made"]).format(__version__, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))

    def reason(self, sentence: str) -> str:
        """Return the reason why something is not scored."""
        return translate_reason(sentence, self._causes)

    def note(self, name: str, sentence: str) -> str:
        """Return the notes that a reader of a metric's values needs, with titles instead of keys."""
        unranked = _UNRANKED.match(sentence)
        if unranked and name in NAMES:
            metric = get(name)
            rows = [ScoreRow(metric, key, None) for key in metric.keys if key.name in unranked[1].split(", ")]
            sentence = sentence.replace(unranked[1], ", ".join(map(self.name, rows)), 1)
        return self.reason(sentence)

    def unit(self, row: ScoreRow) -> str:
        """Return the unit and direction of a value."""
        return f"{self.unit_alone(row)} {ARROWS[row.key.better]}".strip()

    def unit_alone(self, row: ScoreRow) -> str:
        """Return the unit of a value if its text does not contain one yet."""
        return "" if row.counted else standing.translate(row.key.unit, self.language)

    def quote(self, row: ScoreRow) -> str:
        """Format a value with its unit."""
        return f"{self.value(row)} {self.unit_alone(row)}".strip()

    def name(self, row: ScoreRow) -> str:
        """Return the title of a row's value."""
        return standing.translate(row.metric.title_of(row.key), self.language)

    def value(self, row: ScoreRow) -> str:
        """Format a value for readers: as a percentage, or as a count if it is a rate."""
        if not row.counted or row.value is None:
            return standing.AT_LEAST * row.censored + standing.format_value(row.key, row.value)
        in_hours = row.key.unit == "per hour"
        length = self.length(3600 * row.counted) if in_hours else str(round(1000 * row.counted))
        return str(self["counted"]["hours" if in_hours else "words"]).format(round(row.value * row.counted), length)

    def usual(self, row: ScoreRow) -> str:
        """Format the usual values or the ideal range; empty if the value is not rated good, usual or poor."""
        band = row.band
        if not band:
            return ""
        span = standing.format_span(row.key, (band["low"], band["high"]))
        if band["material"] == standing.TARGET:
            return str(self["best"]).format(span)
        return f"{span} {standing.translate(row.key.unit, self.language)}" if row.counted and band["high"] else span

    def basis(self, row: ScoreRow) -> str:
        """Return the basis on which a value is called good, usual or poor, for its tooltip."""
        band = row.band
        if not band.get("n"):
            return self.usual(row)
        material = standing.translate(band["material"], self.language)
        return str(self["basis"]).format(self.usual(row), material, band["n"])

    def defect(self, defect: Defect) -> tuple[str, str]:
        """Describe the kind of a defect, and the expected words."""
        kinds, phrases = self._defects["defect_kinds"], self._defects["defect_heard"]
        name = defect.kind.replace(" ", "_")
        kind = kinds.get(name) or self["file_defects"].get(name, defect.kind)
        if name == UNUSABLE:
            return str(kind), self.reason(f"the recording {defect.detail}")
        phrase = str(phrases.get(name, "{heard}"))
        seconds = f"{defect.end - defect.start:.1f}"
        words_heard = "" if defect.detail in ("a click", defect.kind) else _PHRASE.sub("", defect.detail)
        detail = self.reason(phrase.format(heard=words_heard, seconds=seconds))
        return str(kind), "" if detail == kind else detail

    def length(self, seconds: float) -> str:
        """Format a duration: `48.2 s`, `40 s` for an integer, `1 min 31 s`, `1 h 02 min`."""
        if seconds < 60:
            return str(self["lengths"]["seconds"]).format(seconds if isinstance(seconds, int) else f"{seconds:.1f}")
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return str(self["lengths"]["minutes"]).format(minutes, f"{rest:02d}")
        return str(self["lengths"]["hours"]).format(minutes // 60, f"{minutes % 60:02d}")

    def metric(self, name: str) -> str:
        """Return the title of a metric, or the topic of a note that is not about a metric."""
        return str(self["noted"].get(name) or standing.translate(get_title(name), self.language))


def group_rows(rows: Iterable[ScoreRow]) -> dict[str, list[ScoreRow]]:
    """Group rows in the order that readers expect; groups without a row are left out."""
    groups: dict[str, list[ScoreRow]] = {name: [] for name in GROUPS}
    for row in rows:
        groups[next(name for name, of in GROUPS.items() if row.metric.dimension.startswith(of))].append(row)
    return {name: members for name, members in groups.items() if members}


def choose_lines(rows: Sequence[ScoreRow], requested: Sequence[str]) -> list[ScoreRow]:
    """Choose the values to show first: the values that were requested by name, otherwise about ten values."""
    if requested:
        return list(rows)
    # In a language with spaces between words, the character error rate adds nothing.
    hidden = {"wer.cer"} if "wer.wer" in (row.name for row in rows) else set()
    return [row for row in rows if row.name in LINES and row.name not in hidden]


def write_verdict(
    lines: Sequence[ScoreRow], defects: Sequence[Defect], results: Mapping[str, Result], words: ReportWords
) -> str:
    """Describe the faults and poor values of a recording in one or two sentences; say if no other value is poor."""
    texts = words["verdict"]
    if unusable := [words.defect(one)[1] for one in defects if one.kind == UNUSABLE]:
        return str(texts["unusable"].format(unusable[0]))
    looked = "_".join(at for name, at in _OF_DEFECTS.items() if isinstance(results.get(name), Score))
    sentences = [_sum_up_defects(defects, texts)] if defects else [texts["none_in"][looked]] if looked else []
    for result in results.values():
        if isinstance(result, Score) and result.notes.get("music"):
            spans = (f"{format_clock(start)}–{format_clock(end)}" for start, end in result.notes["music"])
            sentences.append(texts["music"].format(", ".join(spans)))
    judged = [row for row in lines if row.word]
    poor = [row for row in judged if row.word == "poor"]
    phrases = []
    for row in poor:
        if row.name == _LEVEL:
            low, high = row.key.ideal or (0.0, 0.0)
            side = "quiet" if row.value is not None and row.value < low else "loud"
            target = standing.format_span(row.key, ((low + high) / 2,) * 2)
            sentences.append(texts[side].format(words.quote(row), target))
        # Stating the number of faults would repeat the list of defects.
        elif not (row.counted and defects):
            usual = texts["usual"].format(words.usual(row)) if row.band["n"] else words.usual(row)
            phrases.append(texts["one"].format(words.name(row), words.quote(row), usual))
    sentences += [texts["poor"].format(texts["and"].join(phrases))] if phrases else []
    if len(judged) > len(poor):
        is_better = not defects and any(row.word == "good" for row in judged)
        sentences.append(texts["rest" if poor or defects else "all"][("usual", "good")[is_better]])
    if absent := [name for name, one in results.items() if isinstance(one, Unscored) and one.cause == "ours"]:
        sentences.append(texts["absent"].format(", ".join(absent)))
    # Chinese has no spaces between sentences.
    return ("" if words.language == "zh" else " ").join(sentences) or str(texts["nothing"])


def _sum_up_defects(defects: Sequence[Defect], texts: Mapping[str, Any]) -> str:
    """Describe the defects by kind, with their times."""
    phrases = []
    for kind in dict.fromkeys(defect.kind for defect in defects):
        what, some = texts["found"].get(kind.replace(" ", "_"), kind), [one for one in defects if one.kind == kind]
        times = ", ".join(format_clock(one.start, 1) for one in some[:_FEW]) + " …" * (len(some) > _FEW)
        if kind == "hole" and len(some) == 1:
            what = texts["lasting"].format(f"{some[0].end - some[0].start:.2f}", what)
        at = texts["at" if len(some) == 1 else "times"]
        phrases.append(at.format(what, times) if len(some) == 1 else at.format(what, len(some), times))
    number = "one" if len(defects) == 1 else "many"
    return str(texts["defects"][number].format(len(defects), texts["and"].join(phrases)))
