"""Designs of listening tests: the stimuli and the questions, in one YAML document per test.

    kind: mushra
    id: naturalness
    title: Dialogue naturalness
    systems: [aria, basso]
    listeners: 20
    items:
      - id: Arts
        reference: {audio: reference/Arts.wav, seconds: 18}
        high: {audio: HQ/Arts.wav, seconds: 18}
        low: {audio: LQ/Arts.wav, seconds: 18}
        stimuli:
          aria: {audio: aria/Arts.wav, seconds: 18}
          basso: {audio: basso/Arts.wav, seconds: 18}

Kinds: `mushra` (all systems of an item on a page, visible reference, hidden anchors), `questionnaire` (nine questions
per clip, or your own `questions`), `rubric` (binary criteria and a rationale per response), `mos` (one to five on named
scales), `preference` (pairs, -2 to 2), `text_preference` (pairs of texts) and `abx` (which of two is X?). For
kinds with one recording or one pair per page, `each: all` makes every listener rate all recordings or pairs of an item.
The time per listener is estimated; a test that exceeds `minutes` is refused, and the message gives the number of items
that would fit. `headphone_check` and `completion` are described in `podeval.listening.screening`.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from podeval.benchmarks.records import FactSheet
from podeval.errors import BadInput
from podeval.files import resolve_inside
from podeval.listening import questionnaire
from podeval.listening.screening import PAGE, SECONDS, TRIALS, Completion, HeadphoneCheck
from podeval.stats.mushra_scores import HIGH, LOW
from podeval.stats.questionnaire_scores import ABOUT, SPEAKERS
from podeval.text.yaml_text import describe_place, read_yaml_file

Kind = Literal["mushra", "questionnaire", "rubric", "mos", "preference", "text_preference", "abx"]
Name = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=100)]
Words = Annotated[str, Field(pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$", max_length=20_000)]

PAIRED = ("preference", "text_preference", "abx")
"""Kinds whose pages compare two systems instead of rating them separately."""

SPREAD = ("mos", "rubric", "preference", "text_preference")
"""Kinds in which a listener rates one recording or pair per item unless the design states `each: all`."""

MINUTES = 30.0
"""Default limit on a test's length in minutes; PodEval's listeners did not need more time."""

_PAGE_SECONDS = 5.0
_MARK_SECONDS = 4.0
_MARK_AND_REASON_SECONDS = 22.0
_CRITERION_SECONDS = 8.0
_RATIONALE_SECONDS = 30.0
_WORDS_A_SECOND = 4.0


class Stimulus(FactSheet):
    """A stimulus to listen to or read; `speakers` and `music` are the known answers for attention checks."""

    audio: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    text: Words | None = None
    seconds: Annotated[float, Field(gt=0, le=24 * 3600)] | None = None
    speakers: Annotated[int, Field(ge=1, le=50)] | None = None
    music: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        return self.refuse_if(((self.audio is None) == (self.text is None), "must be either audio or text"))

    @property
    def duration(self) -> float:
        """Seconds needed to listen to or read the stimulus."""
        if self.text is not None:
            return len(self.text.split()) / _WORDS_A_SECOND
        return self.seconds or 0.0


class DesignItem(FactSheet):
    """One category or question, with every system's stimulus for it."""

    id: Name
    category: Name | None = None
    prompt: Words = ""
    prompt_audio: Stimulus | None = None
    reference: Stimulus | None = None
    high: Stimulus | None = None
    low: Stimulus | None = None
    stimuli: dict[Name, Stimulus] = Field(min_length=1)
    criteria: tuple[Words, ...] = ()


class OwnQuestion(FactSheet):
    """A user's own question in a questionnaire, rated on a scale from 1 with one label per mark or, if there are no
    labels, answered in words.

    `reason` asks for the reason for a rating. With `choice`, the labels have no order, and the counts of labels are
    reported instead of a mean. A question named `speakers` without labels asks for a number. Questions with the same
    names as podeval's nine questions are screened and scored like those questions.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    text: Words = Field(min_length=1)
    labels: tuple[Name, ...] = Field(default=(), max_length=20)
    reason: bool = False
    choice: bool = False

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        return self.refuse_if(
            (len(self.labels) == 1, "has one label, so there is nothing to choose"),
            (
                (self.reason or self.choice) and not self.labels,
                "asks for a choice or for the reason for a mark, but has no labels",
            ),
        )

    @property
    def asked(self) -> questionnaire.Question:
        """The question as a page asks it."""
        in_words = not self.labels and self.name != SPEAKERS
        return questionnaire.Question(self.name, self.text, self.labels, self.reason, optional=in_words)


class ScreeningRule(FactSheet):
    """The rule that determines which listeners' marks count; see `podeval.stats.mushra_scores`."""

    low_worst: Annotated[float, Field(ge=0, le=1)] | None = 0.9
    high_top: Annotated[float, Field(ge=0, le=1)] | None = 0.5
    alike: Annotated[float, Field(ge=0, le=1)] | None = 0.5
    seconds: Annotated[float, Field(ge=0)] | None = None
    pam: bool = False


class Design(FactSheet):
    """The design of a listening test."""

    kind: Kind
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
    title: Name
    systems: tuple[Name, ...] = Field(min_length=1, max_length=200)
    items: tuple[DesignItem, ...] = Field(min_length=1, max_length=5000)
    instructions: Words = ""
    consent: Words = Field(
        default="", description="points that listeners agree to, in addition to those on the page itself"
    )
    listeners: Annotated[int, Field(ge=1, le=100_000)] = 20
    items_each: Annotated[int, Field(ge=1)] | None = Field(default=None, description="None: as many as fit")
    each: Literal["all"] | None = Field(default=None, description="all: every recording or pair of a listener's items")
    minutes: Annotated[float, Field(gt=0, le=600)] | None = MINUTES
    heard: Annotated[float, Field(ge=0, le=1)] = Field(default=0.0, description="share of each stimulus to be played")
    scales: tuple[Name, ...] = ()
    aspect: Words = ""
    questions: tuple[OwnQuestion, ...] = Field(default=(), max_length=100)
    demographics: tuple[OwnQuestion, ...] = Field(default=(), max_length=100, description="asked once, on a last page")
    ties: bool = True
    screening: ScreeningRule = ScreeningRule()
    trials: Annotated[int, Field(ge=1, le=50)] = Field(default=1, description="pages for each item of an abx test")
    headphone_check: HeadphoneCheck | None = None
    completion: Completion | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        kind, minutes, items_each = self.kind, self.minutes or 0.0, self.items_each or 1
        unknown = next((name for name in self.scales if name not in questionnaire.SCALES), None)
        names = [[one.name for one in questions] for questions in (self.questions, self.demographics)]
        labelled = any(question.labels for question in self.demographics)
        self.refuse_if(
            (len({*self.systems}) < len(self.systems), "a system is listed twice"),
            (
                {HIGH, LOW} & {*self.systems},
                f"{HIGH} and {LOW} are the names of the anchors; specify the anchors as high and low of each item",
            ),
            (len({item.id for item in self.items}) < len(self.items), "two items have the same id"),
            *(fault for item in self.items for fault in self._check(item)),
            (kind in PAIRED and len(self.systems) < 2, "a comparison in pairs needs at least two systems"),
            (self.trials > 1 and kind != "abx", f"a {kind} test has one page for each item; trials are for abx tests"),
            (self.each and kind not in SPREAD, f"each: all is possible for {', '.join(SPREAD)}, but not for {kind}"),
            *self._check_headphones(),
            (unknown, f"there is no scale {unknown!r}; choose from {', '.join(questionnaire.SCALES)}"),
            ((kind == "mos") != bool(self.scales), "a mos test must name its scales, and other tests must not"),
            (
                self.questions and kind != "questionnaire",
                f"a {kind} test has no questions of its own; use a questionnaire",
            ),
            (any(len({*group}) < len(group) for group in names), "two questions have the same name"),
            (
                self.demographics and not labelled,
                "the demographics need a question with labels; otherwise nothing shows that their page was answered",
            ),
            (self._has_item(ABOUT), f"{ABOUT} is the id of the demographics page; give the item another id"),
        )
        # A listener must be able to finish within the time limit.
        time = f"about {self.estimate(items_each):.0f} minutes for {items_each} items, but the limit is"
        fitting = self.fitting
        return self.refuse_if(
            (fitting < items_each, f"a listener would need {time} {minutes:g}; {fitting} items would fit")
        )

    def _check(self, item: DesignItem) -> list[tuple[object, str]]:
        missing = [system for system in self.systems if system not in item.stimuli]
        texts = self.kind == "text_preference"
        return [
            (
                self.kind in ("mushra", "questionnaire", *PAIRED) and missing,
                f"item {item.id} lacks {', '.join(missing)}; all systems are compared on one page",
            ),
            (
                self.kind == "mushra" and item.reference is None,
                f"item {item.id} lacks the reference that listeners compare with",
            ),
            (
                self.kind == "rubric" and not 1 <= len(item.criteria) <= 20,
                f"item {item.id} needs 1 to 20 criteria by which it is judged (MTalk-Bench has 7 to 9)",
            ),
            (
                any((stimulus.text is not None) != texts for stimulus in item.stimuli.values()),
                f"item {item.id}: a {self.kind} test compares {'texts' if texts else 'audio'}",
            ),
        ]

    def _has_item(self, id: str) -> bool:
        return any(item.id == id for item in self.items)

    def _check_headphones(self) -> list[tuple[object, str]]:
        if self.headphone_check is None:
            return []
        completion = self.completion or Completion()
        ends_with_code = self.headphone_check.failed == "end" and completion.address_for("x") is not None
        return [
            (self.kind == "text_preference", "a test of texts needs no headphones"),
            (self._has_item(PAGE), f"{PAGE} is the id of the headphone check; give the item another id"),
            (
                ends_with_code and not completion.screened_out,
                "listeners who fail the headphone check need a separate completion code; give it as screened_out",
            ),
        ]

    @property
    def digest(self) -> str:
        """SHA-256 of the document and the questions; answers are pooled only across designs with the same digest."""
        # The way back to the listeners' panel does not affect the answers, so it is left out. Fields that were added in
        # later versions are left out if unset, so that the digests of older designs stay the same.
        plain = {"questions": (), "demographics": (), "trials": 1, "headphone_check": None, "each": None}
        later = {name for name, value in plain.items() if getattr(self, name) == value}
        document = self.model_dump(mode="json", exclude={"consent", "completion"} | later)
        for question in document.get("questions", ()):
            if not question["choice"]:
                del question["choice"]
        canonical = json.dumps(
            [document, questionnaire.VERSION], sort_keys=True, ensure_ascii=True, separators=(",", ":")
        )
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def questionnaire(self) -> tuple[questionnaire.Question, ...]:
        """The questions that a questionnaire asks about each clip."""
        return tuple(question.asked for question in self.questions) or questionnaire.QUESTIONNAIRE

    @property
    def introduction(self) -> str:
        """The text that the listener reads first."""
        return self.instructions or questionnaire.INSTRUCTIONS[self.kind]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of systems to compare, each pair in only one order; the sides are drawn for each listener."""
        return list(itertools.combinations(self.systems, 2))

    @property
    def items_heard(self) -> int:
        """Number of items for each listener."""
        return min(self.items_each or self.fitting, len(self.items))

    @property
    def fitting(self) -> int:
        """Maximum number of items that fit within the time limit, assuming the longest items."""
        if self.minutes is None:
            return len(self.items)
        whole = itertools.accumulate(self._longest_first(), initial=self._check_seconds)
        return max(0, sum(seconds / 60 <= self.minutes for seconds in whole) - 1)

    def estimate(self, items: int) -> float:
        """Return the number of minutes that one listener needs for the given number of the longest items, each played
        once.
        """
        return (self._check_seconds + sum(self._longest_first()[:items])) / 60

    @property
    def _check_seconds(self) -> float:
        return _PAGE_SECONDS + TRIALS * (SECONDS + _MARK_SECONDS) if self.headphone_check else 0.0

    def _longest_first(self) -> list[float]:
        return sorted((self._seconds(item) for item in self.items), reverse=True)

    def _seconds(self, item: DesignItem) -> float:
        """Return the number of seconds that one listener spends on an item, depending on the questions on its pages."""
        if self.each == "all":
            times = len(self.pairs) if self.kind in PAIRED else len(item.stimuli)
            return times * self._page_seconds(item)
        return self._page_seconds(item)

    def _page_seconds(self, item: DesignItem) -> float:
        durations = sorted((stimulus.duration for stimulus in item.stimuli.values()), reverse=True)
        whole = len(item.prompt.split()) / _WORDS_A_SECOND + (item.prompt_audio.duration if item.prompt_audio else 0)
        page = _PAGE_SECONDS + whole
        marked = [*durations, *(anchor.duration for anchor in (item.high, item.low) if anchor)]
        reference = item.reference.duration if item.reference else 0.0
        questions = _MARK_SECONDS + _MARK_AND_REASON_SECONDS * sum(q.reason for q in self.questionnaire)
        by_kind = {
            "mushra": page + reference + sum(marked) + _MARK_SECONDS * len(marked),
            "questionnaire": sum(page + duration + questions for duration in durations),
            "rubric": whole + durations[0] + _CRITERION_SECONDS * len(item.criteria) + _RATIONALE_SECONDS,
            "mos": page + durations[0] + _MARK_SECONDS * len(self.scales),
            "abx": self.trials * (page + 3 * durations[0] + _MARK_SECONDS),
        }
        return by_kind.get(self.kind, page + sum(durations[:2]) + _MARK_SECONDS)

    @property
    def recordings(self) -> list[str]:
        """Paths of all recordings in the test, as written in the design."""
        paths = [
            stimulus
            for item in self.items
            for stimulus in (item.prompt_audio, item.reference, item.high, item.low, *item.stimuli.values())
        ]
        return list(dict.fromkeys(stimulus.audio for stimulus in paths if stimulus and stimulus.audio))

    def item(self, name: str) -> DesignItem:
        """Return an item by its id."""
        return next(item for item in self.items if item.id == name)


def read_design(source: str | Path | Mapping[str, Any]) -> Design:
    """Read a design from a YAML file, or from its content as data.

    Raises:
        BadInput: the file cannot be read (for example, because it has more than `LONGEST_YAML` characters) or is not a
            design; the message names the location.
    """
    content: Any = source
    if isinstance(source, str | Path):
        content = read_yaml_file(Path(source))
    try:
        return TypeAdapter(Design).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        position = [describe_place(Path(source), first["loc"])] if isinstance(source, str | Path) else []
        where = "".join(f"{part}: " for part in (*position, location) if part)
        raise BadInput(f"this is not a design of a listening test: {where}{message}") from None


def measure_durations(design: Design, folder: Path) -> Design:
    """Return the design with measured lengths, in seconds, for the audio files in `folder` whose length is not given.

    Raises:
        BadInput: a file is outside the folder, is missing or is not audio, or the measured lengths make the test too
            long.
    """
    from podeval.audio.duration import read_container_and_seconds

    def measured(stimulus: dict[str, Any]) -> dict[str, Any]:
        path = resolve_inside(folder, stimulus["audio"])
        seconds = stimulus.get("seconds") or read_container_and_seconds(path)[1]
        return stimulus | {"seconds": seconds}

    return _change_stimuli(design, measured)


def resolve_recordings(design: Design, folder: Path) -> Design:
    """Return the design with absolute paths; its recordings must be in `folder`.

    Raises:
        BadInput: a file is outside the folder.
    """
    return _change_stimuli(
        design, lambda stimulus: stimulus | {"audio": str(resolve_inside(folder, stimulus["audio"]))}
    )


def _change_stimuli(design: Design, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Design:
    """Return the design with `change` applied to every audio stimulus."""

    def walk(content: Any) -> Any:
        if isinstance(content, dict):
            return change(content) if content.get("audio") else {key: walk(value) for key, value in content.items()}
        return [walk(value) for value in content] if isinstance(content, list) else content

    return read_design(walk(design.model_dump(mode="json")))
