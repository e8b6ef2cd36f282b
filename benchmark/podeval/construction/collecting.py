"""Make texts from one's own recordings: drop poor ones, transcribe who says what for proofreading.

This is the chain of LFS-Bench's online audio (appendix A.2): drop below DNSMOS 3.5, diarise, transcribe, proofread. A
recording is cut into passages at ends of segments, as long as the texts of the benchmark. The result of each recording
is written when it is done, so a stopped run resumes after it.

Differs from the paper: the models are those of the profile, and recordings are not denoised first (enhance them before
this step, with a program of your choice). The paper does not say which of DNSMOS's scores it means; here it is the
overall one, and the setting `by` selects another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from podeval import progress
from podeval.audio.decode import hash_file
from podeval.construction.lfs_cases import Case, CaseTurn, make_case, parse_turns
from podeval.construction.review import ReviewRow
from podeval.construction.workshop import LeftOut, Sifted, StagedRow
from podeval.errors import BadAudio, BadInput, CannotScore, ModelMissing
from podeval.files import append_line, read_lines
from podeval.text.dialogue_segments import Segment

if TYPE_CHECKING:
    from podeval.recording import Recording

COLLECTED, TRANSCRIPTS = "collected.jsonl", "transcripts.csv"

LEAST_DNSMOS = 3.5
"""Lowest DNSMOS of a recording that is kept; LFS-Bench, appendix A.2."""

LANGUAGES: dict[str, Literal["english", "chinese"]] = {"en": "english", "zh": "chinese"}


@dataclass(frozen=True)
class CollectionSettings:
    """The settings of collecting from recordings.

    Args:
        scenario: the scenario of the recordings.
        least: the DNSMOS below which a recording is dropped.
        by: the DNSMOS score to use: ovrl, sig, bak or p808.
        language: the language of the recordings; "" lets the transcriber decide.
        profile: the profile whose models analyse them.
        lengths: least and most words or characters of a passage.
    """

    scenario: str
    least: float
    by: str
    language: str
    profile: str
    lengths: tuple[int, int]


class TranscriptStretch(BaseModel):
    """The transcript of a stretch of a recording; times in seconds."""

    model_config = ConfigDict(frozen=True)

    start: float
    end: float
    turns: tuple[CaseTurn, ...]


class Collected(StagedRow):
    """The result of a recording; `reason` says why it is dropped."""

    file: str
    sha256: str
    settings: dict[str, Any]
    scenario: str
    seconds: float
    dnsmos: float | None = None
    language: str | None = None
    passages: tuple[TranscriptStretch, ...] = ()
    reason: str | None = None


def collect(files: Sequence[Path], record: Path, settings: CollectionSettings) -> list[Collected]:
    """Transcribe recordings; those that were done before, unchanged and with the same settings, are skipped.

    Args:
        files: the audio files.
        record: the file of JSON Lines that each result is appended to.
        settings: the settings of collecting.

    Returns:
        The result of each file, in order.

    Raises:
        BadInput: two files have one name.
        ModelMissing: a model that is needed is not installed.
    """
    if len({path.stem for path in files}) < len(files):
        raise BadInput("two recordings have one name but for the ending, and ids are made of names; rename one")
    before = {one.id: one for one in read_collected(record)}
    facts = {**asdict(settings), "lengths": list(settings.lengths)}
    results = []
    for number, path in enumerate(files):
        progress.report("recordings", number, len(files))
        content, one = hash_file(path), before.get(path.stem)
        if one is None or (one.sha256, one.settings) != (content, facts):
            one = _transcribe(path, content, settings, facts)
            append_line(record, one.model_dump(mode="json"))
        results.append(one)
    progress.report("recordings", len(files), len(files))
    return results


def read_collected(record: Path) -> list[Collected]:
    """Read the results collected so far; if a recording was transcribed twice, the last result counts."""
    results = (Collected.model_validate(line) for line in read_lines(record))
    return list({one.id: one for one in results}.values())


def separate_dropped(rows: Sequence[Collected]) -> Sifted[Collected]:
    """Separate the recordings that are kept from those that are dropped."""
    dropped = [LeftOut(id=row.id, step="collected recordings", reason=row.reason) for row in rows if row.reason]
    return Sifted([row for row in rows if not row.reason], dropped)


def cut_passages(segments: Sequence[Segment], language: str, lengths: tuple[int, int]) -> Iterator[TranscriptStretch]:
    """Cut segments into stretches of whole segments within the lengths; stretches that are too short are left out."""
    held: list[Segment] = []
    for segment in segments:
        if held and _count_length([*held, segment], language) > lengths[1]:
            if _count_length(held, language) >= lengths[0]:
                yield _make_stretch(held)
            held = []
        held.append(segment)
    if held and _count_length(held, language) >= lengths[0]:
        yield _make_stretch(held)


def make_entries(rows: Sequence[Collected]) -> list[ReviewRow]:
    """Make the rows that a proofreader sees: text, theme and scenario may be corrected."""
    entries = []
    for row in rows:
        for number, passage in enumerate(row.passages, 1):
            context = {
                "file": row.file,
                "from (s)": f"{passage.start:.1f}",
                "to (s)": f"{passage.end:.1f}",
                "language": str(row.language),
                "dnsmos": f"{row.dnsmos:.2f}",
            }
            text = "\n".join(f"[{turn.speaker}] {turn.text}" for turn in passage.turns)
            editable = {"scenario": row.scenario, "theme": row.id, "text": text}
            entries.append(ReviewRow(f"{row.id}-{number:03d}", context, editable))
    return entries


def make_proofread_case(entry: ReviewRow, edited: dict[str, str]) -> Case:
    """Make the case of a passage, as people corrected it.

    Raises:
        BadInput: the corrected text cannot be read.
    """
    facts = {"scene": edited["scenario"].strip(), "theme": edited["theme"].strip(), "source": entry.context["file"]}
    return make_case(entry.id, parse_turns(edited["text"]), language=LANGUAGES[entry.context["language"]], **facts)


def _transcribe(path: Path, content: str, settings: CollectionSettings, stored: dict[str, Any]) -> Collected:
    """Transcribe one recording to passages; if it cannot be used, the result says why."""
    from podeval.recording import Recording
    from podeval.recording.speaker_turns import transcribe_and_diarise

    facts: dict[str, Any] = {"id": path.stem, "file": path.name, "sha256": content, "settings": stored}
    facts |= {"scenario": settings.scenario, "seconds": 0.0}
    # Drop poor sound, transcribe.
    try:
        recording = Recording.open(path, profile=settings.profile)
        facts["seconds"] = recording.duration
        recording.require_sound()
        facts["dnsmos"] = _measure_dnsmos(recording, settings.by)
        if facts["dnsmos"] < settings.least:
            reason = f"DNSMOS {settings.by} {facts['dnsmos']:.2f} is below {settings.least:g}"
            return Collected(**facts, reason=reason)
        transcript = transcribe_and_diarise(recording, settings.language or None)
    except (BadAudio, CannotScore) as refusal:
        return Collected(**facts, reason=str(refusal))
    # Cut the transcript into passages of a usable language and length.
    facts["language"] = transcript.language
    if transcript.language not in LANGUAGES:
        return Collected(**facts, reason=f"{transcript.language} is spoken, neither en nor zh")
    stretches = tuple(cut_passages(transcript.segments, transcript.language, settings.lengths))
    short = f"less is said than {settings.lengths[0]} words or characters at a stretch"
    return Collected(**facts, passages=stretches, reason=None if stretches else short)


def _measure_dnsmos(recording: "Recording", by: str) -> float:
    from podeval.metrics.dnsmos import dnsmos
    from podeval.metrics.score import Unscored

    score = dnsmos({"recording": recording})
    if isinstance(score, Unscored):
        raise (CannotScore if score.cause == "system" else ModelMissing)(score.reason)
    return round(float(score.values[by] or 0), 4)


def _make_stretch(segments: Sequence[Segment]) -> TranscriptStretch:
    """Merge consecutive segments of one speaker into turns; speakers are numbered in order of appearance."""
    numbers: dict[str, str] = {}
    turns: list[CaseTurn] = []
    for segment in segments:
        speaker = numbers.setdefault(segment.speaker, f"Speaker{len(numbers) + 1}")
        if turns and turns[-1].speaker == speaker:
            turns[-1] = CaseTurn(speaker=speaker, text=f"{turns[-1].text} {segment.text}".strip())
        else:
            turns.append(CaseTurn(speaker=speaker, text=segment.text.strip()))
    return TranscriptStretch(start=round(segments[0].start, 2), end=round(segments[-1].end, 2), turns=tuple(turns))


def _count_length(segments: Sequence[Segment], language: str) -> int:
    facts: Any = {"scene": "", "theme": "", "source": "", "language": LANGUAGES[language], "num_speakers": 1}
    text = " ".join(segment.text for segment in segments)
    return Case(id="passage", content=(CaseTurn(speaker="", text=text),), **facts).length
