"""Rows from a folder of recordings: the words, their speakers and times, and the clips around speaker changes.

The rows contain only text and times. The sound itself is not distributed, because the owners of the recordings are
unknown.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import datasets
from podeval import progress
from podeval.benchmarks.benchmark import Item
from podeval.datasets.dataset_record import Row, RowRule
from podeval.datasets.fetch_episodes import RECORD, read_attempts
from podeval.errors import BadAudio, BadInput, CannotScore

_AUDIO_NAMES = frozenset(
    ("aac", "aif", "aiff", "flac", "m4a", "m4b", "mka", "mkv", "mov", "mp3", "mp4", "oga", "ogg", "opus", "wav", "webm")
)


def list_episode_features() -> datasets.Features:
    """Return the columns.

    `id` is the file name without its extension; `turns` are segments of at most 30 s; `clips` are the clips that
    `podeval data segments` finds; `reason` explains missing turns or clips.
    """
    text, seconds = datasets.Value("string"), datasets.Value("float64")
    return datasets.Features(
        {
            "id": text,
            "topic_id": datasets.Value("int32"),
            "file": text,
            "sha256": text,
            "duration": seconds,
            "language": text,
            "transcriber": text,
            "diarizer": text,
            "transcript": text,
            "turns": datasets.List({"speaker": text, "start": seconds, "end": seconds, "text": text}),
            "clips": datasets.List(
                {
                    "time_range": {"start": seconds, "end": seconds},
                    "first_speaker": text,
                    "second_speaker": text,
                    "text": text,
                }
            ),
            "reason": text,
        }
    )


def _out_of_time(row: Row) -> str | None:
    for turn in row["turns"]:
        if not 0 <= turn["start"] <= turn["end"]:
            return f"a turn from {turn['start']:.2f} to {turn['end']:.2f} s is impossible"
    return None


EPISODE_RULES = (
    RowRule(
        "audio.readable",
        lambda row: None if row["sha256"] and row["duration"] > 0 else row["reason"] or "the recording has no length",
    ),
    RowRule(
        "speech.heard", lambda row: None if row["turns"] or not row["sha256"] else row["reason"] or "no speech is heard"
    ),
    RowRule("turns.times", _out_of_time),
)
"""Rules for every row: its audio must be readable and contain speech."""


def make_episode_rows(folder: Path, items: Mapping[str, Item]) -> Iterator[Row]:
    """Make a row for each recording in a folder, in the order of the file names.

    The files that `podeval data fetch` listed in the folder's record must be present, with the content stated there.

    Args:
        folder: folder of audio files; other files are ignored.
        items: items to which the recordings may belong, by id; they state the spoken language.

    Raises:
        BadInput: the folder does not contain a recording.
        ModelMissing: the models that analyse recordings are not installed.
    """
    fetched = {one.file: one for one in read_attempts(folder).values() if one.status == "found" and one.file}
    names = sorted({path.name for path in folder.iterdir() if is_recording(path)} | set(fetched))
    if not names:
        raise BadInput(f"{folder} contains no audio; fetch episodes with `podeval data fetch real_pod --into {folder}`")
    for number, name in enumerate(names):
        progress.report("recordings", number, len(names))
        expected = fetched[name].sha256 if name in fetched else None
        yield _make_row(folder / name, items.get(fetched[name].id if name in fetched else Path(name).stem), expected)


def is_recording(path: Path) -> bool:
    """Return whether a file has the content or the name of an audio file."""
    from podeval.audio.decode import identify, open_regular

    if path.name.startswith(".") or path.name == RECORD or not path.is_file():
        return False
    try:
        with open_regular(path) as file:
            identify(file, path)
    except BadAudio:
        return path.suffix.lower().removeprefix(".") in _AUDIO_NAMES
    return True


def _make_row(path: Path, item: Item | None, expected: str | None) -> Row:
    """Make the row of a recording; the row of an unusable recording states the reason, and the rules refuse that
    row.
    """
    from podeval.models import registry
    from podeval.recording import Recording
    from podeval.recording.speaker_turns import transcribe_and_diarise
    from podeval.text.dialogue_segments import cut_dialogue_clips, explain_no_clips

    # Fill in the facts that require no analysis.
    number = item.id.rpartition("_")[2] if item else ""
    row: dict[str, Any] = {
        "id": path.stem,
        "topic_id": int(number) if number.isdecimal() else None,
        "file": path.name,
        "sha256": None,
        "duration": 0.0,
        "language": item.language if item else None,
        "transcriber": registry.get_card("transcriber", "embedded").id,
        "diarizer": registry.get_card("diarizer", "embedded").id,
        "transcript": "",
        "turns": [],
        "clips": [],
        "reason": None,
    }
    # Transcribe the recording, or state why it is unusable.
    try:
        recording = Recording.open(path, apart=True)
        if expected and recording.content != expected:
            raise BadInput(f"{path.name} is not the file that was fetched (its SHA-256 differs); fetch it again")
        row |= {"sha256": recording.content, "duration": recording.duration}
        transcript = transcribe_and_diarise(recording, item.language if item else None)
    except (BadInput, CannotScore) as refusal:
        return row | {"reason": str(refusal)}
    segments = transcript.segments
    return row | {
        "language": transcript.language,
        "transcript": " ".join(one.text for one in segments),
        "turns": [{"speaker": s.speaker, "start": s.start, "end": s.end, "text": s.text} for s in segments],
        "clips": [clip.to_json() for clip in cut_dialogue_clips(segments)],
        "reason": explain_no_clips(segments),
    }
