"""A spoken dialogue to be judged: the user's words, the system's answers, and the criteria (MTalk-Bench).

A judge can consider how an answer sounds only if it hears the answer, or reads the tones that a listener noted
(`answer_tags`). Otherwise, paralinguistic and ambient dialogues cannot be judged (the paper's two conditions, section
6.2.2).

As data: `{"id", "dimension", "turns": [{"user", "answer", "user_audio", "answer_audio", "user_tags", "answer_tags"}],
"criteria": {"general": […], "dimension": […], "sample": […]}, "turn_criteria": {"1": […]}, "capability", "scenario",
"system"}`. Texts are transcripts, `tags` are the sounds and tones in them, and audio is given as file paths. `answer`
is the system's own transcript: judges see it as a claim, with text in brackets turned into quotations. If someone else
transcribed the answer, `answer_heard` is shown instead; with `transcribe_answers`, the recogniser provides this
transcript. The general criteria and those for the dimension are optional: podeval has its own wording of both.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from podeval.errors import BadInput, CannotScore
from podeval.judges.prompt import AudioClip
from podeval.recording import MODEL_RATE, Recording
from podeval.text.characters import clean_text
from podeval.text.text_file import read_text
from podeval.text.tokens import detect_language

Transcripts = Literal["claimed", "heard"]
"""Source of the words that a judge reads: the system's own transcript, marked as such, or the recogniser."""
Modality = Literal["transcript", "audio", "as_needed"]
"""Whether a judge reads or listens to a dialogue; with `as_needed`, it listens to dialogues for which plain words do
not suffice.
"""
DimensionName = Literal["semantic", "paralinguistic", "ambient"]
Level = Literal["general", "dimension", "sample"]

LEVELS: tuple[Level, ...] = ("general", "dimension", "sample")
_LETTERS = {"s": "general", "m": "dimension", "d": "sample"}

BRACKETS = (
    "Square brackets hold sounds and tones that were heard. Where a line says that the system wrote it, it is the "
    "system's own claim of its words, and quotation marks in it show no tone."
)
"""Facts about the transcript for a judge that reads it."""

UNHEARD = (
    "a judge that reads plain words cannot tell how an answer sounds, which {} dialogues are about; choose a judge "
    "that hears and modality=audio, or give every answer answer_tags, the sounds and tones that a listener noted"
)

_BRACKETED = re.compile(r"[\[(\uff08\u3010{<*]([^\[\](){}<>\uff08\uff09\u3010\u3011*]*)[\])\uff09\u3011}>*]")
_BRACKETS = re.compile(r"[\[\](){}<>\uff08\uff09\u3010\u3011\uff3b\uff3d\u3014\u3015]")

_CRITERION = re.compile(r"^[^\w\n]*(criteria_[smd]_\d+)(?:[^\w:：]*[:：])+\s*(\S.*)", re.MULTILINE)
_UNDERSTOOD = "The answer is correct in its grammar and easy to understand."
_ON_TOPIC = "The answer responds directly to what the user has just said."
GENERAL: Mapping[DimensionName, tuple[str, str]] = {
    "semantic": (_ON_TOPIC, _UNDERSTOOD),
    "paralinguistic": (_ON_TOPIC, _UNDERSTOOD),
    "ambient": ("The answer rests on what can be heard in the user's audio, and responds to it.", _UNDERSTOOD),
}
"""General criteria, by the dimension of the dialogue."""

DIMENSION: Mapping[DimensionName, tuple[str, str]] = {
    "semantic": (
        "What was said in earlier turns is remembered rightly and used where the present request needs it.",
        "The answers agree with one another and with the conversation: no contradiction, no drift of meaning.",
    ),
    "paralinguistic": (
        "How the user speaks (feeling, tone, pace, hesitation, other voices) is recognised rightly.",
        "The answers adapt to how the user speaks.",
    ),
    "ambient": (
        "The sounds around the user are noticed throughout the dialogue.",
        "The answers stay appropriate however loud or changing the sounds around the user are.",
    ),
}
"""Criteria for all dialogues of a dimension, by dimension."""

FOCUS: Mapping[DimensionName, str] = {
    "semantic": (
        "Understanding: which system better grasps what is meant over all turns, keeps instructions and history in "
        "mind, and answers consistently and clearly."
    ),
    "paralinguistic": (
        "How things are said: which system better perceives feeling, intonation, pace and other features of the voice, "
        "and answers in a way that suits them."
    ),
    "ambient": (
        "The sounds around: which system better notices noises, natural sounds and other people, and adjusts what it "
        "says, and how, to the situation they tell of."
    ),
}
"""The quality on which systems are compared, by dimension."""

CAPABILITIES: Mapping[str, str] = {
    "understanding_and_memory": "following references and context over turns, and remembering what was said",
    "reasoning_and_execution": "drawing right conclusions and carrying out what is asked, step by step",
    "interaction_strategy": "leading the conversation: asking back, clarifying, correcting, keeping to the goal",
    "security_assessment": "recognising what is harmful, private or untrue, and answering safely",
    "pragmatics_and_culture": "grasping what is implied, irony and politeness, and what a culture takes for granted",
    "paralinguistic_comprehension": "recognising feeling, tone and manner of speaking, and who is speaking",
    "paralinguistic_generation": "speaking with the feeling, tone or manner that is asked for or called for",
    "ambient_sound_perception": "drawing on sounds around the user for what to say",
    "multi_party_interaction": "keeping several speakers apart, and knowing when and to whom to speak",
}
"""The meaning of each capability in MTalk-Bench, in our own words."""


@dataclass(frozen=True)
class Criterion:
    """One criterion, which is either met or not; its `id` has the paper's form, `criteria_s_1`."""

    id: str
    text: str

    @property
    def level(self) -> Level:
        """The level (general, dimension or sample), from the letter of the id."""
        return next(level for level in LEVELS if level == _LETTERS[self.id.split("_")[1]])


@dataclass(frozen=True)
class DialogueTurn:
    """One turn: the user's words and the system's answer."""

    user: str = ""
    answer: str = ""
    user_audio: Path | None = None
    answer_audio: Path | None = None
    user_tags: tuple[str, ...] = ()
    answer_tags: tuple[str, ...] = ()
    answer_heard: str = ""
    """The answer as transcribed by someone other than the system; empty if there is no such transcript."""

    @property
    def words(self) -> str:
        """The words of the answer: `answer_heard` if it exists, otherwise the system's own transcript."""
        return self.answer_heard or self.answer


@dataclass(frozen=True)
class SpokenDialogue:
    """All turns, the criteria for the whole dialogue, and the criteria for the dialogue cut off at a turn."""

    id: str
    dimension: DimensionName
    turns: tuple[DialogueTurn, ...]
    criteria: tuple[Criterion, ...]
    turn_criteria: Mapping[int, tuple[Criterion, ...]] = field(default_factory=dict)
    capability: str | None = None
    scenario: str | None = None
    system: str | None = None
    profile: str = "embedded"
    """The profile whose recogniser transcribes answers."""

    def transcribe_answers(self) -> "SpokenDialogue":
        """Return the dialogue with the recogniser's transcript of each answer that has audio, in the user's language.

        For an answer without audio, the system's own claim is kept.

        Raises:
            CannotScore: an answer contains no speech, or its audio cannot be read.
            ModelMissing: the profile has no recogniser, or it is not installed.
        """
        language = detect_language(" ".join(turn.user for turn in self.turns) or self.turns[0].answer)
        turns = (self._hear(number, turn, language) for number, turn in enumerate(self.turns, 1))
        return replace(self, turns=tuple(turns))

    def _hear(self, number: int, turn: DialogueTurn, language: str) -> DialogueTurn:
        if turn.answer_heard or turn.answer_audio is None:
            return turn
        try:
            recording = Recording.open(turn.answer_audio, profile=self.profile, allow_upsampling=True)
        except BadInput as refusal:
            raise CannotScore(f"{self.id}, turn {number}: {refusal}") from None
        words = recording.transcript(language).text.strip()
        if not words:
            raise CannotScore(f"no words were recognised in the system's answer in turn {number}")
        return replace(turn, answer_heard=words)

    def until(self, turn: int) -> "SpokenDialogue":
        """Return the dialogue cut off after this turn (counted from 1), with only the criteria for that turn."""
        kept = tuple(criterion for criterion in self.criteria if criterion.level != "sample")
        return replace(self, turns=self.turns[:turn], criteria=(*kept, *self.turn_criteria.get(turn, ())))

    @property
    def transcript(self) -> str:
        """The transcript turn by turn, with sounds and tones in square brackets.

        Raises:
            CannotScore: an answer has no words.
        """
        return "\n".join(_write_exchange(number, turn) for number, turn in enumerate(self.turns, 1))

    def name_source(self, modality: str) -> str:
        """Return the basis of a judge's decisions: `audio`, `annotated transcript` or `plain words`.

        A transcript is annotated if a listener noted at least one sound or tone for every answer (`neutral` counts as
        one).
        """
        annotated = all(any(map(str.strip, turn.answer_tags)) for turn in self.turns)
        return modality if modality == "audio" else "annotated transcript" if annotated else "plain words"

    def explain_unheard(self, modality: str) -> str:
        """Return why a judge cannot assess a dialogue in which more than words matters; empty if it can."""
        judged = self.dimension == "semantic" or self.name_source(modality) != "plain words"
        return "" if judged else UNHEARD.format(self.dimension)

    def choose_modality(self, modality: Modality) -> Literal["transcript", "audio"]:
        """Return `transcript` or `audio`; with `as_needed`, `audio` if plain words would not suffice."""
        if modality != "as_needed":
            return modality
        return "audio" if self.explain_unheard("transcript") else "transcript"

    @property
    def claims(self) -> dict[str, int]:
        """Notes with the number of brackets in the system's own transcripts; empty if there are none."""
        brackets = sum(len(_BRACKETED.findall(turn.answer)) for turn in self.turns if not turn.answer_heard)
        return {"brackets_claimed": brackets} if brackets else {}

    @property
    def focus(self) -> str:
        """The quality on which systems are compared in this dialogue."""
        meaning = CAPABILITIES.get(self.capability or "")
        return FOCUS[self.dimension] + (f"\nIn particular: {meaning}." if meaning else "")

    def clips(self, prefix: str = "") -> dict[str, AudioClip]:
        """Return the clips of all turns by name: `user_1`, `answer_1` and so on, each with the prefix.

        Raises:
            CannotScore: an answer has no audio, or its audio cannot be read.
            BadInput: a user's turn has no audio.
        """
        clips = {}
        for number, turn in enumerate(self.turns, 1):
            if turn.user_audio is None:
                raise BadInput(f"{self.id}, turn {number}: user_audio is missing, but a judge that listens needs it")
            if turn.answer_audio is None:
                raise CannotScore(f"{self.id}, turn {number}: the system's answer has no audio")
            clips[f"{prefix}user_{number}"] = _clip(turn.user_audio)
            try:
                clips[f"{prefix}answer_{number}"] = _clip(turn.answer_audio)
            except BadInput as refusal:
                raise CannotScore(f"{self.id}, turn {number}: {refusal}") from None
        return clips

    @classmethod
    def parse(cls, source: "str | Mapping[str, Any] | SpokenDialogue", profile: str = "embedded") -> "SpokenDialogue":
        """Parse a dialogue from JSON or data; `profile` selects the recogniser of answers.

        Raises:
            BadInput: the source is not JSON, or has no turns, an unknown dimension, or criteria in an unknown form; the
                message names the place.
        """
        if isinstance(source, SpokenDialogue):
            return source
        data = _parse_json(source) if isinstance(source, str) else source
        # Check the fields before anything is built from them.
        name = str(data.get("id") or "dialogue")
        dimension = data.get("dimension", "semantic")
        if dimension not in FOCUS:
            raise BadInput(f"{name}: the dimension must be one of {', '.join(FOCUS)}, not {dimension!r}")
        turns = data.get("turns")
        if not isinstance(turns, Sequence) or isinstance(turns, str) or not turns:
            raise BadInput(f"{name}: a spoken dialogue needs its `turns`, each with `user` and `answer`")
        written = data.get("turn_criteria") or {}
        if not isinstance(written, Mapping) or not all(str(turn).isdigit() for turn in written):
            raise BadInput(f'{name}: turn_criteria must be an object with a list for each turn, such as {{"1": [...]}}')
        return cls(
            id=name,
            dimension=dimension,
            turns=tuple(_exchange(name, number, turn) for number, turn in enumerate(turns, 1)),
            criteria=_all_criteria(name, dimension, data.get("criteria") or {}),
            turn_criteria={int(turn): make_criteria(name, "sample", texts) for turn, texts in written.items()},
            capability=_text_or_none(data.get("capability")),
            scenario=_text_or_none(data.get("scenario")),
            system=_text_or_none(data.get("system")),
            profile=profile,
        )


def read_dialogue(path: Path) -> SpokenDialogue:
    """Read a dialogue from a JSON file.

    Raises:
        BadInput: the file does not contain a dialogue; the message names it.
    """
    try:
        return SpokenDialogue.parse(read_text(path))
    except BadInput as refusal:
        raise BadInput(f"{path}: {refusal}") from None


def make_criteria(name: str, level: Level, texts: Any) -> tuple[Criterion, ...]:
    """Return the criteria of one level from a list of texts, numbered from 1.

    Raises:
        BadInput: the value is not a list of texts.
    """
    if not isinstance(texts, Sequence) or isinstance(texts, str) or not all(isinstance(t, str) and t for t in texts):
        raise BadInput(f"{name}: the {level} criteria must be a list of texts")
    letter = next(letter for letter, of_letter in _LETTERS.items() if of_letter == level)
    return tuple(Criterion(f"criteria_{letter}_{number}", text) for number, text in enumerate(texts, 1))


def parse_criteria(prompt: str) -> tuple[Criterion, ...]:
    """Return the criteria that an MTalk-Bench rubric prompt lists in the form `- criteria_d_1: …`."""
    lines = ((match[1], match[2].strip()) for match in _CRITERION.finditer(prompt))
    texts = {name: text for name, text in lines if not re.fullmatch(r"[01],?", text)}
    return tuple(Criterion(name, text) for name, text in texts.items())


def _all_criteria(name: str, dimension: DimensionName, by_level: Any) -> tuple[Criterion, ...]:
    """Return the criteria for a dialogue, with podeval's own criteria at levels that have none."""
    standard: Mapping[Level, Sequence[str]] = {"general": GENERAL[dimension], "dimension": DIMENSION[dimension]}
    if isinstance(by_level, str):
        criteria = parse_criteria(by_level)
        if not criteria:
            raise BadInput(f"{name}: no line of the criteria begins with criteria_s_1, criteria_m_1 or criteria_d_1")
    elif not isinstance(by_level, Mapping) or by_level.keys() - set(LEVELS):
        raise BadInput(f"{name}: criteria must be an object with lists under {', '.join(LEVELS)}")
    else:
        criteria = tuple(chain(*(make_criteria(name, level, by_level.get(level) or ()) for level in LEVELS)))
    present = {criterion.level for criterion in criteria}
    ours = (make_criteria("", level, texts) for level, texts in standard.items() if level not in present)
    return (*chain(*ours), *criteria)


def _exchange(name: str, number: int, turn: Any) -> DialogueTurn:
    if not isinstance(turn, Mapping):
        raise BadInput(f"{name}, turn {number}: a turn must be an object with `user` and `answer`")
    for key in ("user", "answer", "answer_heard"):
        if not isinstance(turn.get(key) or "", str):
            raise BadInput(f"{name}, turn {number}: {key} must be a transcript")
    return DialogueTurn(
        user=clean_text(turn.get("user") or ""),
        answer=clean_text(turn.get("answer") or ""),
        answer_heard=clean_text(turn.get("answer_heard") or ""),
        user_audio=Path(turn["user_audio"]) if turn.get("user_audio") else None,
        answer_audio=Path(turn["answer_audio"]) if turn.get("answer_audio") else None,
        user_tags=tuple(map(str, turn.get("user_tags") or ())),
        answer_tags=tuple(map(str, turn.get("answer_tags") or ())),
    )


def _write_exchange(number: int, turn: DialogueTurn) -> str:
    answer = turn.words
    if not answer.strip():
        raise CannotScore(f"the transcript of the system's answer in turn {number} has no words")
    tags = "".join(f" [{tag}]" for tag in turn.user_tags)
    spoken = "".join(f" [{tag}]" for tag in turn.answer_tags)
    by_whom = "system" if turn.answer_heard else "system (as it wrote it)"
    return f"Turn {number}, user: {turn.user}{tags}\nTurn {number}, {by_whom}: {quote_brackets(answer)}{spoken}"


def quote_brackets(text: str) -> str:
    """Write a transcript on one line, with text in brackets as quoted words, because only a listener may add tones."""
    quoted = _BRACKETED.sub(lambda match: f"“{match[1].strip()}”", " ".join(text.split()))
    return _BRACKETS.sub("”", quoted)


def _clip(path: Path) -> AudioClip:
    return AudioClip(Recording.open(path, allow_upsampling=True).mono(), MODEL_RATE)


def _parse_json(text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadInput(f"a spoken dialogue must be JSON, but this is not ({error})") from None
    if not isinstance(data, Mapping):
        raise BadInput("a spoken dialogue must be an object with `turns`")
    return data


def _text_or_none(value: Any) -> str | None:
    return str(value) if value else None
