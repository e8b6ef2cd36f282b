"""Make texts from one's own recordings: enhance them, drop poor ones, transcribe who says what for proofreading.

This is the chain of LFS-Bench's online audio (appendix A.2): denoise, drop below DNSMOS 3.5, diarise, transcribe,
proofread. A recording is cut into passages at ends of segments, as long as the texts of the benchmark. The result of
each recording is written when it is done, so that a stopped run resumes after it.

Differs from the paper in the models: those of the profile; there is no enhancer among them, so one is used only where a
command is given. The paper does not say which of DNSMOS's scores it means; here it is the overall one, and `by` selects
another.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from podeval import progress
from podeval.audio.decode import hash_file
from podeval.construction.lfs_cases import Case, CaseTurn, make_case, parse_turns
from podeval.construction.programs import Program
from podeval.construction.review import ReviewRow, read_decisions
from podeval.construction.staged_rows import LeftOut, Sifted, StagedRow, WaitingRow
from podeval.errors import BadAudio, BadInput, CannotScore, ModelMissing
from podeval.store.files import append_line
from podeval.text.dialogue_segments import Segment

if TYPE_CHECKING:
    from podeval.analysis import Recording

LEAST_DNSMOS = 3.5
"""Lowest DNSMOS of a recording that is kept; LFS-Bench, appendix A.2."""

STEP = "collecting"
LANGUAGES: dict[str, Literal["english", "chinese"]] = {"en": "english", "zh": "chinese"}


@dataclass(frozen=True)
class CollectionSettings:
    """The settings of collecting from recordings.

    Args:
        scenario: scenario of the recordings.
        least: DNSMOS below which a recording is dropped.
        by: the DNSMOS score to use: ovrl, sig, bak or p808.
        enhancer: a command, or "" for none.
        language: language of the recordings; None lets the transcriber decide.
        profile: profile whose models analyse them.
        lengths: least and most words or characters of a passage.
    """

    scenario: str
    least: float = LEAST_DNSMOS
    by: str = "ovrl"
    enhancer: str = ""
    language: str | None = None
    profile: str = "embedded"
    lengths: tuple[int, int] = (80, 500)

    @property
    def id(self) -> str:
        """A short hash of the settings: a recording that was collected with others is collected again."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:10]


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
    settings: str
    scenario: str
    seconds: float
    enhanced: bool
    dnsmos: float | None = None
    language: str | None = None
    passages: tuple[TranscriptStretch, ...] = ()
    reason: str | None = None


def collect(
    files: Sequence[Path], record: Path, before: Sequence[Collected], settings: CollectionSettings
) -> list[Collected]:
    """Transcribe recordings; those that were done before, unchanged and with the same settings, are skipped.

    Args:
        files: audio files.
        record: the file of JSON Lines that each result is appended to.
        before: results that the file already holds.
        settings: settings of collecting.

    Returns:
        The result of each file, in order.

    Raises:
        BadInput: two files have one name, or the enhancer fails.
        ModelMissing: a model that is needed is not installed.
    """
    if len({path.stem for path in files}) < len(files):
        raise BadInput("two recordings have one name but for the ending, and ids are made of names; rename one")
    enhancer = Program(settings.enhancer, "enhancer") if settings.enhancer else None
    collected = {(one.sha256, one.settings, one.id): one for one in before}
    results = []
    for number, path in enumerate(files):
        progress.report("recordings", number, len(files))
        key = (hash_file(path), settings.id, path.stem)
        if key not in collected:
            collected[key] = _transcribe(path, key[0], settings, enhancer)
            append_line(record, collected[key].model_dump(mode="json"))
        results.append(collected[key])
    progress.report("recordings", len(files), len(files))
    return results


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


def make_review_rows(rows: Sequence[Collected]) -> list[ReviewRow]:
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
            entries.append(
                ReviewRow(f"{row.id}-{number:03d}", context, {"scenario": row.scenario, "theme": row.id, "text": text})
            )
    return entries


def proofread(rows: Sequence[Collected], table: Path, *, accept_all: bool = False) -> Sifted[Case]:
    """Make cases of the passages that people kept, as they corrected them.

    Raises:
        BadInput: the table cannot be used.
    """
    entries = make_review_rows(rows)
    languages = {entry.id: entry.context["language"] for entry in entries}
    files = {entry.id: entry.context["file"] for entry in entries}
    review = read_decisions(table, entries, "proofreading", accept_all=accept_all)
    result: Sifted[Case] = Sifted(left_out=review.left_out, waiting=review.waiting)
    for name, edited in review.kept.items():
        facts = {"scene": edited["scenario"].strip(), "theme": edited["theme"].strip(), "source": files[name]}
        try:
            result.kept.append(
                make_case(name, parse_turns(edited["text"]), language=LANGUAGES[languages[name]], **facts)
            )
        except BadInput as error:
            result.waiting.append(WaitingRow(name, f"its text in {table.name} cannot be read: {error}"))
    return result


def list_left_out(rows: Sequence[Collected]) -> list[LeftOut]:
    """List the recordings that were dropped."""
    return [LeftOut(id=row.id, step=STEP, reason=row.reason) for row in rows if row.reason]


def _transcribe(path: Path, content: str, settings: CollectionSettings, enhancer: Program | None) -> Collected:
    """Transcribe one recording to passages; where it cannot be used, the result says why."""
    from podeval.analysis import Recording
    from podeval.analysis.diarised_transcript import transcribe_and_diarise

    facts: dict[str, Any] = {
        "id": path.stem,
        "file": path.name,
        "sha256": content,
        "settings": settings.id,
        "scenario": settings.scenario,
        "seconds": 0.0,
        "enhanced": enhancer is not None,
    }
    # Enhance, drop poor sound, transcribe.
    try:
        recording = Recording.open(path, profile=settings.profile)
        facts["seconds"] = recording.duration
        recording.require_sound()
        if enhancer:
            samples = enhancer.run(recording.samples, recording.rate)
            recording = Recording.from_samples(samples, recording.rate, profile=settings.profile, name=path.name)
        facts["dnsmos"] = _measure_dnsmos(recording, settings.by)
        if facts["dnsmos"] < settings.least:
            reason = f"DNSMOS {settings.by} {facts['dnsmos']:.2f} is below {settings.least:g}"
            return Collected(**facts, reason=reason)
        transcript = transcribe_and_diarise(recording, settings.language)
    except (BadAudio, CannotScore) as refusal:
        return Collected(**facts, reason=str(refusal))
    # Cut the transcript into passages of a usable language and length.
    if transcript.language not in LANGUAGES:
        return Collected(
            **facts, language=transcript.language, reason=f"{transcript.language} is spoken, neither en nor zh"
        )
    stretches = tuple(cut_passages(transcript.segments, transcript.language, settings.lengths))
    short = f"less is said than {settings.lengths[0]} words or characters at a stretch"
    return Collected(**facts, language=transcript.language, passages=stretches, reason=None if stretches else short)


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
