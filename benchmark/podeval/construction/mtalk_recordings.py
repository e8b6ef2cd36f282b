"""Have people check the recordings of an MTalk-Bench dataset in three rounds, and mix in the sounds that the tags name.

In each round, a person listens to every recording that is due, and either accepts it or refuses it because of the
words, the expression or the sound. A refused turn is recorded again for the next round; after three refusals, the turn
and its dialogue are removed. A verdict applies only to the recording that was played (paper, section 4.2). For each
tag, `sounds.csv` states a file, the way to mix it, and the ratio of speech to sound (appendix B.3). The file plays
throughout the turn (`background`), plays once at the position of the tag (`event`), or is not mixed (`none`, for tags
about words or tone).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podeval.audio.decode import hash_file
from podeval.audio.samples import resample
from podeval.construction.mtalk_tagging import Dialogue
from podeval.construction.review import ReviewRow, read_decisions, read_table, write_table
from podeval.construction.workshop import StagedRow, WaitingRow
from podeval.datasets.mtalk_turns import split_tags
from podeval.errors import BadInput, CannotScore
from podeval.sandbox.transcode import decode_apart

ROUNDS = 3

RATE = 24_000
"""Sample rate in Hz of the source's audio column."""

PEAK = 0.99
SNR_DB = 10.0

_QUIET_LUFS = -40.0
_KINDS = ("background", "event", "none")
_COLUMNS = ("tag", "kind", "file", "snr_db")


class Check(StagedRow):
    """A recording that is presented for a verdict, and the verdict."""

    turn: str
    round: int
    sha256: str
    context: dict[str, str]
    accepted: bool | None = None
    fault: str = ""
    remark: str = ""

    @property
    def entry(self) -> ReviewRow:
        """The recording's row in the table."""
        return ReviewRow(self.turn, self.context, {"fault": ""})


@dataclass(frozen=True)
class Take:
    """A recording of a turn: the turn's id, the text with its tags, the file, and the SHA-256 of its content."""

    turn: str
    text: str
    profile: str
    path: Path
    sha256: str


@dataclass
class State:
    """The state of the checks: verdicts so far, and the recordings that are due, each with its round."""

    accepted: set[str] = field(default_factory=set)
    gone: dict[str, str] = field(default_factory=dict)
    due: list[tuple[Take, int]] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)


def find_takes(dialogues: Sequence[Dialogue], folder: Path) -> tuple[list[Take], list[WaitingRow]]:
    """Find the recordings, named by turn (`para-3-1-2.wav`, any audio format), and list the missing recordings."""
    files = {path.stem: path for path in sorted(folder.glob("*")) if path.is_file()} if folder.is_dir() else {}
    takes, missing = list[Take](), list[WaitingRow]()
    for dialogue in dialogues:
        for number, text in enumerate(dialogue.turns, 1):
            turn = f"{dialogue.id}-{number}"
            if turn in files:
                path = files[turn]
                takes.append(Take(turn, text, dialogue.profile, path, hash_file(path)))
            else:
                missing.append(WaitingRow(turn, f"{folder} contains no recording of this turn"))
    return takes, missing


def compute_state(takes: Sequence[Take], checks: Sequence[Check]) -> State:
    """Compute the state of every recording from the verdicts so far."""
    state = State()
    verdicts: dict[str, list[Check]] = {}
    for check in checks:
        verdicts.setdefault(check.turn, []).append(check)
    for take in takes:
        its = verdicts.get(take.turn, [])
        refused = [check for check in its if not check.accepted]
        if any(check.accepted and check.sha256 == take.sha256 for check in its):
            state.accepted.add(take.turn)
        elif len(refused) >= ROUNDS:
            faults = ", ".join(check.fault or "no fault named" for check in refused)
            state.gone[take.turn] = f"refused in {ROUNDS} rounds: {faults}"
        elif any(check.sha256 == take.sha256 for check in refused):
            reason = f"refused in round {len(refused)} ({refused[-1].fault or refused[-1].remark}); record it again"
            state.waiting.append(WaitingRow(take.turn, reason))
        else:
            state.due.append((take, len(refused) + 1))
    return state


def read_verdicts(table: Path, due: Sequence[Check]) -> list[Check]:
    """Read the verdicts on the recordings that were presented.

    Raises:
        BadInput: the table cannot be used.
    """
    if not due:
        return []
    read = read_decisions(table, [check.entry for check in due], "quality check")
    remarks = {left.id: left.reason.partition(": ")[2] for left in read.left_out}
    verdicts = read.kept | read.refused
    return [
        check.model_copy(
            update={
                "accepted": check.turn in read.kept,
                "fault": verdicts[check.turn]["fault"].strip(),
                "remark": remarks.get(check.turn, ""),
            }
        )
        for check in due
        if check.turn in verdicts
    ]


def describe_rounds(checks: Sequence[Check]) -> list[str]:
    """Describe how many recordings were checked and refused in each round, with the reasons, as the paper does."""
    lines = []
    for number in range(1, ROUNDS + 1):
        its = [check for check in checks if check.round == number]
        refused = [check for check in its if not check.accepted]
        if its:
            faults = Counter(check.fault or "no fault named" for check in refused)
            by_fault = f" ({', '.join(f'{count} {fault}' for fault, count in faults.most_common())})" if faults else ""
            lines.append(f"round {number}: {len(its)} recordings checked, {len(refused)} refused{by_fault}")
    return lines


def find_faults(path: Path) -> str:
    """Describe a recording's measurable faults for the table; "" if there are none."""
    from podeval.audio import loudness
    from podeval.recording import Recording

    try:
        recording = Recording.open(path, apart=True)
        if recording.defect:
            return recording.defect
        level = loudness.measure(recording.samples, recording.rate).integrated
    except (BadInput, CannotScore) as refusal:
        return str(refusal)
    return f"quiet: {level:.0f} LUFS" if level < _QUIET_LUFS else ""


def make_check(take: Take, number: int) -> Check:
    """Make the row for a recording that is due in a round."""
    words, tags = split_tags(take.text)
    context = {
        "round": str(number),
        "file": take.path.name,
        "to be said": words,
        "tags": ", ".join(tags),
        "voice": take.profile,
        "heard by machine": find_faults(take.path),
        "recording": take.sha256[:12],
    }
    name = f"{take.turn}/{number}/{take.sha256[:12]}"
    return Check(id=name, turn=take.turn, round=number, sha256=take.sha256, context=context)


@dataclass(frozen=True)
class TagSound:
    """The sound for a tag."""

    kind: str
    file: Path | None
    snr_db: float


def list_tags(dialogues: Sequence[Dialogue]) -> list[str]:
    """List the tags of ambient dialogues, each once, in lower case."""
    tags = (tag.casefold() for d in dialogues if d.type == "amb" for turn in d.turns for tag in split_tags(turn)[1])
    return list(dict.fromkeys(tags))


def lay_out_sounds(path: Path, tags: Sequence[str]) -> list[str]:
    """Add missing tags to the table of sounds, for people to fill in.

    Returns:
        The tags that have no entry yet.

    Raises:
        BadInput: the existing table cannot be read.
    """
    before = read_table(path, set(_COLUMNS)) if path.is_file() else []
    lines = {line["tag"].casefold(): line for line in before}
    for tag in tags:
        lines.setdefault(tag, {"tag": tag, "kind": "", "file": "", "snr_db": f"{SNR_DB:g}"})
    write_table(path, _COLUMNS, lines.values())
    return [tag for tag in tags if not lines[tag]["kind"].strip()]


def read_sounds(path: Path) -> dict[str, TagSound]:
    """Read the sounds by tag; tags without a kind are left out.

    Raises:
        BadInput: a line is invalid; the message names the line.
    """
    sounds = {}
    for number, line in enumerate(read_table(path, set(_COLUMNS)) if path.is_file() else [], 2):
        kind, name = line["kind"].strip().casefold(), line["file"].strip()
        # A tag without a kind has not been filled in yet.
        if not kind:
            continue
        where = f"{path}, line {number} ({line['tag']})"
        if kind not in _KINDS:
            raise BadInput(f"{where}: kind is {kind!r}; it must be one of {', '.join(_KINDS)}")
        file = path.parent / name if name else None
        if kind != "none" and (file is None or not file.is_file()):
            raise BadInput(f"{where}: there is no sound file {str(file or '')!r}; write its path relative to the table")
        try:
            ratio = float(line["snr_db"])
        except ValueError:
            raise BadInput(f"{where}: snr_db is {line['snr_db']!r}; write a number of decibels, such as 10") from None
        if not -30 <= ratio <= 60:
            raise BadInput(f"{where}: a ratio of {ratio:g} dB is not plausible; write a number from -30 to 60")
        sounds[line["tag"].casefold()] = TagSound(kind, file, ratio)
    return sounds


def add_sounds(text: str, recording: Path, sounds: Mapping[str, TagSound]) -> NDArray[np.float32]:
    """Mix a turn for listening: mono at 24 kHz, with the sounds for its tags.

    Args:
        text: the words with tags; an event's sound begins at the position of its tag.
        recording: the path of the recorded words.
        sounds: the sounds by tag.

    Raises:
        BadAudio: the recording or a sound cannot be read.
        CannotScore: the recording or a sound is silent.
    """
    # Each sound is mixed at its own ratio to the speech, regardless of the other sounds.
    speech = mixed = _read_mono(recording)
    for tag, share in locate_tags(text):
        sound = sounds.get(tag.casefold())
        if sound is None or sound.file is None or sound.kind == "none":
            continue
        samples = _read_mono(sound.file)
        at = min(share * len(speech), len(speech) - 1) / RATE
        if sound.kind == "background":
            # The sound lasts as long as the speech; a shorter sound is repeated.
            samples, at = np.resize(samples, len(speech)), 0.0
        mixed = mixed + (put_in(speech, samples, RATE, sound.snr_db, at) - speech)
    # Attenuate a mix that would clip.
    peak = float(np.abs(mixed).max())
    return np.asarray(mixed * np.float32(min(1.0, PEAK / peak) if peak else 1.0), dtype=np.float32)


def locate_tags(text: str) -> list[tuple[str, float]]:
    """Locate the tags of a turn; return each tag with the share of words that precede it, 0 to 1."""
    whole = len(split_tags(text)[0])
    positions, rest, before = list[tuple[str, float]](), text, ""
    for tag in split_tags(text)[1]:
        head, _, rest = rest.partition(tag)
        before += head.rstrip(" (（")
        rest = rest.lstrip(")）")
        positions.append((tag, len(split_tags(before)[0]) / whole if whole else 0.0))
    return positions


def _read_mono(path: Path) -> NDArray[np.float32]:
    decoded = decode_apart(path)
    return resample(decoded.samples.mean(axis=1, dtype=np.float32), decoded.rate, RATE)


# Mixing sounds into speech at a given signal-to-noise ratio. The ratio is in decibels of power: the power of the speech
# while someone speaks (20 ms frames within 40 dB of the loudest frame), divided by the power of the sound while it is
# audible. Pauses between words therefore do not lower the speech level.

Samples = NDArray[np.float32]

FADE = 0.02
"""Length of the fade at either end of a sound, in seconds."""

_FRAME, _RANGE_DB = 0.02, 40.0


def measure_active_power(speech: Samples, rate: int) -> float:
    """Return the mean power of mono speech over the frames with speech.

    Raises:
        CannotScore: the speech is silent.
    """
    size = max(1, round(_FRAME * rate))
    whole = len(speech) // size * size
    frames = speech[:whole].reshape(-1, size) if whole else speech[None]
    powers = np.mean(np.square(frames, dtype=np.float64), axis=1)
    if not powers.size or not powers.max():
        raise CannotScore("the speech is silent, so no sound can be mixed in at the requested ratio of speech to sound")
    return float(powers[powers >= powers.max() * 10 ** (-_RANGE_DB / 10)].mean())


def put_in(speech: Samples, sound: Samples, rate: int, snr_db: float, at: float) -> Samples:
    """Add a sound to speech once, starting at `at` seconds and cut off at the end of the speech; the result has the
    shape (frames,).

    Raises:
        CannotScore: the speech or the sound is silent.
    """
    start = round(at * rate)
    faded = _fade_ends(sound[: len(speech) - start], rate)
    if not faded.any():
        raise CannotScore("the sound is silent, so it cannot be mixed in at the requested ratio of speech to sound")
    factor = np.sqrt(measure_active_power(speech, rate) / np.mean(np.square(faded))) * 10 ** (-snr_db / 20)
    mixed = speech.astype(np.float64)
    mixed[start : start + len(faded)] += factor * faded
    return np.asarray(mixed, dtype=np.float32)


def _fade_ends(sound: Samples, rate: int) -> NDArray[np.float64]:
    """Apply a short fade-in and fade-out to a sound, so that the sound does not click."""
    faded = sound.astype(np.float64)
    size = min(round(FADE * rate), len(faded) // 2)
    if size:
        ramp = np.linspace(0, 1, size)
        faded[:size] *= ramp
        faded[-size:] *= ramp[::-1]
    return faded
