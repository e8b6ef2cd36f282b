"""The study's corpus: about 20 s of one voice per item, human and synthetic, from files on this machine.

Nothing is downloaded, and none of it is committed; a sentence reports every source that is missing. Every item is mono
at 24 kHz and −23 LUFS; recordings at 16 kHz keep their bandwidth of 8 kHz. `corpus.json` states the source of each
item.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import av
import numpy as np
import soundfile
from numpy.typing import NDArray

from podeval.audio.decode import decode
from podeval.audio.samples import mix_to_mono, resample
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, cut_silence
from podeval.systems.espeak_ng import EspeakNg
from podeval.systems.hibari_piper import HibariPiper
from podeval.text.script import Script
from studies.distortions import match_loudness

Samples = NDArray[np.float32]

RATE = 24_000
LEVEL = -23.0
SECONDS = 20.0
REFERENCE_SECONDS = 6.0
PAUSE = 0.3

PASSAGE = (
    "Good evening, and welcome to the long way home, the show about roads that nobody takes any more.",
    "Tonight we follow the old salt route from the coast to the mountains.",
    "It was never a single path, but a bundle of tracks that moved with the weather.",
    "In spring the carts kept to the ridge, because the valley was under water.",
    "By late summer they came down again, to rest in the shade of the mill.",
)
OTHER_PASSAGE = (
    "Our guest has walked it twice, once in the rain and once in the snow.",
    "She says that the second time was easier, since the mud was frozen.",
)

ALLISON_SAYS = (
    "That agent is already logged on. Please enter your agent number followed by the pound key. "
    "Login incorrect. Please enter your agent number followed by the pound key. "
    "Please enter a new extension, followed by pound. "
    "Please enter a password followed by the pound key. "
    "Agent login. Please enter your agent number followed by the pound key."
)
"""The first of Asterisk's English prompts that fit, with the words as spoken in the undistorted recording."""

_SPOKEN_PROMPTS = ("vm-", "conf-", "confbridge-", "dir-", "queue-", "demo-", "agent-", "priv-")
_PROMPT_SECONDS = (2.5, 8.0)
_HEART = "heart"


@dataclass(frozen=True)
class Item:
    """One voice of the corpus; paths are relative to its folder.

    Attributes:
        kind: `human` or `synthetic`.
        collection: name for the items that were recorded or made in the same way, so that only their voices differ.
        voice: name of the speaker; two items may share a voice.
        text: the words; None if they are unknown, or if not every word is heard exactly once.
        reference: another recording of the voice; None if there is none.
        repeated: whether one utterance is repeated to reach the length.
    """

    name: str
    kind: str
    collection: str
    voice: str
    file: str
    text: str | None
    reference: str | None
    repeated: bool
    source: str
    licence: str


@dataclass(frozen=True)
class Found:
    """A voice that is not written yet: its utterances, and further ones for the reference."""

    name: str
    kind: str
    collection: str
    voice: str
    rate: int
    utterances: Sequence[Samples]
    others: Sequence[Samples]
    text: str | None
    source: str
    licence: str


Source = Callable[[Path, Path], Iterator[Found]]


def make(folder: Path, packages: Path, shared: Path) -> list[str]:
    """Write the corpus; return a sentence for each missing source.

    Args:
        folder: the folder for the recordings, the music and `corpus.json`.
        packages: root folder of unpacked Debian packages; `/` if they are installed.
        shared: the folder of real files next to the repository.
    """
    folder.mkdir(parents=True, exist_ok=True)
    items, missing = [], []
    for source in (_librivox, _asterisk, _libritts_r, _built_in, _kokoro, _flite):
        try:
            items += [_write(folder, found) for found in source(packages, shared)]
        except (OSError, subprocess.SubprocessError) as absent:
            missing.append(f"{source.__name__.strip('_')}: not in the corpus, {absent}")
    (folder / "corpus.json").write_text(json.dumps([asdict(item) for item in items], indent=1) + "\n", encoding="utf-8")
    try:
        _write_music(folder, packages)
    except OSError as absent:
        missing.append(f"music: {absent}")
    return missing


def read(folder: Path) -> list[Item]:
    """Read the items, human and synthetic in turn, so that every beginning of the list is balanced."""
    items = [Item(**entry) for entry in json.loads((folder / "corpus.json").read_text(encoding="utf-8"))]
    place = {item.name: sum(other.kind == item.kind for other in items[:n]) for n, item in enumerate(items)}
    return sorted(items, key=lambda item: (place[item.name], item.kind))


def other_voice(item: Item, items: Sequence[Item]) -> Item | None:
    """Return the item whose voice takes over in the middle: another voice of the same collection; None if there is
    none.
    """
    collection = [other for other in items if other.collection == item.collection]
    return next((other for other in _opposite(item, collection) if other.voice != item.voice), None)


def other_recording(item: Item, items: Sequence[Item]) -> Item:
    """Return another voice of the same kind from another collection, so that the way of recording also changes."""
    kind = [other for other in items if other.kind == item.kind]
    return next(other for other in _opposite(item, kind) if other.collection != item.collection)


def _opposite(item: Item, circle: Sequence[Item]) -> Sequence[Item]:
    """Return the circle of items, starting opposite the given item, so that all items come first about equally
    often.
    """
    first = (circle.index(item) + len(circle) // 2) % len(circle)
    return [*circle[first:], *circle[:first]]


def load(path: Path) -> Samples:
    """Load the samples of a file in the corpus, shape (frames,)."""
    samples, _ = soundfile.read(path, dtype="float32")
    return np.asarray(samples, np.float32)


def _write(folder: Path, found: Found) -> Item:
    seconds = sum(len(sound) for sound in found.utterances) / found.rate
    repeats = int(np.ceil(SECONDS / seconds)) if seconds < 0.9 * SECONDS else 1
    file = f"{found.name}.wav"
    _save(folder / file, list(found.utterances) * repeats, found.rate)
    reference = f"{found.name}.reference.wav" if found.others else None
    if reference:
        _save(folder / reference, found.others, found.rate)
    return Item(
        name=found.name,
        kind=found.kind,
        collection=found.collection,
        voice=found.voice,
        file=file,
        text=found.text if repeats == 1 else None,
        reference=reference,
        repeated=repeats > 1,
        source=found.source,
        licence=found.licence,
    )


def _save(path: Path, utterances: Sequence[Samples], rate: int) -> None:
    pause = np.zeros(round(PAUSE * rate), np.float32)
    pieces = [part for sound in utterances for part in (cut_silence(sound, rate), pause)]
    samples = resample(np.concatenate(pieces[:-1]), rate, RATE)
    soundfile.write(path, match_loudness(samples, LEVEL, RATE), RATE, subtype="FLOAT")


def _librivox(packages: Path, shared: Path) -> Iterator[Found]:
    folder = packages / "usr/share/pocketsphinx/test/data/librivox"
    folder = folder if folder.is_dir() else shared / "samples"
    stem = "sense_and_sensibility_01_austen_64kb-{}.wav"
    words = {
        "0870": "and mister john dashwood had then leisure to consider how much there might be prudently in his power "
        "to do for them",
        "0880": "he was not an ill disposed young man",
        "0890": "unless to be rather cold hearted and rather selfish is to be ill disposed",
        "0920": "had he married a more amiable woman he might have been made still more respectable than he was",
    }
    yield Found(
        name="librivox",
        kind="human",
        collection="librivox",
        voice="librivox",
        rate=16_000,
        utterances=[_decoded(folder / stem.format(number))[0] for number in words],
        others=[_decoded(folder / stem.format("0930"))[0]],
        text=" ".join(words.values()),
        source="LibriVox, Sense and Sensibility 1 (Debian pocketsphinx-testdata)",
        licence="public domain",
    )


def _asterisk(packages: Path, shared: Path) -> Iterator[Found]:
    speakers = (
        ("allison_en", "allison", "en_US_f_Allison", "asterisk-core-sounds-en-g722", "CC BY-SA 3.0"),
        ("june_fr", "june", "fr_CA_f_June", "asterisk-core-sounds-fr-g722", "CC BY-SA 3.0"),
        ("carlo_it", "carlo", "it_IT_m_Carlo", "asterisk-core-sounds-it-g722", "CC BY 3.0"),
        ("ivrvoice_ru", "ivrvoice", "ru_RU_f_IvrvoiceRU", "asterisk-core-sounds-ru-g722", "CC BY 3.0"),
        ("allison_es", "allison", "es_MX_f_Allison", "asterisk-core-sounds-es-g722", "CC BY-SA 3.0"),
    )
    for name, voice, folder, package, licence in speakers:
        place = packages / "usr/share/asterisk/sounds" / folder
        if not place.is_dir():
            raise FileNotFoundError(f"{place} is absent; `apt-get download {package}` and `dpkg -x` bring it")
        files = [file for file in sorted(place.glob("*.g722")) if file.name.startswith(_SPOKEN_PROMPTS)]
        prompts = iter([p for file in files if _fits(p := _g722(file))])
        yield Found(
            name=name,
            kind="human",
            collection="asterisk",
            voice=voice,
            rate=16_000,
            utterances=_until(SECONDS, prompts, 16_000),
            others=_until(REFERENCE_SECONDS, prompts, 16_000),
            text=ALLISON_SAYS if name == "allison_en" else None,
            source=f"Asterisk prompts (Debian {package})",
            licence=licence,
        )


def _libritts_r(packages: Path, shared: Path) -> Iterator[Found]:
    folder = shared / "podagent/ref_wav_libritts_r"
    speakers = ("1283", "1545", "2407", "294", "3373", "4010", "6215", "8356")
    for speaker in speakers:
        # The longest file is the item; speaker 1545 has a second file, which is the reference.
        sounds = sorted((_decoded(file) for file in folder.glob(f"{speaker}_*.wav")), key=lambda found: -len(found[0]))
        if not sounds:
            raise FileNotFoundError(f"{folder} has no recording of speaker {speaker}")
        yield Found(
            name=f"libritts_r_{speaker}",
            kind="human",
            collection="libritts_r",
            voice=f"libritts_r_{speaker}",
            rate=sounds[0][1],
            utterances=[sounds[0][0]],
            others=[sound for sound, _ in sounds[1:]],
            text=None,
            source=f"LibriTTS-R, speaker {speaker} (from yujxx/PodAgent)",
            licence="CC BY 4.0",
        )


def _built_in(packages: Path, shared: Path) -> Iterator[Found]:
    systems: tuple[tuple[DialogueReader, int, str, str, str], ...] = (
        (HibariPiper(), 0, "hibari", "neural", "Apache-2.0"),
        (HibariPiper(), 1, "piper_joe", "neural", "CC0-1.0"),
        (EspeakNg(), 0, "espeak_low", "espeak", "GPL-3.0-or-later"),
        (EspeakNg(), 1, "espeak_high", "espeak", "GPL-3.0-or-later"),
    )
    # hibari was made from Kokoro's voice heart, which is called Kokoro's A here.
    for system, voice, name, collection, licence in systems:
        said, rate = _said(system, voice, PASSAGE)
        others, _ = _said(system, voice, OTHER_PASSAGE)
        yield Found(
            name=name,
            kind="synthetic",
            collection=collection,
            voice=_HEART if name == "hibari" else name,
            rate=rate,
            utterances=[said],
            others=[others],
            text=" ".join(PASSAGE),
            source=f"podeval.systems.{system.name}, voice {voice + 1}",
            licence=licence,
        )


def _kokoro(packages: Path, shared: Path) -> Iterator[Found]:
    samples, rate = _decoded(shared / "samples/dialogue_kokoro.flac")
    turns = json.loads((shared / "samples/dialogue_kokoro.json").read_text(encoding="utf-8"))
    for speaker in ("A", "B"):
        own = [turn for turn in turns if turn["speaker"] == speaker and turn["end"] - turn["start"] > 3]
        sounds = iter([samples[round(turn["start"] * rate) : round(turn["end"] * rate)] for turn in own])
        utterances = _until(SECONDS, sounds, rate)
        yield Found(
            name=f"kokoro_{speaker.lower()}",
            kind="synthetic",
            collection="neural",
            voice=_HEART if speaker == "A" else f"kokoro_{speaker.lower()}",
            rate=rate,
            utterances=utterances,
            others=_until(REFERENCE_SECONDS, sounds, rate),
            text=" ".join(turn["text"] for turn in own[: len(utterances)]),
            source=f"a dialogue by Kokoro, voice {speaker} (shared samples)",
            licence="Apache-2.0 (Kokoro)",
        )


def _flite(packages: Path, shared: Path) -> Iterator[Found]:
    program = packages / "usr/bin/flite"
    if not program.is_file():
        raise FileNotFoundError(f"{program} is absent; `apt-get download flite libflite1` and `dpkg -x` bring it")
    library = packages / "usr/lib/x86_64-linux-gnu"
    for voice in ("rms", "slt", "awb", "kal16"):
        yield Found(
            name=f"flite_{voice}",
            kind="synthetic",
            collection="flite",
            voice=f"flite_{voice}",
            rate=16_000,
            utterances=[_flite_says(program, library, voice, sentence) for sentence in PASSAGE],
            others=[_flite_says(program, library, voice, sentence) for sentence in OTHER_PASSAGE],
            text=" ".join(PASSAGE),
            source=f"flite 2.2, voice {voice} (Debian flite)",
            licence="BSD-like (CMU)",
        )


def _flite_says(program: Path, library: Path, voice: str, sentence: str) -> Samples:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        command = [str(program), "-voice", voice, "-t", sentence, "-o", file.name]
        subprocess.run(command, check=True, env={"LD_LIBRARY_PATH": str(library)}, timeout=60, capture_output=True)
        return _decoded(Path(file.name))[0]


def _said(system: DialogueReader, voice: int, sentences: Sequence[str]) -> tuple[Samples, int]:
    script = Script.parse([{"speaker": str(number), "text": text} for number, text in enumerate(sentences)])
    lines = [SpokenLine(number, voice, text) for number, text in enumerate(sentences)]
    speech = system.read(script, lines)
    return mix_to_mono(speech.samples), speech.rate


def _until(seconds: float, sounds: Iterator[Samples], rate: int) -> list[Samples]:
    """Return the next sounds, until their total length is sufficient."""
    taken: list[Samples] = []
    while sum(len(sound) for sound in taken) < seconds * rate and (sound := next(sounds, None)) is not None:
        taken.append(sound)
    return taken


def _fits(prompt: Samples) -> bool:
    shortest, longest = _PROMPT_SECONDS
    return shortest <= len(prompt) / 16_000 <= longest


def _decoded(path: Path) -> tuple[Samples, int]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is absent")
    found = decode(path)
    return mix_to_mono(found.samples), found.rate


def _g722(path: Path) -> Samples:
    with av.open(str(path), format="g722") as container:
        frames = [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
    return np.concatenate(frames).astype(np.float32) / np.float32(32768)


def _write_music(folder: Path, packages: Path) -> None:
    files = sorted((packages / "usr/share/asterisk/moh").glob("*.g722"))
    if not files:
        raise FileNotFoundError("no music; `apt-get download asterisk-moh-opsound-g722` and `dpkg -x` bring it")
    for number, file in enumerate(files):
        # Begin at 20 s, after the openings, which fade in.
        music = resample(_g722(file)[20 * 16_000 : 60 * 16_000], 16_000, RATE)
        soundfile.write(folder / f"music_{number}.wav", match_loudness(music, LEVEL, RATE), RATE, subtype="FLOAT")
